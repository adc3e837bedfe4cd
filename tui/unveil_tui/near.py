"""Near: a fingerprint that matches a window, or nearly does, with every clause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unveil.records.codec import decode
from unveil.records.match import Match


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """One fingerprint on one entity in one window; *met* of *of* clauses hold."""

    match: Match
    met: int
    of: int

    @property
    def key(self) -> str:
        """Return what names it among those of a window."""
        return f"{self.match.fingerprint} {self.match.entity}"


def decode_near(told: list[dict[str, Any]]) -> tuple[Near, ...]:
    """Return what the watcher told."""
    return tuple(Near(match=decode(Match, each["match"]), met=each["met"], of=each["of"]) for each in told)
