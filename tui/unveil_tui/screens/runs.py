"""Runs: everything that was planned and done, newest first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import Screen
from textual.widgets import Footer, Static

from unveil.errors import UnveilError
from unveil.records.codec import decode
from unveil.records.plain_text import plain
from unveil.records.run import Run
from unveil_tui.bridge import bridge
from unveil_tui.drawing import words
from unveil_tui.drawing.rows import RUN_COLUMNS, run_rows
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.messages import Open, Told
from unveil_tui.widgets.finder import Finder
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.row_table import RowTable
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil_tui.seen import Seen

LIMIT = 200


class RunsScreen(Screen[None]):
    """The history of runs; Enter tells the story of one."""

    TITLE = "runs"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="enter", action="drill", label="open", help="tell the story of the run under the cursor"),
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
        self._following: int | None = None

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static("runs, newest first", id="runs-title", classes="title", markup=False)
        yield RowTable(RUN_COLUMNS, empty="no run yet: r on an episode plans its fix", id="runs")
        yield Finder()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Listen."""
        bridge(self).news.subscribe(self, self._draw_host)
        bridge(self).told.subscribe(self, self._draw_told)
        self.query_one("#runs", RowTable).focus()

    def on_screen_resume(self) -> None:
        """Ask while this screen is looked at."""
        if self._following is None:
            self._following = bridge(self).follow("runs", {"limit": LIMIT}, every_s=2.0)
        self._draw_host(bridge(self).seen)

    def on_screen_suspend(self) -> None:
        """Ask no more."""
        if self._following is not None:
            bridge(self).unfollow(self._following)
            self._following = None

    def _draw_host(self, seen: Seen) -> None:
        if self.is_current:
            self.query_one(HostLine).show(seen, bridge(self).rights, time.time())

    def _draw_told(self, told: Told) -> None:
        if told.token != self._following:
            return
        title = self.query_one("#runs-title", Static)
        if isinstance(told.answer, UnveilError):
            title.update(plain(told.answer.what, 300))
            return
        runs = [decode(Run, each) for each in told.answer]
        self.query_one("#runs", RowTable).set_rows(run_rows(runs, bridge(self).seen.now_s))
        title.update(f"{words.count(len(runs), 'run')}, newest first")
        show_valid(self)

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        empty = not self.is_mounted or self.query_one("#runs", RowTable).cursor_key is None
        return "there is no run to open" if action == "drill" and empty else ""

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

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        """Open a run."""
        self.post_message(Open("run", event.key))

    def action_find(self) -> None:
        """Filter the runs."""
        self.query_one(Finder).open(self.query_one("#runs", RowTable))

    async def action_back(self) -> None:
        """Clear the filter, else go back to the live screen."""
        if not self.query_one(Finder).clear_filter():
            await self.run_action("app.go('live')")
