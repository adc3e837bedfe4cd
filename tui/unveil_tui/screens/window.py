"""Window: what one window was judged by, what moved it, and which fingerprints answered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.containers import Container, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Static

from unveil.records.codec import decode
from unveil.records.plain_text import plain
from unveil.records.window import WindowSummary
from unveil_tui.bridge import bridge
from unveil_tui.drawing import words
from unveil_tui.drawing.bars import bar
from unveil_tui.drawing.rows import SHARE_COLUMNS, SIGHTING_COLUMNS, share_rows, sighting_rows
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.messages import Open
from unveil_tui.seen import Seen, window_key
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.row_table import NARROW, RowTable
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult


class WindowScreen(Screen[None]):
    """One window, by its key ``watch:index``."""

    TITLE = "window"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="escape", action="app.leave", label="back", help="back"),
        Key(
            keys="left_square_bracket",
            action="step(-1)",
            label="step",
            shown="[ ]",
            help="the window before",
        ),
        Key(keys="right_square_bracket", action="step(1)", shown="]", help="the window after"),
        Key(keys="enter", action="drill", label="episode", help="open the episode of the fingerprint under the cursor"),
        Key(keys="tab", action="app.focus_next", help="other table"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self, key: str) -> None:
        super().__init__()
        self.valid_keys: tuple[bool, ...] = ()
        self._key = key
        self._window: WindowSummary | None = None

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static(id="verdict", markup=False)
        with Container(id="detail"):
            with Vertical(id="shares-pane"):
                yield Static("what moved it", classes="title", markup=False)
                yield RowTable(SHARE_COLUMNS, empty="nothing to attribute: an ordinary window", id="shares")
            with Vertical(id="sightings-pane"):
                yield Static("fingerprints that answered", classes="title", markup=False)
                yield RowTable(SIGHTING_COLUMNS, empty="none matched, none was unknown", id="sightings")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Draw the window, from what is known or from the journal."""
        bridge(self).news.subscribe(self, self._draw_host)
        self.query_one("#sightings", RowTable).focus()
        self._draw_host(bridge(self).seen)
        self._load(self._key)

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._draw()

    def _draw_host(self, seen: Seen) -> None:
        if self.is_current:
            self.query_one(HostLine).show(seen, bridge(self).rights, time.time())

    def _load(self, key: str) -> None:
        known = next((each for each in bridge(self).seen.windows if window_key(each) == key), None)
        if known is not None:
            self._show(known)
            return
        watch, _, index = key.partition(":")
        bridge(self).order("window", {"watch": int(watch), "index": int(index)}, self._told)

    def _told(self, answer: dict[str, Any]) -> None:
        self._show(decode(WindowSummary, answer))

    def _show(self, window: WindowSummary) -> None:
        self._window, self._key = window, window_key(window)
        if self.is_mounted:
            self._draw()
            show_valid(self)

    def _draw(self) -> None:
        window = self._window
        if window is None:
            return
        verdict = window.verdict
        lines = [
            f"window {window.index} of watch {window.watch} at {words.clock(window.wall_s)}: {verdict.state}"
            + (f" ({plain(verdict.reason)})" if verdict.reason else "")
            + f", severity {verdict.severity:.2f} by {verdict.rule or '-'}, {words.count(window.ticks_missed, 'tick')}"
            + f" missed, knowledge base {window.knowledge}"
        ]
        lines += [
            f"  {vote.detector:18} score {vote.score:9.3f} {'>' if vote.anomalous else '≤'} {vote.threshold:.3f}"
            + ("" if vote.p_value is None else f"  p {vote.p_value:.4f}")
            + ("  votes anomalous" if vote.anomalous else "")
            for vote in verdict.votes
        ]
        if window.attribution.features:
            shares = sorted(window.attribution.subsystems.items(), key=lambda each: -each[1])
            lines += [f"  {name:13}{bar(share, 24)} {share:4.0%}" for name, share in shares if share >= 0.005]
        self.query_one("#verdict", Static).update("\n".join(lines))
        narrow = self.app.size.width < NARROW
        self.query_one("#shares", RowTable).set_rows(share_rows(window.attribution.features, narrow=narrow))
        self.query_one("#sightings", RowTable).set_rows(sighting_rows(window.sightings))

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        if action == "drill" and self._episode() is None:
            return "no episode of that fingerprint is known"
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def _episode(self) -> str | None:
        key = self.query_one("#sightings", RowTable).cursor_key if self.is_mounted else None
        episodes = bridge(self).seen.episodes
        return next((each.id for each in episodes if f"{each.fingerprint} {each.entity}" == key), None)

    def action_step(self, step: int) -> None:
        """Show the window before or after."""
        watch, _, index = self._key.partition(":")
        if int(index) + step >= 0:
            self._load(f"{watch}:{int(index) + step}")

    def action_drill(self) -> None:
        """Open the episode of the fingerprint under the cursor."""
        if (episode := self._episode()) is not None:
            self.post_message(Open("episode", episode))

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        """Open the episode behind a row."""
        if event.table.id == "sightings":
            if reason := self.why_not("drill"):
                self.notify(reason, severity="warning", markup=False)
            self.action_drill()
