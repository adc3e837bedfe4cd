"""TracePanel: strangeness by subsystem over time, what each window was, and one window's shares as signed bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from unveil.records.subsystem import Subsystem
from unveil_tui.drawing import words
from unveil_tui.drawing.bars import CALM, bar, tower

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style

    from unveil.records.window import WindowSummary

NAME, BAR, PERCENT = 13, 12, 5
MOST_ROWS = 3  # of one subsystem


class TracePanel(Widget):
    """Six subsystems, the verdicts, the time axis: eight lines, or more where there is room for taller traces.

    Where there is less room, the last of them. Its lines are drawn as segments once per change: it is the part of the
    screen that changes whole with every window.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "trace--good", "trace--warn", "trace--bad", "trace--dim", "trace--mark", "trace--here", "trace--column",
    }  # fmt: skip

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._windows: Sequence[WindowSummary] = ()
        self._here: WindowSummary | None = None
        self._absent = ""
        self._strips: list[Strip] = []
        self._drawn_for: tuple[object, ...] = ()
        self._styles: dict[str, Style] = {}
        self._tones: list[str] = []  # of the windows that are in sight: the same in all traces

    def show(self, windows: Sequence[WindowSummary], here: WindowSummary | None, *, absent: str = "") -> None:
        """Draw these windows, oldest first, and the shares of one of them; no trace of a subsystem that is absent."""
        self._windows, self._here, self._absent = windows, here, absent
        self._drawn_for = ()
        self.refresh()

    def notify_style_update(self) -> None:
        """Draw anew in other colours."""
        super().notify_style_update()
        self._drawn_for = ()

    def render_line(self, y: int) -> Strip:
        """Draw a line of everything that fits; the selected window is always among it."""
        if self._drawn_for != (self.size,):
            self._strips = self._draw()
            self._drawn_for = (self.size,)
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.rich_style)

    def _draw(self) -> list[Strip]:
        base = self.rich_style
        tones = ("good", "warn", "bad", "dim", "mark", "here", "column")
        self._styles = {"": base}
        for tone in tones:
            self._styles[tone] = base + self.get_component_rich_style(f"trace--{tone}", partial=True)
        width = self.size.width
        room = max(8, width - NAME - BAR - PERCENT - 3)
        shown, column = self._visible(room)
        rows = max(1, min(MOST_ROWS, (self.size.height - 2) // len(Subsystem)))
        self._tones = [_tone(each) for each in shown]
        lines = [line for each in Subsystem for line in self._subsystem(each, shown, column, room, rows)]
        marks = "".join(words.mark(each) for each in shown)
        verdicts = self._runs(marks, [words.MARK_TONES[mark] for mark in marks], column, "here")
        lines += [[Segment(f"{'verdict':{NAME}}", base), *verdicts], self._axis(shown, column, room)]
        kept = lines[-max(1, self.size.height) :]
        return [Strip(line).adjust_cell_length(width, base) for line in kept]

    def _visible(self, room: int) -> tuple[list[WindowSummary], int | None]:
        end = len(self._windows)
        place = None if self._here is None else self._place(self._here)
        if place is not None and place < end - room:
            end = min(end, place + room // 2)
        begin = max(0, end - room)
        return list(self._windows[begin:end]), None if place is None else place - begin

    def _place(self, here: WindowSummary) -> int | None:
        """Return where a window stands among all; mostly it is the newest, so they are gone through from there."""
        for place in reversed(range(len(self._windows))):
            if (self._windows[place].index, self._windows[place].watch) == (here.index, here.watch):
                return place
        return None

    def _subsystem(
        self, subsystem: Subsystem, shown: list[WindowSummary], column: int | None, room: int, rows: int
    ) -> list[list[Segment]]:
        if subsystem == self._absent and shown:
            said = f"{subsystem:{NAME}}{'none on this host: not measured':{room}} {'':{BAR}}{'-':>{PERCENT}}"
            blank = [Segment("", self._styles[""])]
            return [*([blank] * (rows - 1)), [Segment(said, self._styles["dim"])]]
        top = max([CALM, *(each.verdict.severity for each in shown)])
        drawn = tower([_strangeness(each, subsystem) for each in shown], low=0.0, high=top, rows=rows)
        lines = []
        for number, cells in enumerate(drawn):
            last = number == rows - 1
            line = [Segment(f"{subsystem if last else '':{NAME}}", self._styles[""])]
            line += self._runs(cells, self._tones, column, "column")
            if last:
                line += [Segment(" " * (room - len(cells) + 1), self._styles[""]), *self._share(subsystem)]
            lines.append(line)
        return lines

    def _share(self, subsystem: Subsystem) -> list[Segment]:
        share = None
        if self._here is not None and self._here.attribution.features:
            share = self._here.attribution.subsystems.get(subsystem, 0.0)
        percent = f"{'-' if share is None else f'{share:.0%}':>{PERCENT}}"
        return [Segment(bar(share or 0.0, BAR), self._styles["mark"]), Segment(percent, self._styles[""])]

    def _runs(self, drawn: str, tones: list[str], column: int | None, at: str) -> list[Segment]:
        """Return one character a window, in runs of one style: a terminal far away gets few bytes."""
        segments = []
        begin = 0
        for end in range(1, len(drawn) + 1):
            if end == len(drawn) or tones[end] != tones[begin] or column in (end, end - 1):
                style = self._styles[tones[begin]]
                segments.append(Segment(drawn[begin:end], style + self._styles[at] if begin == column else style))
                begin = end
        return segments

    def _axis(self, shown: list[WindowSummary], column: int | None, room: int) -> list[Segment]:
        if not shown:
            return [
                Segment("no window yet: the first comes three seconds after the watcher's start", self._styles["dim"])
            ]
        first, last = words.clock(shown[0].wall_s), words.clock(shown[-1].wall_s)
        cells = list(first.ljust(room))
        stepped = column is not None and column < len(shown) - 1
        if len(shown) >= 2 * len(first) + 2 and not (stepped and column is not None and column >= len(shown) - 9):
            cells[len(shown) - len(last) : len(shown)] = last
        if stepped and column is not None:
            cells[column] = "▲"
        here = self._here
        note = "" if here is None else f" of what moved {here.index}"
        return [Segment(f"{'':{NAME}}{''.join(cells[:room])}{note}", self._styles["dim"])]


def _tone(window: WindowSummary) -> str:
    mark = words.mark(window)
    return words.MARK_TONES[mark] if mark in "M!m" else "good"


def _strangeness(window: WindowSummary, subsystem: Subsystem) -> float | None:
    """Return a subsystem's part in a window's severity; None where the window was not judged."""
    if window.verdict.state == "unknown":
        return None
    return window.verdict.severity * window.attribution.subsystems.get(subsystem, 0.0)
