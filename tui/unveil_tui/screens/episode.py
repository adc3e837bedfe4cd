"""Episode: why it matched, clause by clause, with the windows around it, and what was said and done about it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Static

from unveil.errors import UnveilError
from unveil.records.codec import decode
from unveil.records.mark import Mark
from unveil.records.match import Episode
from unveil.records.plain_text import plain
from unveil.records.run import Run
from unveil_tui.bridge import bridge
from unveil_tui.drawing import markdown, words
from unveil_tui.drawing.bars import spark
from unveil_tui.drawing.episode import head, said, shares_of, together
from unveil_tui.drawing.rows import CLAUSE_COLUMNS, RUN_COLUMNS, SHARE_COLUMNS, clause_rows, run_rows, share_rows
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.marking import ask_mark
from unveil_tui.messages import Open, Told
from unveil_tui.series import MOST, Series, candidates, decode_series, of_clause
from unveil_tui.widgets.finder import Finder, clear_filter, find_in
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.key_line import KeyLine
from unveil_tui.widgets.row_table import RowTable
from unveil_tui.widgets.series_panel import SeriesPanel
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil_tui.seen import Seen

SERIES_EVERY_S = 2.0
SPARK = 24


class EpisodeScreen(Screen[None]):
    """One episode, by its id."""

    TITLE = "episode"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="escape", action="back", label="back", help="clear the filter; else back"),
        Key(keys="r", action="plan", label="fix", help="plan the fix and show exactly what it would change"),
        Key(keys="u", action="undo", label="undo", help="put back what its last run changed; y confirms"),
        Key(keys="a", action="mark('acknowledged')", label="ack", help="acknowledge: somebody looks at it"),
        Key(keys="s", action="silence", label="silence", help="keep automation away from this episode for a while"),
        Key(keys="f", action="mark('false_positive')", label="false", help="mark it as a false alarm, with the reason"),
        Key(keys="n", action="mark('note')", label="note", help="write a note that the next person reads"),
        Key(keys="o", action="rule", label="rule", help="read the fingerprint, as it is written"),
        Key(keys="enter", action="drill", label="run", help="open the run under the cursor"),
        Key(keys="c", action="copy", help="copy the episode to the clipboard, as Markdown"),
        Key(keys="w", action="export", help="write the episode to a file, as Markdown"),
        Key(keys="slash", action="find", help="filter the table in focus; Esc clears", shown="/"),
        Key(keys="tab", action="app.focus_next", help="other table; j k g G and the arrows move in it"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self, identity: str) -> None:
        super().__init__()
        self.valid_keys: tuple[bool, ...] = ()
        self._identity = identity
        self._episode: Episode | None = None
        self._runs: tuple[Run, ...] = ()
        self._marks: tuple[Mark, ...] = ()
        self._series: dict[str, Series] = {}
        self._following: int | None = None
        self._following_series: int | None = None
        self._following_members: int | None = None
        self._members: dict[str, Any] = {}
        self._asked: tuple[int, tuple[str, ...]] = (-1, ())

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static("asking …", id="episode-head", markup=False)
        with Vertical(id="clauses-pane"):
            yield Static("clauses", id="clauses-title", classes="title", markup=False)
            yield RowTable(CLAUSE_COLUMNS, empty="no clause", id="clauses")
            yield SeriesPanel(id="series")
        with Vertical(id="shares-pane"):
            yield Static("what moved its newest window", id="shares-title", classes="title", markup=False)
            yield RowTable(SHARE_COLUMNS, empty="no attribution: that window is not kept, or was ordinary", id="shares")
        with Vertical(id="runs-pane"):
            yield Static("runs", classes="title", markup=False)
            yield RowTable(RUN_COLUMNS, empty="nothing was planned or done about it yet", id="runs")
        yield Finder()
        yield KeyLine()

    def on_mount(self) -> None:
        """Draw what is known already; ask for the rest."""
        app = bridge(self)
        app.news.subscribe(self, self._draw_news)
        app.told.subscribe(self, self._draw_told)
        self.query_one("#clauses", RowTable).focus()

    def on_screen_resume(self) -> None:
        """Ask while this screen is looked at."""
        if self._following is None:
            self._following = bridge(self).follow("episode", {"id": self._identity}, every_s=2.0)
            self._following_members = bridge(self).follow("members", {"episode": self._identity}, every_s=2.0)
        self._draw_news(bridge(self).seen)

    def on_screen_suspend(self) -> None:
        """Ask no more."""
        self._stop()

    def on_unmount(self) -> None:
        """Ask no more."""
        self._stop()

    def _stop(self) -> None:
        for number in (self._following, self._following_series, self._following_members):
            if number is not None:
                bridge(self).unfollow(number)
        self._following = self._following_series = self._following_members = None
        self._asked = (-1, ())

    def on_resize(self) -> None:
        """Draw for the new width, once the tables have it."""
        self.call_after_refresh(self._draw)

    # Drawing

    def _draw_news(self, seen: Seen) -> None:
        if not self.is_current:
            return
        self.query_one(HostLine).show(seen, bridge(self).rights, time.time())
        self._episode = seen.episode(self._identity) or self._episode
        self._draw()

    def _draw_told(self, told: Told) -> None:
        if not self.is_current or told.token not in (self._following, self._following_series, self._following_members):
            return
        if told.token == self._following_members:
            if not isinstance(told.answer, UnveilError):  # nor has it members
                self._members = told.answer
                self._draw()
            return
        if told.token == self._following_series:
            if not isinstance(told.answer, UnveilError):  # a watcher of an older version has no series
                self._series = decode_series(told.answer)
                self._draw()
            return
        if isinstance(told.answer, UnveilError):
            self.query_one("#episode-head", Static).update(plain(told.answer.what, 400))
            return
        self._episode = decode(Episode, told.answer["episode"])
        self._runs = tuple(decode(Run, each) for each in told.answer["runs"])
        self._marks = tuple(decode(Mark, each) for each in told.answer.get("marks", ()))
        self._draw()

    def _draw(self) -> None:
        episode, seen = self._episode, bridge(self).seen
        if episode is None or not self.is_mounted:
            return
        self._follow_series(episode)
        lines = [*head(episode, seen), *together(self._members, seen.now_s), *said(self._marks, seen.now_s)]
        self.query_one("#episode-head", Static).update("\n".join(lines))
        last = episode.last
        self.query_one("#clauses-title", Static).update(
            f"clauses in window {last.window} at {words.moment(last.wall_s, seen.now_s)}: {last.answer}"
        )
        behind = {each.name: of_clause(each, episode.entity, self._series) for each in last.clauses}
        sparks = {name: spark(series.values, SPARK) for name, series in behind.items() if series is not None}
        self.query_one("#clauses", RowTable).set_rows(clause_rows(last.clauses, sparks))
        shares = self.query_one("#shares", RowTable)
        shares.set_rows(share_rows(shares_of(episode, seen), narrow=shares.narrow))
        self.query_one("#runs", RowTable).set_rows(run_rows(self._runs, seen.now_s))
        self._draw_series()
        show_valid(self)

    def _draw_series(self) -> None:
        episode = self._episode
        key = self.query_one("#clauses", RowTable).cursor_key
        clause = None if episode is None else next((each for each in episode.last.clauses if each.name == key), None)
        series = None if clause is None or episode is None else of_clause(clause, episode.entity, self._series)
        empty = "a fact: it has no series" if clause and clause.subject.startswith("fact") else "no window in memory"
        self.query_one(SeriesPanel).show(series, empty=empty if key else "")

    def _follow_series(self, episode: Episode) -> None:
        """Ask for the windows around its newest one: up to now while it is open."""
        until = episode.last.window if episode.state == "cleared" else -1
        names = tuple(dict.fromkeys(n for each in episode.last.clauses for n in candidates(each, episode.entity)))[
            :MOST
        ]
        if not names or (until, names) == self._asked or not self.is_current:
            return
        self._asked = (until, names)
        if self._following_series is not None:
            bridge(self).unfollow(self._following_series)
        params: dict[str, Any] = {"features": list(names), "limit": 160}
        if until >= 0:
            params["until"] = until
        self._following_series = bridge(self).follow("series", params, every_s=SERIES_EVERY_S)

    # Actions

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        if action in ("plan", "silence", "mark"):
            if reason := bridge(self).rights.why_not(action):
                return reason
            if action == "plan" and self._episode is not None and self._episode.state == "cleared":
                return "it has cleared: there is nothing to fix"
        if action == "undo":
            return bridge(self).rights.why_not("rollback") or ("" if self._runs else "nothing was done about it yet")
        if action == "drill" and (not self.is_mounted or self.query_one("#runs", RowTable).cursor_key is None):
            return "there is no run to open"
        if action in ("copy", "export", "rule", "mark") and self._episode is None:
            return "the episode has not arrived yet"
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def action_plan(self) -> None:
        """Plan the fix, and show the plan."""
        bridge(self).order("plan", {"episode": self._identity}, self._planned)

    def _planned(self, run: dict[str, Any]) -> None:
        if self.is_mounted:
            self.post_message(Open("run", run["id"]))

    def action_undo(self) -> None:
        """Open the newest run, and ask whether to put back what it changed."""
        if self._runs:
            self.post_message(Open("run", self._runs[0].id, ask="roll_back"))

    def action_mark(self, kind: str) -> None:
        """Say something of it."""
        if self._episode is not None:
            ask_mark(bridge(self), self._episode, kind)

    def action_silence(self) -> None:
        """Ask for a silence's reason and length."""
        self.post_message(Open("silence", self._identity))

    def action_rule(self) -> None:
        """Read the fingerprint."""
        if self._episode is not None:
            self.post_message(Open("rule", self._episode.fingerprint))

    def action_copy(self) -> None:
        """Copy the episode as Markdown."""
        bridge(self).copy(self._text(), f"episode {self._identity}")

    def action_export(self) -> None:
        """Write the episode as Markdown."""
        bridge(self).export(self._text(), f"unveil-episode-{self._identity}.md")

    def _text(self) -> str:
        assert self._episode is not None
        return markdown.of_episode(self._episode, self._runs, host=bridge(self).seen.host)

    def action_drill(self) -> None:
        """Open the run under the cursor."""
        if (key := self.query_one("#runs", RowTable).cursor_key) is not None:
            self.post_message(Open("run", key))

    def action_find(self) -> None:
        """Filter the table in focus."""
        focused = self.focused
        find_in(self, focused if isinstance(focused, RowTable) else self.query_one("#clauses", RowTable))

    def action_back(self) -> None:
        """Clear the filter, else go back."""
        if not clear_filter(self):
            self.app.pop_screen()

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        """Open a run."""
        if event.table.id == "runs":
            self.post_message(Open("run", event.key))

    def on_row_table_moved(self, event: RowTable.Moved) -> None:
        """Draw the windows behind the clause under the cursor."""
        if event.table.id == "clauses":
            self._draw_series()
