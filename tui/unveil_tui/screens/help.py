"""Help: the keys of the screen below, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from unveil_tui.keys import Key

NAMES = {"escape": "Esc", "tab": "Tab", "enter": "Enter", "space": "Space"}
EVERYWHERE = (
    ("1 2 3", "live, runs, knowledge; 0 the fleet, where several hosts were named"),
    ("X", "stop all automation on this host, with a reason; again: let it act"),
    (": ctrl+p", "command palette: jump to an episode, a window, a screen; choose a theme"),
    ("q", "back; on the live screen: leave. ctrl+q leaves at once"),
)


class HelpScreen(ModalScreen[None]):
    """Lists keys; any of Esc, q and ? closes it."""

    BINDINGS: ClassVar[list[Any]] = [Binding("escape,q,question_mark,enter", "close", "close", show=False)]

    def __init__(self, title: str, keys: tuple[Key, ...]) -> None:
        super().__init__()
        self._about = title
        self._table = keys

    def compose(self) -> ComposeResult:
        """Build the dialog."""
        lines = [(key.shown.partition(" ")[0] or NAMES.get(key.keys, key.keys), key.help) for key in self._table]
        lines += EVERYWHERE
        with VerticalScroll(classes="dialog", can_focus=True):
            yield Static(f"keys on the {self._about} screen (Esc closes)", classes="title", markup=False)
            drawn = Table.grid(padding=(0, 2, 0, 0))  # what is said of a key stays beside it on a narrow terminal
            drawn.add_column(justify="right", no_wrap=True, min_width=10)
            drawn.add_column(overflow="fold")
            for key, text in lines:
                drawn.add_row(Text(key), Text(text))
            yield Static(drawn)

    def action_close(self) -> None:
        """Close the help."""
        self.dismiss()
