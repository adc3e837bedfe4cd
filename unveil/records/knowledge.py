"""What the journal, the screens and the metrics say of the knowledge base in use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeState:
    """The generation in use, and whether the files on disk have moved on without it.

    Attributes:
        generation: number of the generation in use, growing.
        digest: digest of its content.
        stale_since_s: when files on disk were first found not loadable; None while they are in use.
        problems: why it is stale, one line each (``file:line:column: …``).
        withheld: why nothing of what the inventory grants holds, and the cure; empty where it does.
        withheld_at_s: when *withheld* last changed, None when it never did.
    """

    generation: int
    digest: str
    at_s: float
    fingerprints: int
    remediations: int
    stale_since_s: float | None = None
    problems: tuple[str, ...] = ()
    withheld: str = ""
    withheld_at_s: float | None = None
