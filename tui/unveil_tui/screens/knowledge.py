"""Knowledge: the fingerprints in use, what each is about, and why newer files are not in use."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.screen import Screen
from textual.widgets import Static

from unveil.errors import UnveilError
from unveil.records.plain_text import plain
from unveil_tui.bridge import bridge
from unveil_tui.drawing import words
from unveil_tui.drawing.knowledge import COLUMNS, description, knowledge_rows
from unveil_tui.drawing.source import Trouble, trouble
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.messages import Open
from unveil_tui.widgets.finder import Finder, clear_filter, find_in
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.key_line import KeyLine
from unveil_tui.widgets.reader import Reader
from unveil_tui.widgets.row_table import RowTable
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil_tui.messages import Told
    from unveil_tui.seen import Seen


class KnowledgeScreen(Screen[None]):
    """The knowledge base as the watcher uses it."""

    TITLE = "knowledge"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="enter,o", action="rule", label="read", shown="⏎", help="read the fingerprint as it is written (o)"),
        Key(keys="p", action="problem", label="problem", help="read the file of the first problem, at its line"),
        Key(keys="slash", action="find", label="filter", shown="/", help="filter the fingerprints; Esc clears"),
        Key(keys="R", action="reload", label="reload", help="have the watcher look at the files again"),
        Key(keys="tab", action="app.focus_next", help="the list or the description; j k g G and the arrows move"),
        Key(keys="escape", action="back", label="live", help="clear the filter; else back to the live screen"),
        Key(keys="1", action="app.go('live')", help="live (1), runs (2)"),
        Key(keys="2", action="app.go('runs')", label="runs", help="what was planned and done"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self) -> None:
        super().__init__()
        self.valid_keys: tuple[bool, ...] = ()
        self._following: dict[int, str] = {}
        self._told: dict[str, Any] = {}
        self._hits: dict[str, Any] = {}
        self._backtests: dict[str, Any] = {}
        self._unread = ""  # why there is no word on backtests

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static("asking …", id="knowledge-head", markup=False)
        yield RowTable(COLUMNS, empty="no fingerprint", id="fingerprints")
        with Reader(id="description"):
            yield Static(id="description-text", markup=False)
        yield Finder()
        yield KeyLine()

    def on_mount(self) -> None:
        """Listen."""
        bridge(self).news.subscribe(self, self._draw_host)
        bridge(self).told.subscribe(self, self._draw_told)
        self.query_one("#fingerprints", RowTable).focus()

    def on_screen_resume(self) -> None:
        """Ask while this screen is looked at."""
        if not self._following:
            self._following[bridge(self).follow("knowledge", {}, every_s=3.0)] = "knowledge"
            self._following[bridge(self).follow("hits", {}, every_s=10.0)] = "hits"
            self._following[bridge(self).follow("backtests", {}, every_s=10.0)] = "backtests"
        self._draw_host(bridge(self).seen)

    def on_screen_suspend(self) -> None:
        """Ask no more."""
        for number in self._following:
            bridge(self).unfollow(number)
        self._following = {}

    def _draw_host(self, seen: Seen) -> None:
        if self.is_current:
            self.query_one(HostLine).show(seen, bridge(self).rights, time.time())
            self._draw()

    def _draw_told(self, told: Told) -> None:
        asked = self._following.get(told.token)
        if asked is None or not self.is_mounted:
            return
        failed = told.answer if isinstance(told.answer, UnveilError) else None
        if asked == "backtests":
            self._unread = "" if failed is None else plain(failed.what, 300)
            self._backtests = {} if failed is not None else told.answer
        elif failed is not None:
            self.query_one("#knowledge-head", Static).update(plain(failed.what, 300))
            return
        elif asked == "hits":
            self._hits = told.answer
        else:
            self._told = told.answer
        self._draw()

    def _draw(self) -> None:
        state = self._told.get("state")
        if not state:
            return
        seen = bridge(self).seen
        lines = [
            (
                f"generation {state['generation']} since {words.moment(state['at_s'], seen.now_s)}: "
                f"{words.count(state['fingerprints'], 'fingerprint')}, "
                f"{words.count(len(self._told.get('correlations', ())), 'correlation')}, "
                f"{words.count(state['remediations'], 'remediation')} "
                f"in {plain(self._told.get('root', ''))}"
            )
        ]
        if state["stale_since_s"] is not None:
            lines.append(f"*STALE since {words.moment(state['stale_since_s'], seen.now_s)}: the files changed, and")
            lines += [f"  {plain(problem, 400)}" for problem in state["problems"][:8]]
        if self._unread:
            lines.append(f"backtests: {self._unread}")
        self.query_one("#knowledge-head", Static).update("\n".join(lines))
        self.query_one("#fingerprints", RowTable).set_rows(
            knowledge_rows(self._told, seen, self._hits, self._backtests)
        )
        self._describe()
        show_valid(self)

    def _describe(self) -> None:
        key = self.query_one("#fingerprints", RowTable).cursor_key or ""
        text = description(key, self._told, self._backtests, bridge(self).seen.now_s)
        self.query_one("#description-text", Static).update(text)

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        if action == "problem":
            return "" if self._trouble() else "no file has a problem"
        if action == "rule" and (not self.is_mounted or self.query_one("#fingerprints", RowTable).cursor_key is None):
            return "there is no fingerprint under the cursor"
        return bridge(self).rights.why_not("reload") if action == "reload" else ""

    def _trouble(self) -> Trouble | None:
        """Return the first problem that names a file and a line."""
        problems = self._told.get("state", {}).get("problems", ())
        found = (trouble(each, str(self._told.get("root", ""))) for each in problems)
        return next((each for each in found if each is not None), None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def on_row_table_moved(self) -> None:
        """Describe what the cursor is on."""
        self._describe()

    def action_rule(self) -> None:
        """Read the fingerprint under the cursor."""
        if (key := self.query_one("#fingerprints", RowTable).cursor_key) is not None:
            self.post_message(Open("rule", key))

    def action_problem(self) -> None:
        """Read the file of the first problem."""
        if (found := self._trouble()) is not None:
            self.post_message(Open("rule", found.path))

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        """Read a fingerprint."""
        self.post_message(Open("rule", event.key))

    def action_reload(self) -> None:
        """Have the watcher look at the files again."""
        bridge(self).order("reload", {}, lambda _: self.notify("the watcher looks at the files again", markup=False))

    def action_find(self) -> None:
        """Filter the fingerprints."""
        find_in(self, self.query_one("#fingerprints", RowTable))

    async def action_back(self) -> None:
        """Clear the filter, else go back to the live screen."""
        if not clear_filter(self):
            await self.run_action("app.go('live')")
