"""The app: it starts the pump, knows the screens by name, and is the one place from which orders go out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import Binding
from textual.signal import Signal

from unveil.records.plain_text import plain
from unveil_tui.palette import CockpitCommands
from unveil_tui.pump import Pump
from unveil_tui.rights import ACTING, GuardedWatcher, Rights
from unveil_tui.screens.confirm import ConfirmScreen
from unveil_tui.screens.episode import EpisodeScreen
from unveil_tui.screens.help import HelpScreen
from unveil_tui.screens.knowledge import KnowledgeScreen
from unveil_tui.screens.live import LiveScreen
from unveil_tui.screens.run import RunScreen
from unveil_tui.screens.runs import RunsScreen
from unveil_tui.screens.silence import SilenceScreen
from unveil_tui.screens.window import WindowScreen
from unveil_tui.seen import Seen
from unveil_tui.widgets.too_small import HEIGHT, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen

    from unveil.engine.client import Watcher
    from unveil_tui.confirming import Question
    from unveil_tui.messages import Answered, News, Open, Told

# Screens that are opened on a record, by the name that `Open` carries.
OPENED: dict[str, Callable[[str], Screen[Any]]] = {
    "window": WindowScreen,
    "episode": EpisodeScreen,
    "run": RunScreen,
    "silence": SilenceScreen,
}
ERROR_S = 12.0


class Cockpit(App[None]):
    """The cockpit on one watcher.

    Args:
        watcher: who answers; called from one thread only.
        rights: what this cockpit may do.
    """

    TITLE = "unveil"
    CSS_PATH = "styles/cockpit.tcss"
    MODES: ClassVar[dict[str, Any]] = {"live": LiveScreen, "runs": RunsScreen, "knowledge": KnowledgeScreen}
    COMMANDS: ClassVar[set[Any]] = App.COMMANDS | {CockpitCommands}
    HORIZONTAL_BREAKPOINTS = [(0, "-thin"), (WIDTH, "-narrow"), (150, "-wide")]  # noqa: RUF012  # as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (HEIGHT, "-short"), (20, "-low"), (32, "-tall")]  # noqa: RUF012  # as Textual declares it
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[Any]] = [
        Binding("1", "go('live')", "live", show=False),
        Binding("2", "go('runs')", "runs", show=False),
        Binding("3", "go('knowledge')", "knowledge", show=False),
        Binding("colon", "command_palette", "commands", show=False),
        Binding("question_mark", "explain_keys", "help", show=False),
        Binding("q", "leave", "quit", show=False),
    ]

    def __init__(self, watcher: Watcher, *, rights: Rights = ACTING) -> None:
        super().__init__()
        self.rights = rights
        self.seen = Seen()
        self.news: Signal[Seen] = Signal(self, "news")
        self.told: Signal[Told] = Signal(self, "told")
        self._pump = Pump(GuardedWatcher(watcher, rights), self.post_message)
        self._then: dict[int, Callable[[Any], object] | None] = {}

    def on_mount(self) -> None:
        """Start the pump and the clock that ages the banners."""
        self.switch_mode("live")
        self.run_worker(self._pump.run, thread=True, exclusive=True, group="pump", exit_on_error=False)
        self.set_interval(1.0, self._age)

    def on_unmount(self) -> None:
        """Let the pump's thread end."""
        self._pump.stop()

    def exit(self, *args: Any, **kwargs: Any) -> None:
        """Stop the pump first, so that leaving does not wait for it."""
        self._pump.stop()
        super().exit(*args, **kwargs)

    # What the pump says

    def on_news(self, message: News) -> None:
        """Keep and spread what is known now."""
        self.seen = message.seen
        self.news.publish(self.seen)

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
            return
        self._then[self._pump.order(method, params)] = then

    def follow(self, method: str, params: dict[str, Any], *, every_s: float) -> int:
        """Ask again and again; answers come through ``told`` with the number returned."""
        return self._pump.follow(method, params, every_s=every_s)

    def unfollow(self, number: int) -> None:
        """Stop asking."""
        self._pump.unfollow(number)

    def confirm(self, question: Question, then: Callable[[], object]) -> None:
        """Ask a person; *then* is called only after a yes."""

        def answered(yes: bool | None) -> None:
            if yes:
                then()

        self.push_screen(ConfirmScreen(question), answered)

    def on_open(self, message: Open) -> None:
        """Show a record on the screen for its kind."""
        message.stop()
        self.open(message.what, message.key)

    def open(self, what: str, key: str) -> None:
        """Show a window, an episode or a run."""
        self.push_screen(OPENED[what](key))

    def action_explain_keys(self) -> None:
        """Explain the keys of this screen."""
        keys = getattr(self.screen, "KEYS", None)
        if keys is not None and not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(str(self.screen.title or ""), keys))

    async def action_go(self, mode: str) -> None:
        """Go to a first screen; from what was opened on it, back to it."""
        if mode != self.current_mode:
            await self.switch_mode(mode)
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_leave(self) -> None:
        """Go back; from runs and knowledge that is the live screen, and from there out."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self.current_mode != "live":
            self.switch_mode("live")
        else:
            self.exit()
