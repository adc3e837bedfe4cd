"""Live: is this host losing throughput, since when, where, and what was found."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from textual.containers import Container, Vertical
from textual.screen import Screen
from textual.widgets import Static

from unveil.records.codec import decode
from unveil.records.subsystem import Subsystem
from unveil.records.window import WindowSummary
from unveil_tui.asking import Prompt, moment_of
from unveil_tui.bridge import bridge
from unveil_tui.drawing import markdown, words
from unveil_tui.drawing.brief import brief
from unveil_tui.drawing.rows import EPISODE_COLUMNS, WINDOW_COLUMNS, Row, episode_rows, window_row
from unveil_tui.keys import Key, bindings, say_why_not, show_valid
from unveil_tui.marking import ask_mark
from unveil_tui.messages import Open
from unveil_tui.seen import MAX_WINDOWS, Seen, window_key
from unveil_tui.widgets.brief_panel import BriefPanel
from unveil_tui.widgets.finder import Finder, clear_filter, find_in
from unveil_tui.widgets.host_line import HostLine
from unveil_tui.widgets.key_line import KeyLine
from unveil_tui.widgets.row_table import RowTable
from unveil_tui.widgets.too_small import TooSmall
from unveil_tui.widgets.trace_panel import TracePanel

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

PAGE = 200  # windows asked for when someone steps back beyond what is kept


class LiveScreen(Screen[None]):
    """Windows, traces, episodes. Follows the newest window until someone pauses or moves back."""

    TITLE = "live"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key(keys="space", action="pause", label="pause", help="pause on this window, or follow the newest again"),
        Key(
            keys="left_square_bracket",
            action="step(-1)",
            label="step",
            shown="[ ]",
            help="one window back",
        ),
        Key(keys="right_square_bracket", action="step(1)", shown="]", help="one window on"),
        Key(keys="t", action="jump", label="time", help="jump to a time: 18:19, 11-28 18:19:30, -10m"),
        Key(
            keys="enter,e",
            action="drill",
            label="explain",
            shown="⏎",
            help="open and explain what the cursor is on (e)",
        ),
        Key(keys="r", action="plan", label="fix", help="plan the fix of the episode under the cursor"),
        Key(keys="u", action="run('roll_back')", help="undo what the episode's last run changed; y confirms"),
        Key(keys="x", action="run('cancel')", help="cancel the episode's last run; y confirms"),
        Key(keys="a", action="mark('acknowledged')", label="ack", help="acknowledge the episode: somebody looks at it"),
        Key(keys="s", action="silence", label="silence", help="keep automation away from the episode for a while"),
        Key(keys="f", action="mark('false_positive')", help="mark the episode as a false alarm, with the reason"),
        Key(keys="n", action="mark('note')", help="write a note on the episode that the next person reads"),
        Key(keys="c", action="copy", help="copy the window under the cursor to the clipboard, as Markdown"),
        Key(keys="w", action="export", help="write the window under the cursor to a file, as Markdown"),
        Key(keys="slash", action="find", label="filter", shown="/", help="filter the table in focus; Esc clears"),
        Key(keys="escape", action="back", help="clear the filter; else follow again"),
        Key(keys="tab", action="app.focus_next", help="other table; j k g G and the arrows move in it"),
        Key(keys="2", action="app.go('runs')", label="runs", help="runs (2), knowledge (3), live (1)"),
        Key(keys="3", action="app.go('knowledge')", label="kb", help="the fingerprints in use"),
        Key(keys="question_mark", action="app.explain_keys", label="help", shown="?", help="this help"),
    )
    BINDINGS: ClassVar[list[Any]] = bindings(KEYS)

    def __init__(self) -> None:
        super().__init__()
        self.valid_keys: tuple[bool, ...] = ()
        self._frozen: tuple[WindowSummary, ...] | None = None  # what is shown while paused
        self._known: dict[tuple[int, int], Row] = {}
        self._shown: tuple[WindowSummary, ...] | None = None  # what the rows of windows were made of
        self._window_rows: list[Row] = []
        self._drawn: tuple[object, ...] = ()  # what stands on the screen, by identity
        self._drawn_episodes: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield TooSmall()
        yield HostLine(id="host")
        yield BriefPanel(id="brief")
        yield Static(id="rhythm", markup=False)
        yield TracePanel(id="trace")
        with Container(id="tables"):
            with Vertical(id="left"):
                yield Static(id="windows-title", classes="title", markup=False)
                yield RowTable(WINDOW_COLUMNS, empty="no window yet", tail=True, id="windows")
            with Vertical(id="right"):
                yield Static(id="episodes-title", classes="title", markup=False)
                yield RowTable(EPISODE_COLUMNS, empty="no episode: nothing that is known was seen", id="episodes")
        yield Finder()
        yield KeyLine()

    def on_mount(self) -> None:
        """Draw whenever there is news."""
        bridge(self).news.subscribe(self, self._draw)
        self.query_one("#windows", RowTable).focus()

    def on_screen_resume(self) -> None:
        """Draw what is known: at first, and what arrived while another screen was shown."""
        self._drawn = self._drawn_episodes = ()
        self._draw(bridge(self).seen)

    # Drawing

    def _draw(self, seen: Seen) -> None:
        if not self.is_current:
            return
        self.query_one(HostLine).show(seen, bridge(self).rights, time.time())
        self.query_one(BriefPanel).show(brief(seen, may_plan=self._may_plan))
        self._draw_rhythm(seen)
        of_episodes = (seen.episodes, seen.silences, seen.marks)
        drawn = (seen.windows, *of_episodes, seen.gone_since_s, self._frozen)
        if _same(drawn, self._drawn):
            return
        self._drawn = drawn
        if not _same(of_episodes, self._drawn_episodes):
            self._drawn_episodes = of_episodes
            self.query_one("#episodes", RowTable).set_rows(episode_rows(seen))
        self._draw_title(seen)
        self._draw_windows(seen)
        show_valid(self)

    @property
    def _may_plan(self) -> bool:
        return not bridge(self).rights.why_not("plan")

    def _draw_rhythm(self, seen: Seen) -> None:
        """Say the pace of the work; why there is none only where there is room for it."""
        text = words.rhythm(seen.status)
        self.set_class(bool(text), "-paced")
        self.set_class(text.startswith("("), "-unpaced")
        self._say("#rhythm", text)

    def _draw_title(self, seen: Seen) -> None:
        opened = sum(1 for each in seen.episodes if each.state != "cleared")
        cleared = len(seen.episodes) - opened
        fixes = ", r fixes" if self._may_plan else ""
        self._say(
            "#episodes-title",
            f"{words.count(opened, 'open episode')}{f', {cleared} cleared' if cleared else ''}"
            f"{f'; Tab goes there, Enter explains{fixes}' if opened else ''}"
            f"{_filtered(self.query_one('#episodes', RowTable))}",
        )

    def _say(self, title: str, text: str) -> None:
        """Change a title, where it is another one: each is a line that need not be drawn."""
        line = self.query_one(title, Static)
        if line.content != text:
            line.update(text, layout=False)

    def _draw_windows(self, seen: Seen) -> None:
        shown = seen.windows if self._frozen is None else self._frozen
        table = self.query_one("#windows", RowTable)
        table.tail = self._frozen is None
        table.set_rows(self._rows(shown))
        here = self._window()
        self.query_one(TracePanel).show(shown, here, absent=_absent(seen))
        title = f"{words.count(len(shown), 'window')}: {words.LEGEND}"
        if self._frozen is not None:
            newest = _place(seen.windows[-1]) if seen.windows else (0, 0)
            newer = sum(1 for each in seen.windows if _place(each) > _place(shown[-1])) if shown else 0
            at = "" if here is None else f" at {words.clock(here.wall_s)}, window {here.index}"
            title = f"PAUSED{at}; {newer} newer (newest {newest[1]}); Space follows"
        self._say("#windows-title", title + _filtered(table))

    def _rows(self, shown: tuple[WindowSummary, ...]) -> list[Row]:
        """Return the rows of windows; a window never changes, so neither does its row."""
        if shown is not self._shown:
            known = self._known
            self._known = {place: known.get(place) or window_row(each) for each in shown for place in (_place(each),)}
            self._shown, self._window_rows = shown, list(self._known.values())
        return self._window_rows

    def _window(self) -> WindowSummary | None:
        """Return the window that is looked at: under the cursor, the newest while following."""
        shown = bridge(self).seen.windows if self._frozen is None else self._frozen
        if self._frozen is None:
            return shown[-1] if shown else None
        key = self.query_one("#windows", RowTable).cursor_key
        return next((each for each in shown if window_key(each) == key), None)

    # Actions

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""
        if action in ("plan", "silence", "mark", "run"):
            if reason := bridge(self).rights.why_not("rollback" if action == "run" else action):
                return reason
            return "" if self._episode() else "move to an episode first (Tab)"
        if action in ("copy", "export") and self._window() is None:
            return "there is no window yet"
        if action == "drill" and self._key() is None:
            return "nothing to open yet"
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002  # Textual's signature
        """Let only possible actions through, and into the footer."""
        return not self.why_not(action)

    def on_key(self, event: events.Key) -> None:
        """Say why a key does nothing."""
        say_why_not(self, event)

    def _table(self) -> RowTable:
        episodes = self.query_one("#episodes", RowTable)
        return episodes if self.focused is episodes else self.query_one("#windows", RowTable)

    def _key(self) -> str | None:
        return self._table().cursor_key

    def _episode(self) -> str | None:
        table = self._table()
        return table.cursor_key if table.id == "episodes" else None

    def action_pause(self) -> None:
        """Pause, or follow again."""
        seen = bridge(self).seen
        self._frozen = seen.windows if self._frozen is None and seen.windows else None
        self._draw_windows(seen)

    def action_step(self, step: int) -> None:
        """Pause and step through the windows; beyond the oldest, ask the journal for older ones."""
        seen = bridge(self).seen
        if self._frozen is None:
            self._frozen = seen.windows
        table = self.query_one("#windows", RowTable)
        table.tail = False
        if step < 0 and self._frozen and table.cursor_key == window_key(self._frozen[0]):
            first = self._frozen[0]
            bridge(self).order("windows", {"limit": PAGE, "before": [first.watch, first.index]}, self._older)
            return
        table.action_move(step)

    def _older(self, told: list[dict[str, Any]]) -> None:
        if self._frozen is None:
            return
        older = tuple(decode(WindowSummary, each) for each in reversed(told))
        if not older:
            self.notify("the journal holds no older window", markup=False)
            return
        self._frozen = (*older, *self._frozen)[:MAX_WINDOWS]
        self._draw_windows(bridge(self).seen)
        self.query_one("#windows", RowTable).action_move(-1)

    def action_drill(self) -> None:
        """Open what is under the cursor."""
        if (table := self._table()).cursor_key is not None:
            self.post_message(Open("episode" if table.id == "episodes" else "window", table.cursor_key))

    def action_plan(self) -> None:
        """Plan the fix of the episode under the cursor, and show the plan."""
        if (episode := self._episode()) is not None:
            bridge(self).order("plan", {"episode": episode}, lambda run: self.post_message(Open("run", run["id"])))

    def action_silence(self) -> None:
        """Ask for a silence's reason and length."""
        if (episode := self._episode()) is not None:
            self.post_message(Open("silence", episode))

    def action_mark(self, kind: str) -> None:
        """Say something of the episode under the cursor."""
        identity = self._episode()
        if identity is not None and (episode := bridge(self).seen.episode(identity)) is not None:
            ask_mark(bridge(self), episode, kind)

    def action_run(self, ask: str) -> None:
        """Open the newest run of the episode under the cursor, and ask there."""
        if (identity := self._episode()) is None:
            return

        def told(answer: dict[str, Any]) -> None:
            if answer["runs"]:
                self.post_message(Open("run", answer["runs"][0]["id"], ask=ask))
            else:
                self.notify("nothing was done about it yet: r plans the fix", severity="warning", markup=False)

        bridge(self).order("episode", {"id": identity}, told)

    def action_jump(self) -> None:
        """Ask for a time, and pause there."""
        now_s = bridge(self).seen.now_s
        bridge(self).ask(
            Prompt(
                title="Jump to a time",
                lines=("18:19, 18:19:30, 11-28 18:19 or -10m. The journal keeps ordinary windows for a day.",),
                does="goes there",
                hint="-10m",
                wrong=lambda text: "" if moment_of(text, now_s) is not None else "write 18:19, 11-28 18:19 or -10m",
            ),
            self._jump_to,
        )

    def _jump_to(self, text: str) -> None:
        seen = bridge(self).seen
        at_s = moment_of(text, seen.now_s)
        if at_s is None:
            return

        def told(answer: list[dict[str, Any]]) -> None:
            found = tuple(decode(WindowSummary, each) for each in reversed(answer))
            if not found:
                self.notify(f"the journal holds no window from before {words.clock(at_s)}", markup=False)
                return
            self._frozen = found
            nearest = min(found, key=lambda each: abs(each.wall_s - at_s))
            self._draw_windows(bridge(self).seen)
            self.query_one("#windows", RowTable).focus()
            self.query_one("#windows", RowTable).select(window_key(nearest))

        bridge(self).order("windows", {"limit": MAX_WINDOWS, "until_s": at_s + PAGE / 2}, told)

    def action_copy(self) -> None:
        """Copy the window under the cursor as Markdown."""
        if (window := self._window()) is not None:
            text = markdown.of_window(window, (), host=bridge(self).seen.host)
            bridge(self).copy(text, f"window {window_key(window)}")

    def action_export(self) -> None:
        """Write the window under the cursor as Markdown."""
        if (window := self._window()) is not None:
            text = markdown.of_window(window, (), host=bridge(self).seen.host)
            bridge(self).export(text, f"unveil-window-{window.watch}-{window.index}.md")

    def action_find(self) -> None:
        """Filter the table in focus."""
        find_in(self, self._table())

    def action_back(self) -> None:
        """Clear the filter, else follow again."""
        if not clear_filter(self) and self._frozen is not None:
            self.action_pause()

    def on_row_table_chosen(self, event: RowTable.Chosen) -> None:
        """Open a row."""
        self.post_message(Open("episode" if event.table.id == "episodes" else "window", event.key))

    def on_row_table_moved(self, event: RowTable.Moved) -> None:
        """Pause when someone moves away from the newest window; show what the cursor is on."""
        seen = bridge(self).seen
        if event.table.id == "windows" and event.by_hand:
            last = event.table.keys[-1] if event.table.keys else None
            if self._frozen is None and event.key != last:
                self._frozen = seen.windows
            self._draw_windows(seen)
        show_valid(self)

    def on_descendant_focus(self) -> None:
        """What a key acts on depends on the table in focus."""
        show_valid(self)


def _same(these: tuple[object, ...], those: tuple[object, ...]) -> bool:
    return len(these) == len(those) and all(a is b for a, b in zip(these, those, strict=True))


def _place(window: WindowSummary) -> tuple[int, int]:
    return (window.watch, window.index)


def _filtered(table: RowTable) -> str:
    return f"  [filter {table.filtered!r}: {len(table.keys)} shown]" if table.filtered else ""


def _absent(seen: Seen) -> str:
    """Return the subsystem that this host has not; empty where it has all. A flat trace would say that all is well."""
    moved = any(each.attribution.subsystems.get(Subsystem.GPU) for each in seen.windows)
    return Subsystem.GPU if seen.status.get("shape", {}).get("gpus") == 0 and not moved else ""
