"""What `unveil status` and the screens show of a watcher itself: is it well, what does it cost, what is it blind to."""

from __future__ import annotations

import os
import time
from array import array
from collections import deque
from typing import TYPE_CHECKING, Any

from unveil.records.codec import encode
from unveil.records.entity import EntityKind

if TYPE_CHECKING:
    from unveil.engine.watch import Watch

_PAGE = os.sysconf("SC_PAGE_SIZE")
_KEPT_TICKS = 6000
_MARKS = 7  # of the cost, ten seconds apart
LATE_MS = 5.0


class Lateness:
    """How late ticks were, in milliseconds: all counted, the last ten minutes kept.

    Attributes:
        taken: ticks that happened.
        missed: ticks that were due and did not happen.
        late: of those taken, the ones more than ``LATE_MS`` late.
    """

    def __init__(self) -> None:
        self.taken = 0
        self.missed = 0
        self.late = 0
        self._late_ms = array("d", bytes(8 * _KEPT_TICKS))

    def add(self, late_ms: float, missed: int) -> None:
        """Count one tick, and those that were due and did not happen before it."""
        self._late_ms[self.taken % _KEPT_TICKS] = late_ms
        self.taken += 1
        self.missed += missed
        self.late += late_ms > LATE_MS

    def quantile(self, share: float) -> float:
        """Return the lateness that this share of the kept ticks stayed below; 0 before the first."""
        if not self.taken:
            return 0.0
        ordered = sorted(self._late_ms[: self.taken])
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Cost:
    """The CPU time of this process over the last minute: what was spent on starting is nobody's running cost."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, int]] = deque(maxlen=_MARKS)
        self.mark()

    def mark(self) -> None:
        """Note what was spent so far; called every ten seconds."""
        self._marks.append((time.monotonic_ns(), time.process_time_ns()))

    def share(self) -> float:
        """Return the share of one core that was spent since the oldest mark, about a minute ago."""
        then_ns, spent_ns = self._marks[0]
        return (time.process_time_ns() - spent_ns) / max(1, time.monotonic_ns() - then_ns)


def resident_bytes() -> int:
    """Return how much memory this process has in RAM."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123  # once a question, and pathlib would cost more
        return int(statm.read().split()[1]) * _PAGE


def complaints(watch: Watch, now_s: float) -> list[str]:
    """Return what needs a person, worst first."""
    lasting = (watch.knowledge.state.withheld, watch.journalling.problem)
    return [*filter(None, lasting), *watch.problems.told(now_s)]


def describe(watch: Watch) -> dict[str, Any]:
    """Return the status of a watcher as plain JSON."""
    now_s = watch.clock()
    latest = watch.pipeline.latest
    facts = watch.facts
    gpus = {fact.entity for fact in facts.of("gpu.name")}
    uptime_s = max(now_s - watch.started_s, 1e-3)
    return {
        "version": watch.version,
        "pid": os.getpid(),
        "host": watch.host,
        "watch": watch.number,
        "started_s": watch.started_s,
        "now_s": now_s,
        "uptime_s": uptime_s,
        "profile": watch.config.profile,
        "rule": watch.config.rule,
        "window": None if latest is None else encode(latest.summary),
        "rhythm": encode(watch.pipeline.progress.rhythm),
        "rhythm_absent": watch.pipeline.progress.reason,
        "knowledge": encode(watch.knowledge.state),
        "trained": watch.training.trained,
        "training": watch.training.describe(now_s),
        "ticks": {
            "taken": watch.lateness.taken,
            "missed": watch.lateness.missed,
            "late": watch.lateness.late,
            "late_p50_ms": watch.lateness.quantile(0.5),
            "late_p99_ms": watch.lateness.quantile(0.99),
        },
        "cost": {"cpu_share": watch.cost.share(), "rss_bytes": resident_bytes()},
        "channels": 0 if latest is None else sum(len(block.layout.channels) for block in latest.window.blocks),
        "features": 0 if latest is None else len(latest.vector.layout.ids),
        "episodes_open": len(watch.pipeline.episodes.open),
        "runs_active": watch.runs.active,
        "shape": {
            "cpus": facts.value("cpu.online_count"),
            "nodes": facts.value("interconnect.node_count"),
            "gpus": len(gpus),
            "nics": len(facts.entities(EntityKind.NIC)),
        },
        "gpu": None if watch.observation.gpu is None else encode(watch.observation.gpu.health()),
        "sources": encode(watch.observation.health()),
        "problems": complaints(watch, now_s),
    }
