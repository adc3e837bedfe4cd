"""TracePanel: strangeness by subsystem over time, what each window was, and one window's shares as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.widget import Widget

from unveil.records.subsystem import Subsystem
from unveil_tui.drawing import words
from unveil_tui.drawing.bars import bar, trace
from unveil_tui.seen import window_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.records.window import WindowSummary

NAME, BAR, PERCENT = 13, 12, 5


class TracePanel(Widget):
    """Eight lines: six subsystems, the verdicts, the time axis; where there is less room, the last of them."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "trace--good", "trace--warn", "trace--bad", "trace--dim", "trace--mark", "trace--here",
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
        tops = [each.verdict.severity for each in shown]
        lines = [self._line(subsystem, shown, column, max(tops, default=0.0), room) for subsystem in Subsystem]
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

    def _line(
        self, subsystem: Subsystem, shown: list[WindowSummary], column: int | None, top: float, room: int
    ) -> Text:
        line = Text(f"{subsystem:{NAME}}", no_wrap=True)
        drawn = trace([_strangeness(each, subsystem) for each in shown], top)
        for at, (char, window) in enumerate(zip(drawn, shown, strict=True)):
            mark = words.mark(window)
            style = self._style(words.MARK_TONES[mark] if mark in "M!m" else "good")
            line.append(char, style + self._style("here") if at == column else style)
        line.append(" " * (room - len(drawn) + 1))
        share = None
        if self._here is not None and self._here.attribution.features:
            share = self._here.attribution.subsystems.get(subsystem, 0.0)
        line.append(bar(share or 0.0, BAR), self._style("mark"))
        line.append(f"{'-' if share is None else f'{share:.0%}':>{PERCENT}}")
        return line

    def _verdicts(self, shown: list[WindowSummary], column: int | None) -> Text:
        line = Text(f"{'verdict':{NAME}}", no_wrap=True)
        for at, window in enumerate(shown):
            mark = words.mark(window)
            style = self._style(words.MARK_TONES[mark])
            line.append(mark, style + self._style("here") if at == column else style)
        return line

    def _axis(self, shown: list[WindowSummary], column: int | None, room: int) -> Text:
        if not shown:
            return Text("no window yet: the first comes three seconds after the watcher's start", self._style("dim"))
        cells = list(f"{words.clock(shown[0].wall_s):{room}}")
        last = words.clock(shown[-1].wall_s)
        if len(shown) >= 18:
            cells[len(shown) - 8 : len(shown)] = last
        if column is not None and column < len(shown) - 1:
            cells[column] = "▲"
        here = self._here
        note = "" if here is None else f" shares of {here.index}"
        return Text(f"{'':{NAME}}{''.join(cells[:room])}{note}", self._style("dim"), no_wrap=True)


def _strangeness(window: WindowSummary, subsystem: Subsystem) -> float | None:
    """Return a subsystem's part in a window's severity; None where the window was not judged."""
    if window.verdict.state == "unknown":
        return None
    return window.verdict.severity * window.attribution.subsystems.get(subsystem, 0.0)
