"""Reset: a person's word that automation may go on where it had stopped by itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ResetKind(StrEnum):
    """What had stopped it."""

    BREAKER = "breaker"  # too many runs went wrong
    HOLD = "hold"  # someone changed a managed setting by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """One of them.

    Attributes:
        subject: the address of the setting that is let go; empty for the breaker.
        reason: why it is safe again; the next person on call reads it.
    """

    kind: ResetKind
    at_s: float
    actor: str
    reason: str
    subject: str = ""
