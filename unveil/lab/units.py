"""Units of work: what a workload says it did, one JSON line each, and what a fault cost of it."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
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
    """Return what was lost between two stretches of wall-clock time; None where one of them has no unit.

    Phases are weighed as they were before, so that a fault which merely comes in a quiet phase costs nothing.
    """
    held = [[unit for unit in units if begin <= unit.at_s < end] for begin, end in (before, during)]
    phases = {unit.phase for unit in held[0]} & {unit.phase for unit in held[1]}
    if not phases:
        return None
    weights = {phase: sum(unit.phase == phase for unit in held[0]) for phase in phases}
    longer = sum(
        weights[phase] * (_typical(held[1], phase) / max(_typical(held[0], phase), 1e-9) - 1) for phase in phases
    ) / sum(weights.values())
    rates = [len(each) / (end - begin) for each, (begin, end) in zip(held, (before, during), strict=True)]
    return Loss(throughput=1 - rates[1] / rates[0], latency=longer)


def _typical(units: list[Unit], phase: str) -> float:
    return median(unit.seconds for unit in units if unit.phase == phase)
