"""Episode: why it matched, clause by clause, what moved its newest window, and what was done about it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Footer, Static

from unveil.errors import UnveilError
from unveil.records.codec import decode
from unveil.records.match import Episode
from unveil.records.plain_text import plain, span
from unveil.records.run import Run
from unveil_tui.bridge import bridge
from unveil_tui.drawing import words
from unveil_tui.drawing.rows import CLAUSE_COLUMNS, RUN_COLUMNS, SHARE_COLUMNS, clause_rows, run_rows, share_rows
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.messages import Open, Told
from unveil_tui.widgets.finder import Finder
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.row_table import NARROW, RowTable
from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil.records.attribution import FeatureShare
    from unveil_tui.seen import Seen


class EpisodeScreen(Screen[None]):
    """One episode, by its id."""

    TITLE = "episode"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="escape", action="back", label="back", help="clear the filter; else back"),
        Key(keys="r", action="plan", label="fix", help="plan the fix and show exactly what it would change"),
        Key(keys="s", action="silence", label="silence", help="keep automation away from this episode for a while"),
        Key(keys="enter", action="drill", label="open run", help="open the run under the cursor"),
        Key(keys="slash", action="find", label="filter", shown="/", help="filter the table in focus; Esc clears"),
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
        self._following: int | None = None

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield Static("asking …", id="episode-head", markup=False)
        with Vertical(id="clauses-pane"):
            yield Static("clauses", id="clauses-title", classes="title", markup=False)
            yield RowTable(CLAUSE_COLUMNS, empty="no clause", id="clauses")
        with Vertical(id="shares-pane"):
            yield Static("what moved its newest window", id="shares-title", classes="title", markup=False)
            yield RowTable(SHARE_COLUMNS, empty="no attribution: that window is not kept, or was ordinary", id="shares")
        with Vertical(id="runs-pane"):
            yield Static("runs", classes="title", markup=False)
            yield RowTable(RUN_COLUMNS, empty="nothing was planned yet: r plans the fix", id="runs")
        yield Finder()
        yield Footer(show_command_palette=False)

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
        self._draw_news(bridge(self).seen)

    def on_screen_suspend(self) -> None:
        """Ask no more."""
        self._stop()

    def on_unmount(self) -> None:
        """Ask no more."""
        self._stop()

    def _stop(self) -> None:
        if self._following is not None:
            bridge(self).unfollow(self._following)
            self._following = None

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._draw()

    # Drawing

    def _draw_news(self, seen: Seen) -> None:
        if not self.is_current:
            return
        self.query_one(HostLine).show(seen, bridge(self).rights, time.time())
        self._episode = seen.episode(self._identity) or self._episode
        self._draw()

    def _draw_told(self, told: Told) -> None:
        if told.token != self._following or not self.is_current:
            return
        if isinstance(told.answer, UnveilError):
            self.query_one("#episode-head", Static).update(plain(told.answer.what, 400))
            return
        self._episode = decode(Episode, told.answer["episode"])
        self._runs = tuple(decode(Run, each) for each in told.answer["runs"])
        self._draw()

    def _draw(self) -> None:
        episode, seen = self._episode, bridge(self).seen
        if episode is None or not self.is_mounted:
            return
        self.query_one("#episode-head", Static).update("\n".join(_head(episode, seen)))
        last = episode.last
        self.query_one("#clauses-title", Static).update(
            f"clauses in window {last.window} at {words.moment(last.wall_s, seen.now_s)}: {last.answer}"
        )
        self.query_one("#clauses", RowTable).set_rows(clause_rows(last.clauses))
        narrow = self.app.size.width < NARROW
        self.query_one("#shares", RowTable).set_rows(share_rows(_shares(episode, seen), narrow=narrow))
        self.query_one("#runs", RowTable).set_rows(run_rows(self._runs, seen.now_s))
        show_valid(self)

    # Actions

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        if action in ("plan", "silence"):
            if reason := bridge(self).rights.why_not(action):
                return reason
            if action == "plan" and self._episode is not None and self._episode.state == "cleared":
                return "it has cleared: there is nothing to fix"
        if action == "drill" and (not self.is_mounted or self.query_one("#runs", RowTable).cursor_key is None):
            return "there is no run to open"
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

    def action_silence(self) -> None:
        """Ask for a silence's reason and length."""
        self.post_message(Open("silence", self._identity))

    def action_drill(self) -> None:
        """Open the run under the cursor."""
        if (key := self.query_one("#runs", RowTable).cursor_key) is not None:
            self.post_message(Open("run", key))

    def action_find(self) -> None:
        """Filter the table in focus."""
        focused = self.focused
        self.query_one(Finder).open(focused if isinstance(focused, RowTable) else self.query_one("#clauses", RowTable))

    def action_back(self) -> None:
        """Clear the filter, else go back."""
        if not self.query_one(Finder).clear_filter():
            self.app.pop_screen()

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        """Open a run."""
        if event.table.id == "runs":
            self.post_message(Open("run", event.key))


def _head(episode: Episode, seen: Seen) -> list[str]:
    began = episode.started_s if episode.fired_s is None else episode.fired_s
    end = episode.cleared_s if episode.cleared_s is not None else max(seen.now_s, episode.last_s)
    times = [f"since {words.moment(episode.started_s, seen.now_s)}"]
    for name, at_s in (("fired", episode.fired_s), ("cleared", episode.cleared_s)):
        times += [] if at_s is None else [f"{name} {words.moment(at_s, seen.now_s)}"]
    lines = [
        f"{plain(episode.fingerprint)} on {words.entity(episode.entity)}: {episode.state}",
        f"{episode.id}  {', '.join(times)}, for {span(end - began)}, {words.count(episode.windows, 'matching window')}",
    ]
    bound = {name: value for name, value in episode.last.bindings.items() if value != episode.entity.key}
    if bound:
        lines.append("with " + ", ".join(f"{plain(name)} {plain(value)}" for name, value in bound.items()))
    if (silence := seen.silenced(episode)) is not None:
        until = words.moment(silence.until_s, seen.now_s)
        lines.append(f"silenced until {until} by {plain(silence.actor)}: {plain(silence.reason, 300)}")
    return lines


def _shares(episode: Episode, seen: Seen) -> tuple[FeatureShare, ...]:
    """Return what moved the episode's newest matching window, as far as it is kept."""
    for window in reversed(seen.windows):
        if window.index == episode.last.window and abs(window.wall_s - episode.last.wall_s) < 1:
            return window.attribution.features
    return ()
