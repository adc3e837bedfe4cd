"""One of many against the others: this GPU against the other GPUs, in the same window.

The others are those that are alike (`LIKENESS`) and have the value. What is expected is their median, its spread their
median absolute deviation: half of them may be odd without hiding the odd one (P. J. Rousseeuw and C. Croux,
"Alternatives to the median absolute deviation", 1993). The one that is judged is never among its own peers.
"""

from __future__ import annotations

import math
import posixpath
from typing import TYPE_CHECKING

import numpy as np

from unveil.records.averages import median
from unveil.records.entity import EntityKind

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from unveil.records.entity import Entity
    from unveil.records.fact import FactTable

LIKENESS: Mapping[EntityKind, str] = {
    EntityKind.GPU: "gpu.name",
    EntityKind.NIC: "network.nic_physical",
    EntityKind.DISK: "storage.rotational",
}
"""The fact in which peers must agree, by their kind. Cgroups agree in the one above them, others in their kind."""

MIN_FOR_SIGMA = 3
"""Fewest peers that have a spread; a median is there of one."""

NORMAL = 1.4826
"""A normal distribution's standard deviation by its median absolute deviation."""


def likeness(entity: Entity, facts: FactTable) -> Hashable:
    """Return what an entity has in common with its peers."""
    if entity.kind is EntityKind.CGROUP:
        return posixpath.dirname(entity.key)
    name = LIKENESS.get(entity.kind)
    return None if name is None else facts.value(name, entity)


def expected_of(peers: Sequence[float]) -> tuple[float, float] | None:
    """Return median and robust standard deviation of the peers' values; NaN for a spread of too few, None of none."""
    if not peers:
        return None
    centre = median(peers)
    if len(peers) < MIN_FOR_SIGMA:
        return centre, math.nan
    return centre, NORMAL * median([abs(value - centre) for value in peers])


def expected_each(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each of several values what all the others make expected: `expected_of`, in one sort or four.

    Args:
        values: shape (members,), NaN where a member has none.
    """
    centre, sigma = np.full(values.shape, np.nan), np.full(values.shape, np.nan)
    there = np.flatnonzero(~np.isnan(values))
    if len(there) < 2:
        return centre, sigma
    known = values[there]
    medians = _median_of_others(known)
    centre[there] = medians
    if len(there) > MIN_FOR_SIGMA:
        spread = np.empty_like(known)
        for middle in set(medians.tolist()):  # three at most: whoever is left out, the median stays about the middle
            mine = medians == middle
            spread[mine] = _median_of_others(np.abs(known - middle))[mine]
        sigma[there] = NORMAL * spread
    return centre, sigma


def _median_of_others(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each of at least two values the median of the others."""
    others = len(values) - 1
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    rank = np.empty(len(values), dtype=np.intp)
    rank[order] = np.arange(len(values))

    def nth(position: int) -> NDArray[np.float64]:
        """Return the others' value at a position, for each that is left out."""
        return ranked[np.where(position < rank, position, position + 1)]

    upper = nth(others // 2)
    return upper if others % 2 else (nth(others // 2 - 1) + upper) / 2
