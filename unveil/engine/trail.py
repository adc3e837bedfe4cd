"""Trail: what the newest windows were judged by, in memory: for sparklines, and to explain a window after the fact.

It is bounded by bytes as well as by windows: a host of a thousand containers leaves a shorter trail. What is absent
takes no room: on a host without GPUs that is much of all. Nor does what is zero, as most counters of trouble are.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from unveil.matching.plan import SeenReference
from unveil.records.averages import mean
from unveil.records.feature import FeatureId

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.matching.clauses import Evidence
    from unveil.records.entity import Entity

MAX_WINDOWS = 300
MAX_BYTES = 4_000_000
EXPECTATION_BYTES = 250  # one entry of what the reference was asked: a key, two numbers
LAYOUT_BYTES = 150  # one name in a layout that the window before does not share, and its place in the index
FACT_BYTES = 400  # one fact of a table that it does not share


_NOTHING = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class _Footprint:
    """One window.

    Attributes:
        bare: its evidence, the vector without values.
        there: positions of the features that are there, rising; shared by windows in which they are the same.
        marks: which of those are not zero, a bit each.
        values: of those that are not.
    """

    bare: Evidence
    there: NDArray[np.unsignedinteger]
    marks: NDArray[np.uint8]
    values: NDArray[np.float64]
    size: int

    @property
    def window(self) -> int:
        return self.bare.vector.window

    def evidence(self) -> Evidence:
        """Return the evidence as it was."""
        there = np.zeros(len(self.there))
        there[np.unpackbits(self.marks, count=len(there)) > 0] = self.values
        values = np.full(len(self.bare.vector.layout.ids), np.nan)
        values[self.there] = there
        return replace(self.bare, vector=replace(self.bare.vector, values=values))

    def place(self, feature: FeatureId) -> int:
        """Return where a feature stands among those that are there, -1 where it is absent."""
        position = self.bare.vector.layout.position.get(feature, -1)
        at = int(np.searchsorted(self.there, position)) if position >= 0 else -1
        return at if 0 <= at < len(self.there) and self.there[at] == position else -1

    def value(self, at: int) -> float:
        """Return the value of the feature at a place."""
        marks = np.unpackbits(self.marks, count=at + 1)
        return float(self.values[marks[:-1].sum()]) if marks[-1] else 0.0

    def stands_as(self, other: _Footprint) -> bool:
        """Return whether each value stands where it does in another window."""
        return self.there is other.there and self.bare.vector.layout is other.bare.vector.layout


class Trail:
    """The newest windows, oldest first."""

    def __init__(self) -> None:
        self._footprints: deque[_Footprint] = deque()
        self._size = 0

    def push(self, evidence: Evidence) -> None:
        """Keep a window; the oldest go to make room."""
        vector, before = evidence.vector, self._footprints[-1] if self._footprints else None
        asked = len(evidence.expected.seen) if isinstance(evidence.expected, SeenReference) else 0
        if asked and before is not None and _expect_the_same(before.bare, evidence):  # until it is made anew
            evidence, asked = replace(evidence, expected=before.bare.expected), 0
        there = np.flatnonzero(~np.isnan(vector.values)).astype(np.min_scalar_type(len(vector.values)))
        values = vector.values[there]
        marks = np.packbits(values != 0.0)
        values = values[values != 0.0]
        size = marks.nbytes + values.nbytes + EXPECTATION_BYTES * asked
        if before is not None and np.array_equal(before.there, there):
            there = before.there
        else:
            size += there.nbytes
        if before is None or before.bare.vector.layout is not vector.layout:
            size += LAYOUT_BYTES * len(vector.layout.ids)
        if before is None or before.bare.facts is not evidence.facts:
            size += FACT_BYTES * len(evidence.facts.facts)
        bare = replace(evidence, vector=replace(vector, values=_NOTHING))
        self._footprints.append(_Footprint(bare, there, marks, values, size))
        self._size += size
        while len(self._footprints) > 1 and (self._size > MAX_BYTES or len(self._footprints) > MAX_WINDOWS):
            self._size -= self._footprints.popleft().size

    def evidence(self, window: int) -> Evidence | None:
        """Return what a window was judged by, None when it is no longer (or not yet) here."""
        return next((each.evidence() for each in self._footprints if each.window == window), None)

    def series(
        self, name: str, entity: Entity, *, until: int | None = None, limit: int = MAX_WINDOWS
    ) -> list[tuple[int, float | None]]:
        """Return (window, value) of a feature over the newest windows up to one, oldest first; absent is None."""
        feature = FeatureId(name, entity)
        kept = [each for each in self._footprints if until is None or each.window <= until][-limit:]
        told: list[tuple[int, float | None]] = []
        before, at = None, -1
        for each in kept:
            if before is None or not each.stands_as(before):
                at = each.place(feature)
            told.append((each.window, each.value(at) if at >= 0 else None))
            before = each
        return told

    def mean(self, name: str, entity: Entity, *, until: int, over: int) -> float | None:
        """Return a feature's mean over so many windows up to one, None where it is absent in all of them."""
        values = [value for _, value in self.series(name, entity, until=until, limit=over) if value is not None]
        return mean(values) if values else None


def _expect_the_same(one: Evidence, other: Evidence) -> bool:
    if one.expected is other.expected:
        return True
    seen = [each.expected.seen for each in (one, other) if isinstance(each.expected, SeenReference)]
    return len(seen) == 2 and seen[0] == seen[1]
