"""TooSmall: what is said instead of a screen that does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widget import Widget

if TYPE_CHECKING:
    from textual.geometry import Size

WIDTH, HEIGHT = 60, 15


def fits(size: Size) -> bool:
    """Tell whether a screen can be read in a terminal of this size."""
    return size.width >= WIDTH and size.height >= HEIGHT


class TooSmall(Widget):
    """Covers the screen while the terminal is too small; nothing can be confirmed then."""

    def render(self) -> str:
        """Say how large the terminal is and has to be."""
        size = self.app.size
        return f"terminal {size.width}x{size.height}: unveil needs {WIDTH}x{HEIGHT}"
