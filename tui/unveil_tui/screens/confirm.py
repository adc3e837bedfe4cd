"""Confirm: the one way to a yes. ``y`` says it, nothing else does: not Enter, not the key that led here.

A ``y`` counts only when the person can have read what it is about: the dialog has stood for a moment (keys typed
ahead are lost), the terminal shows it, its end has been on the screen, and a word that was asked for is typed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from unveil.records.plain_text import plain
from unveil_tui.widgets.too_small import TooSmall, fits

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult

    from unveil_tui.confirming import Question

ARM_S = 0.3
HOW = "y does it, Esc does not"


class ConfirmScreen(ModalScreen[bool]):
    """Asks one question; dismissed with True only by ``y``."""

    BINDINGS: ClassVar[list[Any]] = [
        Binding("escape,n", "refuse", "no", show=False),
        Binding("down,j,pagedown", "read(1)", "down", show=False),
        Binding("up,k,pageup", "read(-1)", "up", show=False),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question
        self._armed = False
        self._read = False
        self._typed = not question.word

    def compose(self) -> ComposeResult:
        """Build the dialog."""
        question = self._question
        yield TooSmall()
        with Vertical(classes="dialog -asks-word" if question.word else "dialog"):
            yield Static(question.title, id="question", markup=False)
            with VerticalScroll(id="asked", can_focus=False):
                yield Static("\n".join(question.lines), markup=False)
            if question.word:
                field = Input(placeholder=f"type {question.word_is}: {plain(question.word)}", id="word")
                field.cursor_blink = False
                yield field
            yield Static(id="answer", markup=False)

    def on_mount(self) -> None:
        """Wait a moment before a key counts."""
        if self._question.word:
            self.query_one("#word", Input).focus()
        self.watch(self.query_one("#asked"), "scroll_y", self._look, init=False)
        self._arm()

    def _arm(self) -> None:
        self._armed = False
        self._say("…")
        self.set_timer(ARM_S, self._armed_now)

    def _armed_now(self) -> None:
        self._armed = True
        self._look()
        self._say(self._hindrance() or HOW)

    def _look(self) -> None:
        asked = self.query_one("#asked", VerticalScroll)
        if fits(self.app.size) and asked.size.height > 0 and asked.scroll_y >= asked.max_scroll_y - 0.5:
            if not self._read and self._armed:
                self._read = True
                self._say(self._hindrance() or HOW)
            self._read = True

    def _hindrance(self) -> str:
        if not fits(self.app.size):
            return "the terminal is too small to show what this is about"
        if not self._armed:
            return "too fast: read first, then y"
        if not self._typed:
            return f"type {self._question.word_is} first, then y; Esc leaves everything as it is"
        if not self._read:
            return "there is more: ↓ to its end, then y"
        return ""

    def _say(self, text: str) -> None:
        self.query_one("#answer", Static).update(text)

    def on_key(self, event: events.Key) -> None:
        """Take ``y`` for a yes when nothing is in the way; say why any other key is none."""
        if event.key == "y":
            event.stop()
            self._look()
            if hindrance := self._hindrance():
                self._say(hindrance)
                return
            self.dismiss(True)
        elif event.key == "enter":
            event.stop()
            self._say(f"Enter does not confirm: {self._hindrance() or HOW}")
        elif event.key == self._question.started_by:
            event.stop()
            self._say(f"{event.key} again does not confirm: {self._hindrance() or HOW}")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Let ``y`` count once the word stands there; the last letter typed is not the answer."""
        event.stop()
        if event.value == self._question.word and not self._typed:
            self._typed = True
            event.input.disabled = True
            self.set_focus(None)
            self._arm()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter never confirms."""
        event.stop()
        self._say(f"Enter does not confirm: {self._hindrance() or HOW}")

    def action_read(self, pages: int) -> None:
        """Scroll through what it is about."""
        asked = self.query_one("#asked", VerticalScroll)
        asked.scroll_relative(y=pages * max(1, asked.size.height - 1), animate=False, immediate=True)

    def action_refuse(self) -> None:
        """Leave everything as it is."""
        self.dismiss(False)
