"""RowTable: rows by key, drawn only where they are seen.

Cost is that of the visible lines, whatever arrives. The cursor belongs to a key: rows that come, go, or are filtered
away around it do not move it to another record. All text is drawn as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from unveil.records.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from unveil_tui.drawing.rows import Column, Row

NARROW = 110
MOST_DRAWN = 300


class RowTable(ScrollView, can_focus=True):
    """A table with a cursor, a filter, and fixed columns.

    Args:
        columns: from left to right.
        empty: what is said while there is no row.
        tail: new rows keep the cursor at the end until it is moved away.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "row-table--header", "row-table--cursor", "row-table--good", "row-table--warn", "row-table--bad",
        "row-table--dim", "row-table--mark",
    }  # fmt: skip
    BINDINGS: ClassVar[list[Any]] = [
        Binding("j,down", "move(1)", "down", show=False),
        Binding("k,up", "move(-1)", "up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("g,home", "edge(0)", "first", show=False),
        Binding("G,end", "edge(-1)", "last", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row; *by_hand* when a person moved it."""

        def __init__(self, table: RowTable, key: str | None, *, by_hand: bool) -> None:
            super().__init__()
            self.table, self.key, self.by_hand = table, key, by_hand

        @property
        def control(self) -> RowTable:
            """Return the table."""
            return self.table

    class Chosen(Message):
        """A row is to be opened."""

        def __init__(self, table: RowTable, key: str) -> None:
            super().__init__()
            self.table, self.key = table, key

        @property
        def control(self) -> RowTable:
            """Return the table."""
            return self.table

    def __init__(self, columns: Sequence[Column], *, empty: str, tail: bool = False, id: str) -> None:  # noqa: A002  # Textual's word
        super().__init__(id=id)
        self._columns = tuple(columns)
        self.empty = empty
        self._all: Sequence[Row] = ()
        self._rows: list[Row] = []
        self._places: dict[str, int] = {}
        self._key: str | None = None
        self._at = 0
        self._filter = ""
        self.tail = tail
        self._drawn: dict[str, tuple[Row, Strip]] = {}  # lines that are drawn already, while width and colours stay
        self._drawn_width = 0
        self._styles: dict[str, Style] = {}

    # What it holds

    @property
    def cursor_key(self) -> str | None:
        """Return the key of the row under the cursor, None when no row is visible."""
        return self._key

    @property
    def keys(self) -> list[str]:
        """Return the keys of the rows that pass the filter, in order."""
        return [row.key for row in self._rows]

    @property
    def narrow(self) -> bool:
        """Return whether there is room for the narrow columns only."""
        return self.container_size.width < NARROW

    @property
    def filtered(self) -> str:
        """Return the filter's text."""
        return self._filter

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows; the cursor stays on its key, or where it was when the key is gone."""
        if rows and rows is self._all and not self.tail:
            return
        self._all = rows
        self._show()

    def set_filter(self, text: str) -> None:
        """Show only rows whose text holds all the words; a word that begins with ``!`` must not be there."""
        self._filter = text.strip()
        self._show()

    def select(self, key: str) -> bool:
        """Put the cursor on a key; tell whether it is there."""
        if key in self._places:
            self._go(self._places[key], by_hand=False)
        return key in self._places

    def _show(self) -> None:
        words = self._filter.casefold().split()
        self._rows = [row for row in self._all if _passes(row, words)] if words else list(self._all)
        self._places = {row.key: place for place, row in enumerate(self._rows)}
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._rows) + 1)
        before = self._key
        if not self._rows:
            self._key = None
        elif self.tail:
            self._at = len(self._rows) - 1
        elif before in self._places:
            self._at = self._places[before]
        else:
            self._at = min(self._at, len(self._rows) - 1)
        if self._rows:
            self._key = self._rows[self._at].key
        if self._key != before:
            self.post_message(self.Moved(self, self._key, by_hand=False))
        self._reveal()
        self.refresh()

    # Moving

    def action_move(self, step: int) -> None:
        """Move the cursor by rows."""
        self._go(self._at + step, by_hand=True)

    def action_page(self, step: int) -> None:
        """Move the cursor by pages."""
        self._go(self._at + step * max(1, self.size.height - 2), by_hand=True)

    def action_edge(self, place: int) -> None:
        """Move the cursor to the first (0) or the last (-1) row."""
        self._go(place if place == 0 else len(self._rows) - 1, by_hand=True)

    def action_choose(self) -> None:
        """Open the row under the cursor."""
        if self._key is not None:
            self.post_message(self.Chosen(self, self._key))

    def _go(self, place: int, *, by_hand: bool) -> None:
        if not self._rows:
            return
        self._at = max(0, min(place, len(self._rows) - 1))
        self._key = self._rows[self._at].key
        self._reveal()
        self.refresh()
        self.post_message(self.Moved(self, self._key, by_hand=by_hand))

    def _reveal(self) -> None:
        height = self.scrollable_content_region.height
        if height > 1:
            top = int(self.scroll_offset.y)
            if self._at < top:
                self.scroll_to(y=self._at, animate=False, force=True, immediate=True)
            elif self._at > top + height - 2:
                self.scroll_to(y=self._at - height + 2, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._rows) + 1)
        self._reveal()

    def on_click(self, event: events.Click) -> None:
        """Move the cursor; a click on its row, or a double click, opens it."""
        place = event.y + int(self.scroll_offset.y) - 1
        if event.y >= 1 and 0 <= place < len(self._rows):
            again = place == self._at and self.has_focus
            self._go(place, by_hand=True)
            if again or event.chain > 1:
                self.action_choose()

    # Drawing

    def notify_style_update(self) -> None:
        """Draw anew in other colours."""
        super().notify_style_update()
        self._drawn, self._styles = {}, {}

    def render_line(self, y: int) -> Strip:
        """Draw the header, a row, or nothing."""
        width = self.scrollable_content_region.width
        if width != self._drawn_width:
            self._drawn, self._drawn_width = {}, width
        if y == 0:
            style = self.get_component_rich_style("row-table--header")
            cells = [(column.title, "") for column in self._columns]
            return Strip(self._segments(cells, width, style, cursor=False), width)
        place = y - 1 + int(self.scroll_offset.y)
        if 0 <= place < len(self._rows):
            here, row = place == self._at, self._rows[place]
            if not here:
                return self._plain_line(row, width)
            style = self.get_component_rich_style("row-table--cursor")
            if not self.has_focus:
                style = self.rich_style + Style(bold=True, underline=True)
            return Strip(self._segments(row.cells, width, style, cursor=True), width)
        text = ""
        if y == 1 and not self._rows:
            text = f"no row holds {plain(self._filter)!r}; Esc clears the filter" if self._all else self.empty
        dim = self.get_component_rich_style("row-table--dim")
        return Strip([Segment(set_cell_size(text, width), dim)], width)

    def _plain_line(self, row: Row, width: int) -> Strip:
        """Return the line of a row that the cursor is not on; a row that stays as it was is drawn once."""
        known = self._drawn.get(row.key)
        if known is not None and known[0] is row:
            return known[1]
        strip = Strip(self._segments(row.cells, width, self.rich_style, cursor=False), width)
        if len(self._drawn) > MOST_DRAWN:
            self._drawn = {}
        self._drawn[row.key] = (row, strip)
        return strip

    def _tint(self, tone: str, style: Style) -> Style:
        if tone not in self._styles:
            colour = self.get_component_rich_style(f"row-table--{tone}", partial=True)
            self._styles[tone] = Style(color=colour.color, bold=colour.bold, dim=colour.dim)
        return style + self._styles[tone]

    def _segments(self, cells: Sequence[tuple[str, str]], width: int, style: Style, *, cursor: bool) -> list[Segment]:
        segments = []
        widths = self._widths(width)
        for column, (text, tone), size in zip(self._columns, cells, widths, strict=True):
            if size <= 0:
                continue
            drawn = _fit(plain(text, 400), size, right=column.right)
            tint = style
            if tone and not (cursor and self.has_focus):
                tint = self._tint(tone, style)
            segments += [Segment(drawn, tint), Segment(" ", style)]
        used = sum(cell_len(segment.text) for segment in segments)
        segments.append(Segment(" " * max(0, width - used), style))
        return list(Segment.adjust_line_length(segments, width, style))

    def _widths(self, width: int) -> list[int]:
        narrow = self.narrow
        fixed = [column.narrow if narrow and column.narrow is not None else column.width for column in self._columns]
        open_columns = sum(1 for size in fixed if size == 0)
        shown = sum(1 for size in fixed if size >= 0)
        rest = max(0, width - sum(size for size in fixed if size > 0) - shown)
        share, extra = divmod(rest, open_columns or 1)
        widths = []
        for size in fixed:
            if size == 0:
                widths.append(share + (1 if extra > 0 else 0))
                extra -= 1
            else:
                widths.append(size)
        return widths

    def region_of(self, key: str) -> Region | None:
        """Return where a row is drawn, relative to the table; None when it is not there."""
        place = self._places.get(key)
        if place is None:
            return None
        return Region(0, place + 1 - int(self.scroll_offset.y), self.size.width, 1)


def _passes(row: Row, words: list[str]) -> bool:
    text = " ".join(cell for cell, _ in row.cells).casefold()
    return all((word[1:] not in text) if word.startswith("!") and len(word) > 1 else word in text for word in words)


def _fit(text: str, width: int, *, right: bool) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…" if width > 1 else set_cell_size(text, width)
    return " " * (width - length) + text if right else text + " " * (width - length)
