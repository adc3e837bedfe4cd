"""Window: what one window was judged by, what moved it, and every fingerprint that matches it or nearly does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.containers import Container, Vertical
from textual.screen import Screen
from textual.widgets import Static

from unveil.records.codec import decode
from unveil.records.plain_text import plain
from unveil.records.window import WindowSummary
from unveil_tui.bridge import bridge
from unveil_tui.drawing import markdown, words
from unveil_tui.drawing.rows import SHARE_COLUMNS, share_rows
from unveil_tui.drawing.shares import subsystem_lines
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.messages import Open
from unveil_tui.near import Near, decode_near
from unveil_tui.seen import Seen, window_key
from unveil_tui.series import MOST, Series, decode_series
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.key_line import KeyLine
from unveil_tui.widgets.near_panel import NearPanel
from unveil_tui.widgets.row_table import RowTable
from unveil_tui.widgets.series_panel import SeriesPanel
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

SERIES = 160  # windows before


class WindowScreen(Screen[None]):
    """One window, by its key ``watch:index``."""

    TITLE = "window"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="escape", action="app.leave", label="back", help="back"),
        Key(keys="left_square_bracket", action="step(-1)", label="step", shown="[ ]", help="the window before"),
        Key(keys="right_square_bracket", action="step(1)", shown="]", help="the window after"),
        Key(keys="enter", action="drill", label="episode", help="open the episode of the fingerprint under the cursor"),
        Key(keys="o", action="rule", label="rule", help="read the fingerprint under the cursor, as it is written"),
        Key(keys="D", action="draft", label="draft", help="draft a fingerprint from this window; writes nothing"),
        Key(keys="c", action="copy", label="copy", help="copy the window to the clipboard, as Markdown"),
        Key(keys="w", action="export", help="write the window to a file, as Markdown"),
        Key(keys="tab", action="app.focus_next", help="other table; j k g G and the arrows move in it"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self, key: str) -> None:
        super().__init__()
        self.valid_keys: tuple[bool, ...] = ()
        self._key = key
        self._window: WindowSummary | None = None
        self._near: tuple[Near, ...] = ()
        self._series: dict[str, Series] = {}
        self._asked: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static(id="verdict", markup=False)
        with Container(id="detail"):
            with Vertical(id="shares-pane"):
                yield Static("what moved it", id="shares-title", classes="title", markup=False)
                yield RowTable(SHARE_COLUMNS, empty="nothing to attribute: an ordinary window", id="shares")
                yield SeriesPanel(id="series")
            yield NearPanel(id="near-pane")
        yield KeyLine()

    def on_mount(self) -> None:
        """Draw the window, from what is known or from the journal."""
        bridge(self).news.subscribe(self, self._draw_host)
        self.query_one("#near", RowTable).focus()
        self._draw_host(bridge(self).seen)
        self._load(self._key)

    def on_resize(self) -> None:
        """Draw for the new width, once the tables have it."""
        self.call_after_refresh(self._draw)

    def _draw_host(self, seen: Seen) -> None:
        if self.is_current:
            self.query_one(HostLine).show(seen, bridge(self).rights, time.time())

    # What is asked

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
        self._near, self._series, self._asked = (), {}, ()
        if not self.is_attached:
            return
        self._draw()
        self.query_one(NearPanel).show((), empty="asking …")
        if bridge(self).seen.status.get("watch") == window.watch:
            bridge(self).order("near", {"window": window.index}, self._told_near)
            self._ask_series(tuple(str(each.feature) for each in window.attribution.features))
        else:
            self.query_one(NearPanel).show((), empty=_FORGOTTEN)
        show_valid(self)

    def _told_near(self, told: dict[str, Any]) -> None:
        if self._window is None or told["window"] != self._window.index or not self.is_attached:
            return
        self._near = decode_near(told["near"])
        self.query_one(NearPanel).show(self._near, empty=_NONE if told["kept"] else _FORGOTTEN)
        self._ask_series(self.query_one(NearPanel).wanted)
        show_valid(self)

    def _ask_series(self, features: tuple[str, ...]) -> None:
        wanted = tuple(name for name in dict.fromkeys(features) if name not in self._asked)[:MOST]
        if not wanted or self._window is None:
            return
        self._asked += wanted
        index = self._window.index

        def told(answer: list[dict[str, Any]]) -> None:
            if self._window is not None and self._window.index == index and self.is_attached:
                self._series |= decode_series(answer)
                self.query_one(NearPanel).learn(self._series)
                self._draw_series()

        bridge(self).order("series", {"features": list(wanted), "until": index, "limit": SERIES}, told)

    # Drawing

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
        if verdict.votes:
            lines.append(
                "  ".join(
                    f"{vote.detector} {vote.score:.2f} {'>' if vote.anomalous else '≤'} {vote.threshold:.2f}"
                    + ("" if vote.p_value is None else f" p {vote.p_value:.3f}")
                    + (" ANOMALOUS" if vote.anomalous else "")
                    for vote in verdict.votes
                )
            )
        lines += subsystem_lines(window.attribution, width=self.app.size.width - 4)
        self.query_one("#verdict", Static).update("\n".join(lines))
        shares = self.query_one("#shares", RowTable)
        shares.set_rows(share_rows(window.attribution.features, narrow=shares.narrow))
        self._draw_series()

    def _draw_series(self) -> None:
        key = self.query_one("#shares", RowTable).cursor_key
        series = None if key is None else self._series.get(key)
        empty = "" if key is None else "the windows before are no longer in memory" if key in self._asked else ""
        self.query_one(SeriesPanel).show(series, empty=empty)

    # What may be asked

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        if action == "drill" and self._episode() is None:
            return "no episode of that fingerprint is known"
        if action == "rule" and self._picked() is None:
            return "no fingerprint is near this window"
        if action == "draft":
            if self._window is None or not self._window.attribution.features:
                return "nothing moved this window: choose one that is anomalous"
            return bridge(self).rights.why_not("draft")
        if action in ("copy", "export") and self._window is None:
            return "the window has not arrived yet"
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def _picked(self) -> Near | None:
        return self.query_one(NearPanel).picked if self.is_attached else None

    def _episode(self) -> str | None:
        picked = self._picked()
        episodes = bridge(self).seen.episodes
        return next(
            (each.id for each in episodes if picked and f"{each.fingerprint} {each.entity}" == picked.key), None
        )

    def action_step(self, step: int) -> None:
        """Show the window before or after."""
        watch, _, index = self._key.partition(":")
        if int(index) + step >= 0:
            self._load(f"{watch}:{int(index) + step}")

    def action_drill(self) -> None:
        """Open the episode of the fingerprint under the cursor."""
        if (episode := self._episode()) is not None:
            self.post_message(Open("episode", episode))

    def action_rule(self) -> None:
        """Read the fingerprint under the cursor."""
        if (picked := self._picked()) is not None:
            self.post_message(Open("rule", picked.match.fingerprint))

    def action_draft(self) -> None:
        """Draft a fingerprint from this window."""
        self.post_message(Open("draft", self._key))

    def _text(self) -> str:
        assert self._window is not None
        return markdown.of_window(self._window, self._near, host=bridge(self).seen.host)

    def action_copy(self) -> None:
        """Copy the window as Markdown."""
        bridge(self).copy(self._text(), f"window {self._key}")

    def action_export(self) -> None:
        """Write the window as Markdown."""
        bridge(self).export(self._text(), f"unveil-window-{self._key.replace(':', '-')}.md")

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        """Open the episode behind a row."""
        if event.table.id == "near":
            if reason := self.why_not("drill"):
                self.notify(reason, severity="warning", markup=False)
            self.action_drill()

    def on_row_table_moved(self, event: RowTable.Moved) -> None:
        """Draw the feature under the cursor."""
        if event.table.id == "shares":
            self._draw_series()

    def on_near_panel_picked(self) -> None:
        """Ask for the windows before, of what the clauses are about."""
        self._ask_series(self.query_one(NearPanel).wanted)
        show_valid(self)


_NONE = "none: no fingerprint holds in half of its clauses"
_FORGOTTEN = "what that window was judged by is no longer in memory; its episodes keep their clauses"
