"""Runs: everything that was planned and done, newest first, and whether anyone altered that record."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import Screen
from textual.widgets import Static

from unveil.errors import UnveilError
from unveil.records.codec import decode
from unveil.records.plain_text import plain
from unveil.records.run import Run, RunState
from unveil_tui.bridge import bridge
from unveil_tui.drawing import words
from unveil_tui.drawing.rows import RUN_COLUMNS, run_rows
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.messages import Open, Told
from unveil_tui.widgets.finder import Finder, clear_filter, find_in
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.key_line import KeyLine
from unveil_tui.widgets.row_table import RowTable
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil_tui.seen import Seen

LIMIT = 500
VIEWS: dict[str, frozenset[RunState]] = {
    "all": frozenset(RunState),
    "waiting": frozenset({RunState.PLANNED, RunState.APPROVED}),
    "under way": frozenset({RunState.APPLYING, RunState.VERIFYING, RunState.ROLLING_BACK}),
    "need a look": frozenset(
        {RunState.FAILED_DIRTY, RunState.INCONCLUSIVE, RunState.REVERTED_BY_OTHER, RunState.FAILED_CLEAN}
    ),
    "kept": frozenset({RunState.KEPT}),
}


class RunsScreen(Screen[None]):
    """The history of runs; Enter tells the story of one."""

    TITLE = "runs"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="enter", action="drill", label="open", help="tell the story of the run under the cursor"),
        Key(keys="u", action="ask('roll_back')", label="undo", help="put back what the run changed; y confirms"),
        Key(keys="x", action="ask('cancel')", label="cancel", help="stop the run under the cursor; y confirms"),
        Key(keys="v", action="view", label="view", help="all, waiting, under way, those that need a look, kept"),
        Key(keys="slash", action="find", label="filter", shown="/", help="filter the runs; Esc clears"),
        Key(keys="escape", action="back", label="live", help="clear the filter; else back to the live screen"),
        Key(keys="1", action="app.go('live')", help="live (1), knowledge (3); j k g G and the arrows move"),
        Key(keys="3", action="app.go('knowledge')", label="knowledge", help="the fingerprints in use"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self) -> None:
        super().__init__()
        self.valid_keys: tuple[bool, ...] = ()
        self._following: dict[int, str] = {}
        self._runs: tuple[Run, ...] = ()
        self._audit = ""
        self._view = "all"

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static("runs, newest first", id="runs-title", classes="title", markup=False)
        yield RowTable(RUN_COLUMNS, empty="no run yet: r on an episode plans its fix", id="runs")
        yield Finder()
        yield KeyLine()

    def on_mount(self) -> None:
        """Listen."""
        bridge(self).news.subscribe(self, self._draw_host)
        bridge(self).told.subscribe(self, self._draw_told)
        self.query_one("#runs", RowTable).focus()

    def on_screen_resume(self) -> None:
        """Ask while this screen is looked at."""
        if not self._following:
            self._following[bridge(self).follow("runs", {"limit": LIMIT}, every_s=2.0)] = "runs"
            self._following[bridge(self).follow("audit", {}, every_s=10.0)] = "audit"
        self._draw_host(bridge(self).seen)

    def on_screen_suspend(self) -> None:
        """Ask no more."""
        for number in self._following:
            bridge(self).unfollow(number)
        self._following = {}

    def _draw_host(self, seen: Seen) -> None:
        if self.is_current:
            self.query_one(HostLine).show(seen, bridge(self).rights, time.time())

    def _draw_told(self, told: Told) -> None:
        asked = self._following.get(told.token)
        if asked is None or not self.is_mounted:
            return
        if isinstance(told.answer, UnveilError):
            self.query_one("#runs-title", Static).update(plain(told.answer.what, 300))
        elif asked == "audit":
            broken = told.answer["broken_link"]
            self._audit = (
                "record unbroken" if broken is None else f"RECORD ALTERED at step {broken}: see unveil runs audit"
            )
            self._draw()
        else:
            self._runs = tuple(decode(Run, each) for each in told.answer)
            self._draw()

    def _draw(self) -> None:
        runs = [each for each in self._runs if each.state in VIEWS[self._view]]
        self.query_one("#runs", RowTable).set_rows(run_rows(runs, bridge(self).seen.now_s))
        parts = [words.count(len(runs), "run"), "newest first", f"view: {self._view} of {len(self._runs)}", self._audit]
        self.query_one("#runs-title", Static).update(", ".join(part for part in parts if part), layout=False)
        show_valid(self)

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        empty = not self.is_mounted or self.query_one("#runs", RowTable).cursor_key is None
        if action == "ask" and (reason := bridge(self).rights.why_not("rollback")):
            return reason
        return "there is no run under the cursor" if action in ("drill", "ask") and empty else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def action_drill(self) -> None:
        """Tell the story of the run under the cursor."""
        if (key := self.query_one("#runs", RowTable).cursor_key) is not None:
            self.post_message(Open("run", key))

    def action_ask(self, ask: str) -> None:
        """Open the run under the cursor, and ask there."""
        if (key := self.query_one("#runs", RowTable).cursor_key) is not None:
            self.post_message(Open("run", key, ask=ask))

    def action_view(self) -> None:
        """Go over to the next view."""
        names = list(VIEWS)
        self._view = names[(names.index(self._view) + 1) % len(names)]
        self._draw()

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        """Open a run."""
        self.post_message(Open("run", event.key))

    def action_find(self) -> None:
        """Filter the runs."""
        find_in(self, self.query_one("#runs", RowTable))

    async def action_back(self) -> None:
        """Clear the filter, else go back to the live screen."""
        if not clear_filter(self):
            await self.run_action("app.go('live')")
