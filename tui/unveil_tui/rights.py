"""What this cockpit may do. Held at the door to the watcher, below all screens: no key and no mistake gets past it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unveil.errors import RefusedError

if TYPE_CHECKING:
    from unveil.engine.client import Watcher

QUESTIONS = frozenset(
    {"audit", "backtests", "draft", "episode", "episodes", "explain", "facts", "features", "hits", "knowledge"}
    | {
        "knowledge_text",
        "marks",
        "members",
        "near",
        "ping",
        "run",
        "runs",
        "series",
        "settings",
        "silences",
        "status",
        "verification",
        "window",
    }
    | {"windows"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Which orders go through.

    Attributes:
        label: shown in the host line while something is forbidden, e.g. ``READ-ONLY``.
        reason: why, in one sentence; empty when everything is allowed.
        allowed: orders that go through all the same.
    """

    label: str = ""
    reason: str = ""
    allowed: frozenset[str] = frozenset()

    def why_not(self, method: str) -> str:
        """Return why a method is refused, empty when it is not."""
        return "" if not self.reason or method in QUESTIONS or method in self.allowed else self.reason


ACTING = Rights()
READ_ONLY = Rights(label="READ-ONLY", reason="this cockpit was opened with --read-only: it only looks")
RECORDING = Rights(
    label="RECORDING",
    reason="this is a recording: there is no host to change",
    allowed=frozenset({"plan", "mark"}),  # kept in the replay's own journal, which is forgotten with it
)


class GuardedWatcher:
    """A watcher to whom only what the rights allow is said."""

    def __init__(self, watcher: Watcher, rights: Rights) -> None:
        self._watcher = watcher
        self._rights = rights

    def call(self, method: str, **params: Any) -> Any:
        """Ask; RefusedError when the rights forbid it, before anything is sent."""
        if reason := self._rights.why_not(method):
            raise RefusedError(f"{method.replace('_', ' ')} refused: {reason}")
        return self._watcher.call(method, **params)
