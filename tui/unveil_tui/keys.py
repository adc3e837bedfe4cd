"""Keys as one table per screen: bindings, help and the reason why a key does nothing come from the same lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from textual.binding import Binding
from textual.widgets import Input

if TYPE_CHECKING:
    from textual import events


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a screen.

    Attributes:
        keys: Textual's names, comma-separated.
        action: what it does.
        label: in the footer; empty keeps it out of there (it is in the help all the same).
        help: one sentence for the help.
        shown: how the key is written, where that is not its name.
    """

    keys: str
    action: str
    label: str = ""
    help: str
    shown: str = ""


class Answering(Protocol):
    """A screen that knows why an action is not possible now."""

    KEYS: ClassVar[tuple[Key, ...]]
    valid_keys: tuple[bool, ...]

    @property
    def focused(self) -> Any:
        """Return the widget that has the focus."""

    def refresh_bindings(self) -> Any:
        """Rebuild the footer."""

    def why_not(self, action: str) -> str:
        """Return the reason, empty when the action is possible."""

    def notify(self, message: str, *, severity: Any = ..., markup: bool = ...) -> Any:
        """Show a message."""


def bindings(keys: tuple[Key, ...]) -> list[Any]:
    """Return Textual's bindings for a table of keys."""
    return [
        Binding(key.keys, key.action, key.label or key.help, show=bool(key.label), key_display=key.shown or None)
        for key in keys
    ]


def say_why_not(screen: Answering, event: events.Key) -> None:
    """Say why a key of this screen does nothing now; keys of other screens and letters for a field stay silent."""
    if isinstance(screen.focused, Input):
        return
    meant = [key for key in screen.KEYS if event.key in key.keys.split(",")]
    reasons = [screen.why_not(key.action.partition("(")[0]) for key in meant]
    if reasons and all(reasons):
        screen.notify(f"{meant[0].shown or event.key}: {reasons[0]}", severity="warning", markup=False)
        event.stop()


def show_valid(screen: Answering) -> None:
    """Bring the footer up to date, when it is not: rebuilding it costs more than anything else on the screen."""
    valid = tuple(not screen.why_not(key.action.partition("(")[0]) for key in screen.KEYS)
    if valid != screen.valid_keys:
        screen.valid_keys = valid
        screen.refresh_bindings()
