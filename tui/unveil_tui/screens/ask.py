"""Ask: one line of text from a person: a reason, a note, a time, a name. Nothing asked here changes the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from unveil_tui.widgets.too_small import TooSmall

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from unveil_tui.asking import Prompt


class AskScreen(ModalScreen[str | None]):
    """Asks one prompt; dismissed with the text, or with None by Esc."""

    BINDINGS: ClassVar[list[Any]] = [Binding("escape", "close", "close", show=False)]

    def __init__(self, prompt: Prompt) -> None:
        super().__init__()
        self._prompt = prompt

    def compose(self) -> ComposeResult:
        """Build the dialog."""
        prompt = self._prompt
        yield TooSmall()
        with Vertical(classes="dialog"):
            yield Static(prompt.title, id="question", markup=False)
            if prompt.lines:
                yield Static("\n".join(prompt.lines), id="about", markup=False)
            field = Input(value=prompt.value, placeholder=prompt.hint, id="text")
            field.cursor_blink = False
            yield field
            yield Static(f"Enter {prompt.does}, Esc does not", id="answer", markup=False)

    def on_mount(self) -> None:
        """Let them type."""
        self.query_one("#text", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the text when it can be used; say what is wrong with it otherwise."""
        event.stop()
        text = event.value.strip()
        if wrong := self._prompt.wrong(text):
            self.query_one("#answer", Static).update(wrong)
        else:
            self.dismiss(text)

    def action_close(self) -> None:
        """Leave it as it is."""
        self.dismiss(None)
