"""What an experiment gave, and the labels of its recording, which claim no more than was measured.

Three kinds of time have no label, so that nobody is judged by them: from when a fault is laid on until it is active,
after its end until the workload has settled, and all of a fault that cost nothing here (*inert*).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from unveil.lab.faults import FAULTS, HEALTHY
from unveil.lab.units import Loss

if TYPE_CHECKING:
    from pathlib import Path

EFFECTIVE = 0.05
"""Share of throughput, or of latency, that a fault must cost to be called one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an experiment gave.

    Attributes:
        begin_s, active_s, end_s, settled_s: after the recording began: when the fault was laid on, was there, was
            taken away again, and when the workload was as before.
        seconds: how long the recording took; more than was asked for where the host was too busy.
        lost: None where the workload did nothing in one of the stretches.
        chance: what a healthy stretch of the same length lost at most; None where no long one is known.
        dead: a program of the workload had ended.
    """

    workload: str
    fault: str
    begin_s: float
    active_s: float
    end_s: float
    settled_s: float
    seconds: float
    lost: Loss | None
    chance: Loss | None = None
    dead: bool = False

    @property
    def effective(self) -> bool:
        """Tell whether the fault cost something here: more than a twentieth, and more than chance does."""
        if self.lost is None:
            return True
        least = self.chance or Loss(throughput=0.0, latency=0.0)
        return self.lost.throughput >= max(EFFECTIVE, least.throughput) or self.lost.latency >= max(
            EFFECTIVE, least.latency
        )

    @property
    def verdict(self) -> str:
        """Return what the time of the fault is: healthy, effective or inert."""
        if self.fault in HEALTHY:
            return "healthy"
        return "effective" if self.effective else "inert"


def labels(result: Result) -> str:
    """Return the labels file of an experiment."""
    fault = FAULTS[result.fault]
    lines = ["apiVersion: unveil/v1", "kind: RecordingLabels", f"workload: {result.workload}", "intervals:"]
    if result.verdict == "healthy":
        # A neighbour who comes and goes is no reason to look away: all of it counts.
        return "\n".join([*lines, f"  - {{from: 0, label: healthy, note: {json.dumps(fault.title)}}}"]) + "\n"
    lines.append(f"  - {{from: 0, to: {result.begin_s:.2f}, label: healthy}}")
    if result.verdict == "inert":
        lines.append(f"  # inert: {fault.title}; {_told(result.lost)}")
    else:
        label = f", label: {fault.label}" if fault.label else ""
        label += f", subsystem: {fault.subsystem}" if fault.subsystem else ""
        note = json.dumps(f"{fault.title}; {_told(result.lost)}")
        span = f"from: {result.active_s:.2f}, to: {result.end_s:.2f}"
        lines.append(f"  - {{{span}, fault: {result.fault}{label}, note: {note}}}")
    lines.append(f"  # from {result.end_s:.2f} to {result.settled_s:.2f} it settles")
    if result.settled_s < result.seconds:
        lines.append(f"  - {{from: {result.settled_s:.2f}, label: healthy}}")
    return "\n".join(lines) + "\n"


def _told(lost: Loss | None) -> str:
    if lost is None:
        return "the work stood still"
    return f"{lost.throughput:.0%} of throughput lost, units take {lost.latency:+.0%}"


def write(path: Path, result: Result, **more: Any) -> None:
    """Write a result beside its recording: for the table, and to go on where a plan was cut off."""
    path.write_text(json.dumps({**asdict(result), "verdict": result.verdict, **more}, indent=1), encoding="utf-8")


def read(path: Path) -> Result | None:
    """Return the result of an experiment that was carried out; None where there is none."""
    told = told_by(path)
    if not told:
        return None
    for name in ("lost", "chance"):
        told[name] = None if told[name] is None else Loss(**told[name])
    return Result(**{name: told[name] for name in Result.__dataclass_fields__})


def told_by(path: Path) -> dict[str, Any]:
    """Return all that a result's file says; nothing where there is none."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
