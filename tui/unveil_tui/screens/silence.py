"""Silence: keep automation away from one episode for a while, with a reason that the next person reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from unveil.records.plain_text import plain
from unveil_tui.asking import length_of
from unveil_tui.bridge import bridge
from unveil_tui.drawing import words

if TYPE_CHECKING:
    from textual.app import ComposeResult

DEFAULT = "1h"


class SilenceScreen(ModalScreen[None]):
    """Asks for a reason and a length, for the fingerprint and the entity of one episode."""

    BINDINGS: ClassVar[list[Any]] = [Binding("escape", "close", "close", show=False)]

    def __init__(self, identity: str) -> None:
        super().__init__()
        self._identity = identity

    def compose(self) -> ComposeResult:
        """Build the dialog."""
        episode = bridge(self).seen.episode(self._identity)
        about = self._identity if episode is None else f"{episode.fingerprint} on {episode.entity}"
        with Vertical(classes="dialog"):
            yield Static(f"Silence {plain(about)}", id="question", markup=False)
            yield Static("It is still seen and journalled, and never acted upon by itself.", markup=False)
            for name, value, hint in (("reason", "", "why: the next person on call reads it"), ("length", DEFAULT, "")):
                field = Input(value=value, placeholder=hint, id=name)
                field.cursor_blink = False
                field.border_title = name if name == "reason" else "for how long (30m, 2h, 1d)"
                yield field
            yield Static("Enter silences, Esc does not", id="answer", markup=False)

    def on_mount(self) -> None:
        """Ask for the reason first."""
        self.query_one("#reason", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Silence, when there is a reason and a length."""
        event.stop()
        episode = bridge(self).seen.episode(self._identity)
        reason = self.query_one("#reason", Input).value.strip()
        seconds = length_of(self.query_one("#length", Input).value.strip())
        answer = self.query_one("#answer", Static)
        if episode is None:
            answer.update("the episode is no longer known")
        elif not reason:
            answer.update("a silence needs a reason")
        elif seconds is None:
            answer.update("not a length of time: write 30m, 2h or 1d")
        else:
            params = {
                "fingerprint": literal(episode.fingerprint),
                "entity": literal(str(episode.entity)),
                "seconds": seconds,
                "reason": reason,
            }
            app = bridge(self)
            app.order("silence", params, self._made)
            self.dismiss()

    def _made(self, silence: dict[str, Any]) -> None:
        until = words.moment(silence["until_s"], bridge(self).seen.now_s)
        self.app.notify(f"silenced until {until}: {plain(silence['reason'])}", markup=False)

    def action_close(self) -> None:
        """Leave it as it is."""
        self.dismiss()


def literal(text: str) -> str:
    """Return a shell-style pattern that fits exactly this text, whatever a tenant put into it."""
    return re.sub(r"([*?[])", r"[\1]", text)
