"""TracePanel: strangeness by subsystem over time, what each window was, and one window's shares as signed bars."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.widget import Widget

from unveil.records.subsystem import Subsystem
from unveil_tui.drawing import words
from unveil_tui.drawing.bars import CALM, bar, tower
from unveil_tui.seen import window_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.records.window import WindowSummary

NAME, BAR, PERCENT = 13, 12, 5
MOST_ROWS = 3  # of one subsystem


class TracePanel(Widget):
    """Six subsystems, the verdicts, the time axis: eight lines, or more where there is room for taller traces.

    Where there is less room, the last of them.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "trace--good", "trace--warn", "trace--bad", "trace--dim", "trace--mark", "trace--here", "trace--column",
    }  # fmt: skip

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._windows: Sequence[WindowSummary] = ()
        self._here: WindowSummary | None = None

    def show(self, windows: Sequence[WindowSummary], here: WindowSummary | None) -> None:
        """Draw these windows, oldest first, and the shares of one of them."""
        self._windows, self._here = windows, here
        self.refresh()

    def render(self) -> Text:
        """Draw everything that fits; the selected window is always among it."""
        room = max(8, self.size.width - NAME - BAR - PERCENT - 3)
        shown, column = self._visible(room)
        rows = max(1, min(MOST_ROWS, (self.size.height - 2) // len(Subsystem)))
        lines = [line for each in Subsystem for line in self._subsystem(each, shown, column, room, rows)]
        lines += [self._verdicts(shown, column), self._axis(shown, column, room)]
        return Text("\n", no_wrap=True, overflow="crop").join(lines[-max(1, self.size.height) :])

    def _visible(self, room: int) -> tuple[list[WindowSummary], int | None]:
        here = None if self._here is None else window_key(self._here)
        place = next((at for at, each in enumerate(self._windows) if window_key(each) == here), None)
        end = len(self._windows)
        if place is not None and place < end - room:
            end = min(end, place + room // 2)
        begin = max(0, end - room)
        return list(self._windows[begin:end]), None if place is None else place - begin

    def _style(self, tone: str) -> Any:
        return self.get_component_rich_style(f"trace--{tone}", partial=True)

    def _subsystem(
        self, subsystem: Subsystem, shown: list[WindowSummary], column: int | None, room: int, rows: int
    ) -> list[Text]:
        top = max([CALM, *(each.verdict.severity for each in shown)])
        drawn = tower([_strangeness(each, subsystem) for each in shown], low=0.0, high=top, rows=rows)
        tones = [_tone(each) for each in shown]
        lines = []
        for number, cells in enumerate(drawn):
            last = number == rows - 1
            line = Text(f"{subsystem if last else '':{NAME}}", no_wrap=True)
            self._append(line, cells, tones, column, "column")
            if last:
                line.append(" " * (room - len(cells) + 1))
                self._append_share(line, subsystem)
            lines.append(line)
        return lines

    def _append_share(self, line: Text, subsystem: Subsystem) -> None:
        share = None
        if self._here is not None and self._here.attribution.features:
            share = self._here.attribution.subsystems.get(subsystem, 0.0)
        line.append(bar(share or 0.0, BAR), self._style("mark"))
        line.append(f"{'-' if share is None else f'{share:.0%}':>{PERCENT}}")

    def _verdicts(self, shown: list[WindowSummary], column: int | None) -> Text:
        line = Text(f"{'verdict':{NAME}}", no_wrap=True)
        marks = "".join(words.mark(each) for each in shown)
        self._append(line, marks, [words.MARK_TONES[mark] for mark in marks], column, "here")
        return line

    def _append(self, line: Text, drawn: str, tones: list[str], column: int | None, at: str) -> None:
        """Append one character a window, in runs of one style: a terminal far away gets few bytes."""
        for (tone, here), run in groupby(enumerate(tones), key=lambda each: (each[1], each[0] == column)):
            places = [place for place, _ in run]
            style = self._style(tone)
            line.append(drawn[places[0] : places[-1] + 1], style + self._style(at) if here else style)

    def _axis(self, shown: list[WindowSummary], column: int | None, room: int) -> Text:
        if not shown:
            return Text("no window yet: the first comes three seconds after the watcher's start", self._style("dim"))
        first, last = words.clock(shown[0].wall_s), words.clock(shown[-1].wall_s)
        cells = list(first.ljust(room))
        stepped = column is not None and column < len(shown) - 1
        if len(shown) >= 2 * len(first) + 2 and not (stepped and column is not None and column >= len(shown) - 9):
            cells[len(shown) - len(last) : len(shown)] = last
        if stepped and column is not None:
            cells[column] = "▲"
        here = self._here
        note = "" if here is None else f" of what moved {here.index}"
        return Text(f"{'':{NAME}}{''.join(cells[:room])}{note}", self._style("dim"), no_wrap=True)


def _tone(window: WindowSummary) -> str:
    mark = words.mark(window)
    return words.MARK_TONES[mark] if mark in "M!m" else "good"


def _strangeness(window: WindowSummary, subsystem: Subsystem) -> float | None:
    """Return a subsystem's part in a window's severity; None where the window was not judged."""
    if window.verdict.state == "unknown":
        return None
    return window.verdict.severity * window.attribution.subsystems.get(subsystem, 0.0)
