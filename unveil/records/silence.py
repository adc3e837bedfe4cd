"""Silence: a person's temporary exception."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """While it lasts, episodes that it covers are still seen and journalled, but never acted upon.

    Attributes:
        fingerprint, entity: shell-style patterns.
    """

    id: str
    fingerprint: str
    entity: str
    until_s: float
    reason: str
    actor: str
    created_s: float

    def covers(self, fingerprint: str, entity: str, at_s: float) -> bool:
        """Return whether it holds for an episode at a time."""
        return (
            self.created_s <= at_s < self.until_s
            and fnmatchcase(fingerprint, self.fingerprint)
            and fnmatchcase(entity, self.entity)
        )
