"""The app: it starts the pumps, knows the screens by name, and is the one place from which orders go out."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import Binding
from textual.signal import Signal
from textual.widgets import Input

from unveil.records.plain_text import plain
from unveil_tui.breaker import ask_to_stop
from unveil_tui.exporting import write_new
from unveil_tui.fleet import Fleet
from unveil_tui.palette import CockpitCommands
from unveil_tui.pump import Pump
from unveil_tui.rights import ACTING, GuardedWatcher, Rights
from unveil_tui.screens.ask import AskScreen
from unveil_tui.screens.confirm import ConfirmScreen
from unveil_tui.screens.draft import DraftScreen
from unveil_tui.screens.episode import EpisodeScreen
from unveil_tui.screens.fleet import FleetScreen
from unveil_tui.screens.help import HelpScreen
from unveil_tui.screens.knowledge import KnowledgeScreen
from unveil_tui.screens.live import LiveScreen
from unveil_tui.screens.rule import RuleScreen
from unveil_tui.screens.run import RunScreen
from unveil_tui.screens.runs import RunsScreen
from unveil_tui.screens.silence import SilenceScreen
from unveil_tui.screens.window import WindowScreen
from unveil_tui.seen import Seen
from unveil_tui.widgets.too_small import HEIGHT, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual import events
    from textual.screen import Screen

    from unveil.engine.client import Watcher
    from unveil_tui.asking import Prompt
    from unveil_tui.confirming import Question
    from unveil_tui.fleet import HostSeen
    from unveil_tui.messages import Answered, Heard, News, Open, Told

# Screens that are opened on a record, by the name that `Open` carries.
OPENED: dict[str, Callable[[str], Screen[Any]]] = {
    "window": WindowScreen,
    "episode": EpisodeScreen,
    "silence": SilenceScreen,
    "rule": RuleScreen,
    "draft": DraftScreen,
}
ERROR_S = 12.0


class Cockpit(App[None]):
    """The cockpit on one watcher, or on several of which one at a time is looked at closely.

    Args:
        watcher: who answers; called from one thread only. None begins with the fleet.
        rights: what this cockpit may do.
        hosts: of a fleet: name → opens a connection to that host's watcher.
    """

    TITLE = "unveil"
    CSS_PATH = "styles/cockpit.tcss"
    DEFAULT_MODE = "live"  # it is there from the first moment: to switch to a first screen parses all styles twice more
    MODES: ClassVar[dict[str, Any]] = {"fleet": FleetScreen, "runs": RunsScreen, "knowledge": KnowledgeScreen}
    COMMANDS: ClassVar[set[Any]] = App.COMMANDS | {CockpitCommands}
    HORIZONTAL_BREAKPOINTS = [(0, "-thin"), (WIDTH, "-narrow"), (150, "-wide"), (220, "-huge")]  # noqa: RUF012  # as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (HEIGHT, "-short"), (20, "-low"), (32, "-tall"), (56, "-towering")]  # noqa: RUF012  # as Textual declares it
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[Any]] = [
        Binding("0", "go('fleet')", "fleet", show=False),
        Binding("1", "go('live')", "live", show=False),
        Binding("2", "go('runs')", "runs", show=False),
        Binding("3", "go('knowledge')", "knowledge", show=False),
        Binding("colon", "command_palette", "commands", show=False),
        Binding("question_mark", "explain_keys", "help", show=False),
        Binding("X", "stop_automation", "stop all automation", show=False),
        Binding("q", "leave", "quit", show=False),
    ]

    def __init__(
        self,
        watcher: Watcher | None,
        *,
        rights: Rights = ACTING,
        hosts: Mapping[str, Callable[[], Watcher]] | None = None,
    ) -> None:
        super().__init__()
        self.rights = rights
        self.seen = Seen()
        self.hosts: tuple[HostSeen, ...] = ()
        self.news: Signal[Seen] = Signal(self, "news")
        self.told: Signal[Told] = Signal(self, "told")
        self.heard: Signal[tuple[HostSeen, ...]] = Signal(self, "heard")
        self.fleet = Fleet(hosts, self.post_message) if hosts else None
        self._pump = None if watcher is None else Pump(GuardedWatcher(watcher, rights), self.post_message)
        self._then: dict[int, Callable[[Any], object] | None] = {}

    def get_default_screen(self) -> Screen[Any]:
        """Begin with the live screen."""
        return LiveScreen()

    def on_load(self) -> None:
        """Start asking, so that there is something to draw when the screen stands."""
        if self.fleet is not None:
            self.fleet.start()
        self._start()

    def on_mount(self) -> None:
        """Start the clock that ages the banners."""
        self.add_mode("live", LiveScreen)
        if self._pump is None:
            self.switch_mode("fleet")
        self.set_interval(1.0, self._age)

    def _start(self) -> None:
        if self._pump is not None:
            self.run_worker(self._pump.run, thread=True, group="pump", exit_on_error=False)

    def _stop(self) -> None:
        if self._pump is not None:
            self._pump.stop()

    def on_unmount(self) -> None:
        """Let the threads end."""
        self._stop()
        if self.fleet is not None:
            self.fleet.stop()

    def exit(self, *args: Any, **kwargs: Any) -> None:
        """Stop the pump first, so that leaving does not wait for it."""
        self._stop()
        super().exit(*args, **kwargs)

    async def visit(self, name: str) -> None:
        """Look at one host of the fleet closely; what was asked of the one before is no longer waited for."""
        if self.fleet is None or name not in self.fleet.hosts:
            return
        self._stop()
        self._then.clear()
        self._pump = Pump(GuardedWatcher(self.fleet.hosts[name](), self.rights), self.post_message)
        self.seen = Seen(source=self._pump.number)
        self._start()
        if self.current_mode != "fleet":
            await self.switch_mode("fleet")
        for mode, screen in (("live", LiveScreen), ("runs", RunsScreen), ("knowledge", KnowledgeScreen)):
            await self.remove_mode(mode)  # nothing that was opened on another host stays open
            self.add_mode(mode, screen)
        await self.switch_mode("live")

    def on_key(self, event: events.Key) -> None:
        """Give a letter to the field that has the focus now, when it was typed before that had it.

        Several keys that arrive in one go, as over a slow line, are handed to whoever has the focus then; those behind
        the `/` come back here when the field is open, and must not be taken for orders.
        """
        field = self.focused
        if isinstance(field, Input) and event.is_printable and event.character:
            event.stop()
            event.prevent_default()
            field.insert_text_at_cursor(event.character)

    # What the pump says

    def on_news(self, message: News) -> None:
        """Keep and spread what is known now; not what the host before had to say."""
        if self._pump is None or message.seen.source != self._pump.number:
            return
        self.seen = message.seen
        self.news.publish(self.seen)

    def on_heard(self, message: Heard) -> None:
        """Keep and spread how the hosts of the fleet are."""
        self.hosts = message.hosts
        self.heard.publish(self.hosts)

    def on_told(self, message: Told) -> None:
        """Spread an answer to whoever follows it."""
        self.told.publish(message)

    def on_answered(self, message: Answered) -> None:
        """Hand an answer to who asked; say an error aloud."""
        then = self._then.pop(message.token, None)
        if message.error is not None:
            hint = f"\n{plain(message.error.hint, 300)}" if message.error.hint else ""
            self.notify(plain(message.error.what, 500) + hint, severity="error", timeout=ERROR_S, markup=False)
        elif then is not None:
            then(message.answer)

    def _age(self) -> None:
        seen = self.seen
        if seen.gone_since_s is None and seen.heard_s and time.time() - seen.heard_s > 2:
            self.news.publish(seen)

    # What screens ask for

    def order(self, method: str, params: dict[str, Any], then: Callable[[Any], object] | None = None) -> None:
        """Ask the watcher once; *then* gets the answer, an error is shown."""
        if reason := self.rights.why_not(method):
            self.notify(f"{method.replace('_', ' ')}: {reason}", severity="warning", markup=False)
        elif self._pump is not None:
            self._then[self._pump.order(method, params)] = then

    def follow(self, method: str, params: dict[str, Any], *, every_s: float) -> int:
        """Ask again and again; answers come through ``told`` with the number returned."""
        return -1 if self._pump is None else self._pump.follow(method, params, every_s=every_s)

    def unfollow(self, number: int) -> None:
        """Stop asking."""
        if self._pump is not None:
            self._pump.unfollow(number)

    def confirm(self, question: Question, then: Callable[[], object]) -> None:
        """Ask a person; *then* is called only after a yes."""

        def answered(yes: bool | None) -> None:
            if yes:
                then()

        self.push_screen(ConfirmScreen(question), answered)

    def ask(self, prompt: Prompt, then: Callable[[str], object]) -> None:
        """Ask a person for a line of text; *then* gets it, unless they leave it."""

        def answered(text: str | None) -> None:
            if text is not None:
                then(text)

        self.push_screen(AskScreen(prompt), answered)

    def say(self, text: str) -> None:
        """Show a message; drawn as text."""
        self.notify(text, markup=False)

    def copy(self, text: str, what: str) -> None:
        """Put text into the clipboard of the terminal (OSC 52), which some terminals do not let us."""
        self.copy_to_clipboard(text)
        self.say(f"copied {what}, if your terminal lets us; w writes it to a file instead")

    def export(self, text: str, name: str) -> None:
        """Write text to a new file in the folder we were started in, or have the browser download it."""
        if self.is_web:
            self.deliver_text(io.StringIO(text), save_filename=name)
            return
        try:
            self.say(f"written to {write_new(text, name)}")
        except OSError as error:
            self.notify(f"not written: {plain(error)}", severity="error", markup=False)

    async def on_open(self, message: Open) -> None:
        """Show a record on the screen for its kind; of a host, all that is to be seen of it."""
        message.stop()
        if message.what == "host":
            await self.visit(message.key)
        elif message.what == "run":
            self.push_screen(RunScreen(message.key, message.ask))
        else:
            self.open(message.what, message.key)

    def open(self, what: str, key: str) -> None:
        """Show a window, an episode, a rule."""
        self.push_screen(OPENED[what](key))

    def action_stop_automation(self) -> None:
        """Keep automation away from everything on this host, or let it act again."""
        ask_to_stop(self)

    def action_explain_keys(self) -> None:
        """Explain the keys of this screen."""
        keys = getattr(self.screen, "KEYS", None)
        if keys is not None and not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(str(self.screen.title or ""), keys))

    async def action_go(self, mode: str) -> None:
        """Go to a first screen; from what was opened on it, back to it."""
        if mode == "fleet" and self.fleet is None:
            self.say("one host only: `unveil tui --socket A --socket B` opens several")
            return
        if self._pump is None and mode != "fleet":
            self.say("go to a host first")
            return
        if mode != self.current_mode:
            await self.switch_mode(mode)
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_leave(self) -> None:
        """Go back; from runs and knowledge to the live screen, from there to the fleet, from the first one out."""
        first = "live" if self.fleet is None else "fleet"
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self.current_mode != first:
            self.switch_mode("live" if self.current_mode in ("runs", "knowledge") else first)
        else:
            self.exit()
