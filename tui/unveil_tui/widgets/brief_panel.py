"""BriefPanel: the few lines that a person on call reads first; none while nothing is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Sequence


class BriefPanel(Widget):
    """Lines as they are; the first says what is wrong."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"brief--what", "brief--word"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._lines: list[str] = []

    def show(self, lines: Sequence[str]) -> None:
        """Draw these lines."""
        if lines != self._lines:
            as_many = len(lines) == len(self._lines)
            self._lines = list(lines)
            self.display = bool(lines)
            self.refresh(layout=not as_many)

    def render(self) -> Text:
        """Draw them; nothing in them is markup."""
        text = Text(no_wrap=True, overflow="ellipsis")
        for number, line in enumerate(self._lines):
            word, gap, rest = line.partition("  ")
            strong = self.get_component_rich_style("brief--word" if number else "brief--what", partial=True)
            text.append("\n" if number else "").append(word, strong).append(gap + rest)
        return text
