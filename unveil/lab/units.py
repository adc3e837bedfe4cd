"""Units of work: what a workload says it did, one JSON line each, and what a fault cost of it."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One step, request or batch: when it ended (wall clock), in which phase, and how long it took."""

    at_s: float
    phase: str
    seconds: float


def done(phase: str, seconds: float) -> None:
    """Say on standard output that one unit was done."""
    sys.stdout.write(f'{{"at": {time.time():.4f}, "phase": "{phase}", "s": {seconds:.5f}}}\n')
    sys.stdout.flush()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a fault cost: shares of what the same run did before it; negative is a gain.

    Attributes:
        throughput: share of the units per second that is gone.
        latency: by how much the median unit takes longer.
    """

    throughput: float
    latency: float


def loss(units: Iterable[Unit], before: tuple[float, float], during: tuple[float, float]) -> Loss | None:
    """Return what was lost between two stretches of wall-clock time; None where they have no phase in common.

    Each phase is compared with itself, and weighed by the time that it had before, so that a fault which merely comes
    in a quiet phase costs nothing.
    """
    ordered = sorted(units, key=lambda unit: unit.at_s)
    first, second = (_phases([unit for unit in ordered if begin <= unit.at_s < end]) for begin, end in (before, during))
    common = first.keys() & second.keys()
    if not common:
        return None
    whole = sum(first[phase].spent_s for phase in common)
    kept = sum(first[phase].spent_s / whole * second[phase].rate / first[phase].rate for phase in common)
    longer = sum(first[phase].spent_s / whole * second[phase].typical_s / first[phase].typical_s for phase in common)
    return Loss(throughput=1 - kept, latency=longer - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phase:
    """One phase of a stretch: the time between its units, their number per second, and the median unit."""

    spent_s: float
    rate: float
    typical_s: float


def _phases(units: list[Unit]) -> dict[str, _Phase]:
    gaps: dict[str, list[float]] = {}
    for earlier, unit in pairwise(units):
        if earlier.phase != unit.phase:
            continue  # half of this gap is the other phase's
        gaps.setdefault(unit.phase, []).append(max(unit.at_s - earlier.at_s, 1e-6))
    return {
        phase: _Phase(
            spent_s=sum(each),
            rate=len(each) / sum(each),
            typical_s=max(median(unit.seconds for unit in units if unit.phase == phase), 1e-6),
        )
        for phase, each in gaps.items()
    }
