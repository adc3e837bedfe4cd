"""SeriesPanel: one feature over the windows around the one that is looked at, against what is expected of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.widget import Widget

from unveil.records.plain_text import plain, quantity
from unveil_tui.drawing.bars import USUAL, tower

if TYPE_CHECKING:
    from unveil_tui.series import Series


class SeriesPanel(Widget):
    """A line on what it is, and as many rows of a chart as there is room for."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"series--line", "series--out", "series--dim", "series--here"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._series: Series | None = None
        self._empty = ""

    def show(self, series: Series | None, *, empty: str) -> None:
        """Draw a series; *empty* is said where there is none."""
        if series is not self._series or empty != self._empty:
            self._series, self._empty = series, empty
            self.refresh()

    def render(self) -> Text:
        """Draw it."""
        series = self._series
        if series is None:
            return Text(self._empty, self._style("dim"), no_wrap=True, overflow="ellipsis")
        head = Text(plain(series.feature), no_wrap=True, overflow="ellipsis")
        there = [value for value in series.values if value is not None]
        now = series.values[-1] if series.values else None
        head.append(f"  {quantity(now)}")
        if series.expected is not None:
            spread = "" if series.sigma is None else f" ± {quantity(USUAL * series.sigma)}"
            head.append(f"  expected {quantity(series.expected)}{spread}", self._style("dim"))
        if there:
            head.append(f"  least {quantity(min(there))}, most {quantity(max(there))}", self._style("dim"))
        rows = self.size.height - 1
        if rows < 1:
            return head
        return Text("\n", no_wrap=True, overflow="crop").join([head, *self._chart(series, there, rows)])

    def _chart(self, series: Series, there: list[float], rows: int) -> list[Text]:
        width = max(1, self.size.width)
        shown = list(series.values)[-width:]
        if not there:
            return [Text("absent in all of these windows", self._style("dim"))]
        low, high = min(there), max(there)
        if series.expected is not None:
            low, high = min(low, series.expected), max(high, series.expected)
        low, high = (low, high) if high > low else (low, low + 1)
        drawn = tower(shown, low=low, high=high, rows=rows)
        usual = _rows_of(series, low, high, rows)
        lines = []
        for number, text in enumerate(drawn):
            line = Text(no_wrap=True)
            for at, (cell, value) in enumerate(zip(text, shown, strict=True)):
                style = self._style("out" if series.is_far(value) else "line")
                if at == len(shown) - 1:
                    style += self._style("here")
                if cell == " " and number in usual:
                    cell, style = "┄", self._style("dim")  # noqa: PLW2901  # the expected, where nothing is drawn over it
                line.append(cell, style)
            lines.append(line)
        return lines

    def _style(self, name: str) -> Any:
        return self.get_component_rich_style(f"series--{name}", partial=True)


def _rows_of(series: Series, low: float, high: float, rows: int) -> set[int]:
    """Return the row, counted from above, in which the expected value lies."""
    if series.expected is None:
        return set()
    place = min(rows - 1, int((series.expected - low) / (high - low) * rows))
    return {rows - 1 - place}
