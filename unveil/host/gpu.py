"""GpuReader: the GPUs of this host as samples and facts, whatever the driver does.

The reading is done by a child process (``gpu_child``); the watcher only looks whether something came, which takes
microseconds. A driver that hangs makes values that grow old and then absent, an age and a latency that grow with
them, and never a watcher that waits.

GPUs are named by their UUID. One child reads all GPUs of a host; a child per GPU would be one ``GpuProcess`` for each
UUID here, told by ``--gpu``, at 14 MB each.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unveil.host.gpu_facts import gpu_facts, power_limit_texts
from unveil.host.gpu_frames import (
    CallFrame,
    CycleFrame,
    GpusFrame,
    IdentityFrame,
    LostFrame,
    SampleFrame,
)
from unveil.host.gpu_health import GpuCondition, GpuHealth
from unveil.host.gpu_process import GpuProcess
from unveil.host.sources.gpu import METRICS
from unveil.records.metric import Channel, Kind
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unveil.host.gpu_frames import Frame
    from unveil.host.root import HostRoot
    from unveil.records.fact import Fact

_LOG = logging.getLogger(__name__)
_NAMES = tuple(metric.name for metric in METRICS)
_POSITION = {name: index for index, name in enumerate(_NAMES)}
_COUNTERS = tuple(_POSITION[metric.name] for metric in METRICS if metric.kind is Kind.COUNTER)
_LATENCY = _POSITION["gpu.nvml_latency"]
_AGE = _POSITION["gpu.value_age"]
_NAN = float("nan")


@dataclass(slots=True)
class _Gpu:
    """The last known of one GPU."""

    values: list[float] = field(default_factory=lambda: [_NAN] * len(_NAMES))
    at_ns: int | None = None
    told: bool = True  # whether these values have been in a row already
    latency_s: float = _NAN
    called_ns: int | None = None  # when the child entered the driver for it, None when it is not in it
    reasons: dict[str, str] = field(default_factory=dict)
    identity: IdentityFrame | None = None

    def row(self, at_ns: int, hold_ns: int) -> list[float]:
        """Return the values of this GPU at a time, all metrics in order."""
        if self.at_ns is None or at_ns - self.at_ns > hold_ns:
            row = [_NAN] * len(_NAMES)
        else:
            row = list(self.values)
            if self.told:  # a counter that stands still would read as a rate of zero
                for index in _COUNTERS:
                    row[index] = _NAN
        self.told = True
        row[_AGE] = _NAN if self.at_ns is None else max(0, at_ns - self.at_ns) / 1e9
        row[_LATENCY] = self.latency_s
        if self.called_ns is not None:
            waiting = max(0, at_ns - self.called_ns) / 1e9
            row[_LATENCY] = waiting if self.at_ns is None else max(waiting, self.latency_s)
        return row


class GpuReader:
    """Samples and facts of all GPUs, from a child process that the driver may hold up.

    Args:
        root: where sysfs is, for the NUMA node of each GPU.
        interval_ns: time between two readings.
        hold_ns: how long a value stands in for one that is late, before it is absent.
        environ: environment of the child; ``UNVEIL_NVML_LIBRARY`` in it names another NVML library.
    """

    def __init__(
        self,
        root: HostRoot,
        *,
        interval_ns: int = 1_000_000_000,
        hold_ns: int = 5_000_000_000,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._root = root
        self._interval_ns = interval_ns
        self._hold_ns = hold_ns
        self._process = GpuProcess(("--interval", str(interval_ns / 1e9)), os.environ if environ is None else environ)
        self._gpus: dict[str, _Gpu] = {}
        self._lost: dict[str, str] = {}
        self._layout = Layout(channels=())
        self._cycle_ns: int | None = None  # the last complete reading
        self._row_ns = -1  # the last row given out
        self._now_ns = 0
        self._closed = False
        self._facts: tuple[Fact, ...] = ()

    def poll(self, now_ns: int) -> SampleBlock | None:
        """Return what was read since the last call, None when there is nothing new. Never blocks.

        One row for each complete reading. When none came for twice the interval, one row an interval says how old
        everything is: gauges stand in up to *hold_ns*, counters are absent at once.

        Args:
            now_ns: CLOCK_MONOTONIC.
        """
        if self._closed or self._process.absent is not None:
            return None
        self._now_ns = now_ns
        rows: list[tuple[int, dict[str, list[float]]]] = []
        for frame in self._process.poll(now_ns):
            if isinstance(frame, CycleFrame):
                self._cycle_ns = frame.at_ns
                self._add_row(rows, frame.at_ns)
            else:
                self._take(frame)
        if self._process.pid is None:
            for gpu in self._gpus.values():  # nobody is in the driver any more on our behalf
                gpu.called_ns = None
        if not rows and self._late(now_ns) and now_ns - self._row_ns >= self._interval_ns:
            self._add_row(rows, now_ns)
        return self._block(rows) if rows and self._gpus else None

    def facts(self) -> tuple[Fact, ...]:
        """Return the facts of all GPUs; the same object as before while nothing changed.

        Limits that can be set and PIDs are absent while the driver does not answer; what a GPU *is* stays known.
        """
        silent = self._silence() if self._late(self._now_ns) else None
        power = _POSITION["gpu.power_limit"]
        facts = tuple(
            fact
            for uuid in sorted(self._gpus)
            if (gpu := self._gpus[uuid]).identity is not None
            for fact in gpu_facts(self._root, gpu.identity, silent=silent, power_limit=gpu.values[power])
        )
        if facts != self._facts:
            self._facts = facts
        return self._facts

    def settings(self) -> dict[str, str]:
        """Return the raw text of each managed setting of the GPUs (address → watts)."""
        return power_limit_texts(self.facts())

    def ages(self) -> dict[str, float]:
        """Return the age of each GPU's values in seconds, as of the last ``poll``; NaN before the first."""
        return {
            uuid: _NAN if gpu.at_ns is None else max(0, self._now_ns - gpu.at_ns) / 1e9
            for uuid, gpu in sorted(self._gpus.items())
        }

    def absences(self) -> dict[Channel, str]:
        """Return why channels of this host's GPUs have no value."""
        return {
            Channel(metric, (("gpu", uuid),)): reason
            for uuid, gpu in sorted(self._gpus.items())
            for metric, reason in sorted(gpu.reasons.items())
        }

    def health(self) -> GpuHealth:
        """Return how the reading stands, as of the last ``poll``."""
        condition, reason = self._condition()
        return GpuHealth(
            condition=condition,
            reason=reason,
            gpus=tuple(sorted(self._gpus)),
            lost=dict(self._lost),
            starts=self._process.starts,
            age_s=None if self._cycle_ns is None else max(0, self._now_ns - self._cycle_ns) / 1e9,
            channels=len(self._layout.channels),
            period_s=self._interval_ns / 1e9,
        )

    def release(self) -> None:
        """Give all handles of the GPUs back (before a reset, for maintenance), by ending the child; do not wait.

        The handles are gone when ``health()`` says *released*. Values grow old meanwhile.
        """
        self._process.stop()

    def resume(self) -> None:
        """Take the handles again, in a fresh child, once the old one has ended."""
        if not self._closed:
            self._process.start_again()

    def close(self, timeout_s: float = 5.0) -> bool:
        """End the child; False when it is inside a driver call and was left to end by itself."""
        self._closed = True
        pid = self._process.pid
        ended = self._process.end(timeout_s)
        if not ended:
            _LOG.warning("the GPU child (PID %s) is inside a driver call; it was left to end by itself", pid)
        return ended

    def _take(self, frame: Frame) -> None:
        if isinstance(frame, GpusFrame):
            self._lost = {}
            self._keep(frame.gpus)
            return
        if isinstance(frame, LostFrame):
            self._lost[frame.gpu] = frame.reason
            self._keep(uuid for uuid in self._gpus if uuid != frame.gpu)
            return
        gpu = self._gpus.get(getattr(frame, "gpu", ""))
        if gpu is None:
            return
        if isinstance(frame, CallFrame):
            gpu.called_ns = frame.at_ns
        elif isinstance(frame, IdentityFrame):
            gpu.identity = frame
        elif isinstance(frame, SampleFrame):
            gpu.values = [_NAN if value is None else value for value in frame.values]
            gpu.at_ns, gpu.told, gpu.called_ns, gpu.latency_s = frame.at_ns, False, None, frame.latency_s
            if frame.reasons is not None:
                gpu.reasons = frame.reasons

    def _keep(self, uuids: Iterable[str]) -> None:
        """Keep these GPUs and no others; a new layout only when they are not those of before."""
        kept = {uuid: self._gpus.get(uuid) or _Gpu() for uuid in sorted(uuids)}
        if kept.keys() != self._gpus.keys():
            self._layout = Layout(tuple(Channel(name, (("gpu", uuid),)) for uuid in kept for name in _NAMES))
        self._gpus = kept

    def _add_row(self, rows: list[tuple[int, dict[str, list[float]]]], at_ns: int) -> None:
        self._row_ns = max(at_ns, self._row_ns + 1)  # a row that said "late" may be younger than what then came
        rows.append((self._row_ns, {uuid: gpu.row(at_ns, self._hold_ns) for uuid, gpu in self._gpus.items()}))

    def _block(self, rows: list[tuple[int, dict[str, list[float]]]]) -> SampleBlock:
        absent = [_NAN] * len(_NAMES)  # a GPU that an earlier row did not know
        return SampleBlock(
            tier=Tier.MEDIUM,
            layout=self._layout,
            times_ns=np.array([at_ns for at_ns, _ in rows], dtype=np.int64),
            values=np.array([[value for uuid in self._gpus for value in row.get(uuid, absent)] for _, row in rows]),
        )

    def _late(self, now_ns: int) -> bool:
        return self._cycle_ns is not None and now_ns - self._cycle_ns > 2 * self._interval_ns

    def _silence(self) -> str:
        held = [uuid for uuid, gpu in self._gpus.items() if gpu.called_ns is not None]
        if held:
            return f"the driver does not answer for {', '.join(held)}"
        return self._process.failure or "the driver does not answer"

    def _condition(self) -> tuple[GpuCondition, str]:
        process = self._process
        if self._closed:
            return GpuCondition.CLOSED, "closed"
        if process.absent is not None:
            return GpuCondition.ABSENT, process.absent
        if not process.wanted:
            if process.pid is None:
                return GpuCondition.RELEASED, "all handles were given back"
            return GpuCondition.RELEASING, f"the child (PID {process.pid}) ends after the driver call it is in"
        if process.pid is None and process.failure is not None:
            return GpuCondition.FAILED, process.failure
        if self._cycle_ns is None:
            return GpuCondition.STARTING, "nothing was read yet"
        if self._late(self._now_ns):
            return GpuCondition.STALE, self._silence()
        return GpuCondition.READING, ""
