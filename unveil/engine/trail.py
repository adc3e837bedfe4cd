"""Trail: what the newest windows were judged by, in memory: for sparklines, and to explain a window after the fact.

It is bounded by bytes as well as by windows: a host of a thousand containers leaves a shorter trail.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.matching.plan import SeenReference
from unveil.records.averages import mean

if TYPE_CHECKING:
    from unveil.matching.clauses import Evidence
    from unveil.records.entity import Entity

MAX_WINDOWS = 300
MAX_BYTES = 4_000_000
EXPECTATION_BYTES = 250  # one entry of what the reference was asked: a key, two numbers
LAYOUT_BYTES = 150  # one name in a layout that the window before does not share, and its place in the index
FACT_BYTES = 400  # one fact of a table that it does not share


@dataclass(frozen=True, slots=True, eq=False)
class _Footprint:
    evidence: Evidence
    size: int


class Trail:
    """The newest windows, oldest first."""

    def __init__(self) -> None:
        self._footprints: deque[_Footprint] = deque()
        self._size = 0

    def push(self, evidence: Evidence) -> None:
        """Keep a window; the oldest go to make room."""
        asked = len(evidence.expected.seen) if isinstance(evidence.expected, SeenReference) else 0
        size = evidence.vector.values.nbytes + EXPECTATION_BYTES * asked
        before = self._footprints[-1].evidence if self._footprints else None
        if before is None or before.vector.layout is not evidence.vector.layout:
            size += LAYOUT_BYTES * len(evidence.vector.layout.ids)
        if before is None or before.facts is not evidence.facts:
            size += FACT_BYTES * len(evidence.facts.facts)
        self._footprints.append(_Footprint(evidence, size))
        self._size += size
        while len(self._footprints) > 1 and (self._size > MAX_BYTES or len(self._footprints) > MAX_WINDOWS):
            self._size -= self._footprints.popleft().size

    def evidence(self, window: int) -> Evidence | None:
        """Return what a window was judged by, None when it is no longer (or not yet) here."""
        return next((each.evidence for each in self._footprints if each.evidence.vector.window == window), None)

    def series(
        self, name: str, entity: Entity, *, until: int | None = None, limit: int = MAX_WINDOWS
    ) -> list[tuple[int, float | None]]:
        """Return (window, value) of a feature over the newest windows up to one, oldest first; absent is None."""
        kept = [each.evidence.vector for each in self._footprints]
        kept = [vector for vector in kept if until is None or vector.window <= until][-limit:]
        return [(vector.window, vector.get(name, entity)) for vector in kept]

    def mean(self, name: str, entity: Entity, *, until: int, over: int) -> float | None:
        """Return a feature's mean over so many windows up to one, None where it is absent in all of them."""
        values = [value for _, value in self.series(name, entity, until=until, limit=over) if value is not None]
        return mean(values) if values else None
