"""What a screen may ask of the app, without knowing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen
    from textual.signal import Signal
    from textual.widget import Widget

    from unveil_tui.asking import Prompt
    from unveil_tui.confirming import Question
    from unveil_tui.fleet import HostSeen
    from unveil_tui.messages import Told
    from unveil_tui.rights import Rights
    from unveil_tui.seen import Seen


class Bridge(Protocol):
    """The app as its screens see it."""

    seen: Seen
    hosts: tuple[HostSeen, ...]
    rights: Rights
    news: Signal[Seen]
    told: Signal[Told]
    heard: Signal[tuple[HostSeen, ...]]

    def order(self, method: str, params: dict[str, Any], then: Callable[[Any], object] | None = None) -> None:
        """Ask the watcher once; *then* gets the answer, an error is shown."""

    def follow(self, method: str, params: dict[str, Any], *, every_s: float) -> int:
        """Ask again and again; answers come through *told* with the number returned."""

    def unfollow(self, number: int) -> None:
        """Stop asking."""

    def ask(self, prompt: Prompt, then: Callable[[str], object]) -> None:
        """Ask a person for a line of text; *then* gets it, unless they leave it."""

    def say(self, text: str) -> None:
        """Show a message; drawn as text."""

    def copy(self, text: str, what: str) -> None:
        """Put text into the clipboard of the terminal."""

    def export(self, text: str, name: str) -> None:
        """Write text to a new file of that name, or have the browser download it."""

    def confirm(self, question: Question, then: Callable[[], object]) -> None:
        """Ask a person; *then* is called only after a yes."""


def bridge(node: Widget | Screen[Any]) -> Bridge:
    """Return the app of a widget or screen."""
    return cast("Bridge", node.app)
