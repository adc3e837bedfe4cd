"""Finder: the line that filters a table as one types. Esc clears it and keeps the selection, Enter keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding
from textual.widgets import Input

if TYPE_CHECKING:
    from textual.screen import Screen

    from unveil_tui.widgets.row_table import RowTable


def find_in(screen: Screen[Any], table: RowTable) -> None:
    """Open the finder of a screen on one of its tables."""
    screen.query_one(Finder).open(table)


def clear_filter(screen: Screen[Any]) -> bool:
    """Clear the filter of a screen; tell whether there was one."""
    return screen.query_one(Finder).clear_filter()


class Finder(Input):
    """Filters one table at a time; out of sight while it is not used."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape", "clear", "clear the filter", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__(placeholder="filter: words that must be there, !word that must not", id="finder")
        self.cursor_blink = False
        self._table: RowTable | None = None

    def open(self, table: RowTable) -> None:
        """Filter this table from now on."""
        if self._table is not None and self._table is not table:
            self._table.set_filter("")
        self._table = table
        self.value = table.filtered
        self.add_class("-open")
        self.screen.set_focus(self)  # at once: the next letter is meant for it

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while typing."""
        event.stop()
        if self._table is not None and self.has_class("-open"):
            self._table.set_filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep the filter and go back to the table."""
        event.stop()
        if self._table is not None:
            self._table.focus()
        if not self.value:
            self.remove_class("-open")

    def action_clear(self) -> None:
        """Clear the filter, keep the selection, go back to the table."""
        self.clear_filter()

    def clear_filter(self) -> bool:
        """Clear the filter; tell whether there was one."""
        was = self.has_class("-open")
        self.remove_class("-open")
        self.value = ""
        if self._table is not None:
            self._table.set_filter("")
            if was:
                self._table.focus()
        return was
