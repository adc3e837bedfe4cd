"""KeyLine: the keys that do something now, in one line; a click presses one.

Textual's own footer has a widget a key, which makes it the dearest part of a screen to build and to change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from textual import events

    from unveil_tui.keys import Key

NAMES = {"escape": "esc", "enter": "⏎", "space": "space", "tab": "tab"}
GAP = "  "


class _Keyed(Protocol):
    KEYS: ClassVar[tuple[Key, ...]]

    def why_not(self, action: str) -> str:
        """Return why an action is not possible now."""


class KeyLine(Widget):
    """Keys of the screen that have a label and are possible; where there is no room, the last go, but for the help."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"key-line--key"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._places: list[tuple[int, int, str]] = []  # from, to, action

    def on_mount(self) -> None:
        """Draw anew when another key is possible."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    def _shown(self, width: int) -> list[tuple[str, str, str]]:
        screen = cast("_Keyed", self.screen)
        keys = [
            (key.shown or NAMES.get(key.keys, key.keys.partition(",")[0]), key.label, key.action)
            for key in screen.KEYS
            if key.label and not screen.why_not(key.action.partition("(")[0])
        ]
        while len(keys) > 1 and sum(_width(each) for each in keys) > width:
            del keys[-2]
        return keys

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        width, base = self.size.width, self.rich_style
        if y:
            return Strip.blank(width, base)
        strong = base + self.get_component_rich_style("key-line--key", partial=True)
        segments, at = [], 0
        self._places = []
        for shown, label, action in self._shown(width):
            segments += [Segment(shown, strong), Segment(f" {label}{GAP}", base)]
            end = at + _width((shown, label, action))
            self._places.append((at, end - len(GAP), action))
            at = end
        return Strip(segments).adjust_cell_length(width, base)

    async def on_click(self, event: events.Click) -> None:
        """Press the key under the pointer."""
        x = event.x - self.gutter.left
        for begin, end, action in self._places:
            if begin <= x < end:
                await self.screen.run_action(action)


def _width(key: tuple[str, str, str]) -> int:
    return cell_len(key[0]) + 1 + cell_len(key[1]) + len(GAP)
