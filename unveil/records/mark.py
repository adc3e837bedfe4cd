"""Mark: what a person said of an episode, for people and scorecards to read; automation acts as before."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MarkKind(StrEnum):
    """What was said. A verdict on the episode can be taken back by the opposite one: the newest stands."""

    ACKNOWLEDGED = "acknowledged"
    FALSE_POSITIVE = "false_positive"
    TRUE_POSITIVE = "true_positive"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One word of one person on one episode. Never rewritten.

    Attributes:
        episode, fingerprint: what it is about.
        text: a reason or a note; may be empty only where the kind says it all.
        actor: who, as the kernel says: ``uid:0 pid:4711``.
    """

    episode: str
    fingerprint: str
    kind: MarkKind
    text: str
    actor: str
    at_s: float
