"""Units of work: what a workload says it did, one JSON line each, and what a fault cost of it."""

from __future__ import annotations

import json
import sys
import time
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One step, request or batch: when it ended (wall clock), in which phase, and how long it took."""

    at_s: float
    phase: str
    seconds: float


def done(phase: str, seconds: float) -> None:
    """Say on standard output that one unit was done."""
    sys.stdout.write(line(Unit(at_s=time.time(), phase=phase, seconds=seconds)))
    sys.stdout.flush()


def line(unit: Unit) -> str:
    """Return the line that says that a unit was done."""
    return f'{{"at": {unit.at_s:.4f}, "phase": "{unit.phase}", "s": {unit.seconds:.5f}}}\n'


def read_units(path: Path) -> tuple[Unit, ...]:
    """Return the units of a log; a line that was cut off by the end of its writer is left out."""
    units = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            told = json.loads(line)
            units.append(Unit(at_s=told["at"], phase=told["phase"], seconds=told["s"]))
        except (ValueError, KeyError):
            continue
    return tuple(units)


Stretch = tuple[float, float]
"""Of wall-clock time, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a fault cost: shares of what the same workload did while it was well; negative is a gain.

    Attributes:
        throughput: share of the units per second that is gone.
        latency: by how much the median unit takes longer.
    """

    throughput: float
    latency: float


def loss(units: Iterable[Unit], before: Sequence[Stretch], during: Sequence[Stretch]) -> Loss | None:
    """Return what was lost between stretches of wall-clock time; None where they have no phase in common.

    Each phase is compared with itself, and weighed by the time that it had before, so that a fault which merely comes
    in a quiet phase costs nothing.
    """
    ordered = sorted(units, key=lambda unit: unit.at_s)
    first, second = (_phases([_within(ordered, each) for each in stretches]) for stretches in (before, during))
    common = first.keys() & second.keys()
    if not common:
        return None
    whole = sum(first[phase].spent_s for phase in common)
    kept = sum(first[phase].spent_s / whole * second[phase].rate / first[phase].rate for phase in common)
    longer = sum(first[phase].spent_s / whole * second[phase].typical_s / first[phase].typical_s for phase in common)
    return Loss(throughput=1 - kept, latency=longer - 1)


def chance(units: Sequence[Unit], well: Sequence[Stretch], length_s: float) -> Loss | None:
    """Return the most that a stretch of this length lost against all the time that was well: what chance alone does.

    None where less than three such stretches fit in.
    """
    pieces = [
        (begin + half * length_s / 2, begin + (half + 2) * length_s / 2)  # each half of one is in two
        for begin, end in well
        for half in range(int((end - begin) / (length_s / 2)) - 1)
    ]
    told = [each for piece in pieces if (each := loss(units, well, [piece])) is not None]
    if len(told) < 3:
        return None
    return Loss(
        throughput=max(abs(each.throughput) for each in told), latency=max(abs(each.latency) for each in told)
    )  # fmt: skip


def settled_s(units: Sequence[Unit], well: Sequence[Stretch], after: Stretch, *, look_s: float, near: float) -> float:
    """Return when a workload was as before again: from then on nothing loses more than *near*; else the end."""
    begin, end = after
    settled = end
    at = end - look_s
    while at >= begin:
        lost = loss(units, well, [(at, at + look_s)])
        if lost is None or lost.throughput > near:
            break
        settled = at
        at -= 1.0
    return settled


def _within(ordered: Sequence[Unit], stretch: Stretch) -> Sequence[Unit]:
    begin, end = (bisect_left(ordered, at, key=lambda unit: unit.at_s) for at in stretch)
    return ordered[begin:end]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phase:
    """One phase: the time between its units, their number per second, and the median unit."""

    spent_s: float
    rate: float
    typical_s: float


def _phases(stretches: Sequence[Sequence[Unit]]) -> dict[str, _Phase]:
    gaps: dict[str, list[float]] = {}
    spent: dict[str, list[float]] = {}
    for units in stretches:
        for unit in units:
            spent.setdefault(unit.phase, []).append(unit.seconds)
        for earlier, unit in pairwise(units):
            if earlier.phase == unit.phase:  # else half of this gap is the other phase's
                gaps.setdefault(unit.phase, []).append(max(unit.at_s - earlier.at_s, 1e-6))
    return {
        phase: _Phase(
            spent_s=sum(each), rate=len(each) / sum(each), typical_s=max(median(spent[phase]), 1e-6)
        )
        for phase, each in gaps.items()
    }  # fmt: skip
