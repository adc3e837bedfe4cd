"""What travels inside the cockpit: from the pump's thread to the app, and from screens to the app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.message import Message

if TYPE_CHECKING:
    from unveil.errors import UnveilError
    from unveil_tui.fleet import HostSeen
    from unveil_tui.seen import Seen


class News(Message):
    """Everything there is to know now. A newer one of the same watcher makes an undelivered one needless."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.seen = seen

    def can_replace(self, message: Message) -> bool:
        """Let the newest one stand for all that wait."""
        return isinstance(message, News) and message.seen.source == self.seen.source


class Told(Message):
    """A question that a screen keeps asking got a new answer."""

    def __init__(self, token: int, answer: Any) -> None:
        super().__init__()
        self.token = token
        self.answer = answer


class Answered(Message):
    """An order was carried out, or refused."""

    def __init__(self, token: int, answer: Any, error: UnveilError | None) -> None:
        super().__init__()
        self.token = token
        self.answer = answer
        self.error = error


class Heard(Message):
    """What the hosts of a fleet look like now."""

    def __init__(self, hosts: tuple[HostSeen, ...]) -> None:
        super().__init__()
        self.hosts = hosts

    def can_replace(self, message: Message) -> bool:
        """Let the newest one stand for all that wait."""
        return isinstance(message, Heard)


class Open(Message):
    """Show something by its key: ``window``, ``episode``, ``run``, ``rule``, ``draft``.

    Args:
        ask: an action that the screen is to ask about as soon as it can, e.g. ``roll_back``.
    """

    def __init__(self, what: str, key: str, ask: str = "") -> None:
        super().__init__()
        self.what = what
        self.key = key
        self.ask = ask
