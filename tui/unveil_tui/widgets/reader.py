"""Reader: text that is scrolled by the keys that move in tables."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.binding import Binding
from textual.containers import VerticalScroll


class Reader(VerticalScroll, can_focus=True):
    """Scrolls its text; arrows, pages and Home and End are Textual's own."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
        Binding("g", "scroll_home", "first", show=False),
        Binding("G", "scroll_end", "last", show=False),
    ]
