"""GpuReader: the GPUs of this host as samples and facts, whatever the driver does.

The reading is done by child processes (``gpu_child``), one for each GPU; the watcher only looks whether something
came, which takes microseconds. A driver that hangs for one GPU makes that GPU's values grow old and then absent, with
an age and a latency that grow with them; it hides no other GPU, and the watcher never waits.

One more child lists the GPUs and ends: at the start, when a driver was loaded again, and after ``resume``. GPUs are
named by their UUID, never by an index.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

from unveil.host.gpu_facts import gpu_facts, power_limit_texts
from unveil.host.gpu_frames import CallFrame, GpusFrame, IdentityFrame, LostFrame, SampleFrame
from unveil.host.gpu_health import GpuCondition, GpuHealth
from unveil.host.gpu_process import GpuProcess
from unveil.host.gpu_rows import GpuRows
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unveil.host.gpu_frames import Frame
    from unveil.host.root import HostRoot
    from unveil.records.fact import Fact
    from unveil.records.sample import SampleBlock

_LOG = logging.getLogger(__name__)
_LIST_NS = 30_000_000_000  # opening the driver takes seconds on a host with eight GPUs


class GpuReader:
    """Samples and facts of all GPUs, from child processes that the driver may hold up.

    Args:
        root: where sysfs is, for the NUMA node of each GPU.
        interval_ns: time between two readings; a call that takes longer than two of them is over its deadline.
        hold_ns: how long a value stands in for one that is late, before it is absent.
        environ: environment of the children; ``UNVEIL_NVML_LIBRARY`` in it names another NVML library.
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
        self._environ = dict(os.environ if environ is None else environ)
        self._list = GpuProcess(("--list",), self._environ)
        self._listing = True
        self._children: dict[str, GpuProcess] = {}
        self._leaving: list[GpuProcess] = []  # of GPUs that are gone, until they have ended
        self._left_starts = 0
        self._rows = GpuRows(interval_ns, hold_ns)
        self._lost: dict[str, str] = {}
        self._now_ns = 0
        self._wanted = True
        self._closed = False
        self._facts: tuple[Fact, ...] = ()

    def poll(self, now_ns: int) -> SampleBlock | None:
        """Return what was read since the last call, None when there is nothing new. Never blocks.

        Args:
            now_ns: CLOCK_MONOTONIC.
        """
        if self._closed or self._list.absent is not None:
            return None
        self._now_ns = now_ns
        self._look(now_ns)
        frames: list[tuple[int, str, Frame]] = []
        for uuid, child in self._children.items():
            at_ns = 0
            for frame in child.poll(now_ns):
                at_ns = getattr(frame, "at_ns", at_ns)
                frames.append((at_ns, uuid, frame))
            if child.pid is None:  # nobody is in the driver any more on our behalf
                self._rows.gpus[uuid].called_ns = None
        for _, uuid, frame in sorted(frames, key=lambda told: told[0]):
            self._take(uuid, frame)
        return self._rows.block(now_ns, [uuid for uuid, child in self._children.items() if child.pid is not None])

    def facts(self) -> tuple[Fact, ...]:
        """Return the facts of all GPUs; the same object as before while nothing changed.

        Limits that can be set and PIDs are absent while the driver does not answer; what a GPU *is* stays known.
        """
        late = self._rows.late(self._now_ns)
        facts = tuple(
            fact
            for uuid, gpu in self._rows.gpus.items()
            if gpu.identity is not None
            for fact in gpu_facts(
                self._root,
                gpu.identity,
                silent=self._silence(uuid) if uuid in late else None,
                power_limit=gpu.power_limit,
            )
        )
        if facts != self._facts:
            self._facts = facts
        return self._facts

    def settings(self) -> dict[str, str]:
        """Return the raw text of each managed setting of the GPUs (address → watts)."""
        return power_limit_texts(self.facts())

    def ages(self) -> dict[str, float]:
        """Return the age of each GPU's values in seconds, as of the last ``poll``; NaN before the first."""
        return {uuid: gpu.age_s(self._now_ns) for uuid, gpu in self._rows.gpus.items()}

    def absences(self) -> dict[Channel, str]:
        """Return why channels of this host's GPUs have no value."""
        return {
            Channel(metric, (("gpu", uuid),)): reason
            for uuid, gpu in self._rows.gpus.items()
            for metric, reason in sorted(gpu.reasons.items())
        }

    def health(self) -> GpuHealth:
        """Return how the reading stands, as of the last ``poll``."""
        condition, reason = self._condition()
        ages = [gpu.age_s(self._now_ns) for gpu in self._rows.gpus.values() if gpu.at_ns is not None]
        return GpuHealth(
            condition=condition,
            reason=reason,
            gpus=tuple(self._rows.gpus),
            lost=dict(self._lost),
            starts=self._left_starts + sum(process.starts for process in self._processes()),
            age_s=max(ages, default=None),
            channels=self._rows.channels,
            period_s=self._interval_ns / 1e9,
        )

    def release(self) -> None:
        """Give all handles of the GPUs back (before a reset, for maintenance), by ending the children; do not wait.

        The handles are gone when ``health()`` says *released*. Values grow old meanwhile.
        """
        self._wanted = self._listing = False
        for process in self._processes():
            process.stop()

    def resume(self) -> None:
        """Take the handles again, in fresh children once the old ones have ended; look for GPUs that were lost, too."""
        if not self._closed:
            self._wanted = True
            self._list_again()

    def close(self, timeout_s: float = 5.0) -> bool:
        """End the children; False when one is inside a driver call and was left to end by itself."""
        self._closed = True
        for process in self._processes():
            process.stop()
        until, all_ended = time.monotonic() + timeout_s, True
        for process in self._processes():
            pid = process.pid
            if not process.end(max(0.0, until - time.monotonic())):
                _LOG.warning("the GPU child (PID %s) is inside a driver call; it was left to end by itself", pid)
                all_ended = False
        return all_ended

    def _processes(self) -> tuple[GpuProcess, ...]:
        return (self._list, *self._children.values(), *self._leaving)

    def _look(self, now_ns: int) -> None:
        """See which GPUs there are, when that is to be found out; never while an old child is in the driver."""
        for process in self._leaving:
            process.poll(now_ns)
            self._left_starts += process.starts if process.pid is None else 0
        self._leaving = [process for process in self._leaving if process.pid is not None]
        held = bool(self._leaving) or any(
            child.pid is not None and not child.wanted for child in self._children.values()
        )
        if self._list.pid is None and (held or not self._listing):
            return
        for frame in self._list.poll(now_ns):
            if isinstance(frame, GpusFrame):
                self._listing = False
                self._list.failure = None
                self._list.stop()
                self._follow(frame.gpus)

    def _list_again(self) -> None:
        self._listing = True
        self._list.start_again()

    def _follow(self, uuids: Iterable[str]) -> None:
        """Have a child for each of these GPUs and for no other."""
        uuids = frozenset(uuids)
        for uuid in self._children.keys() - uuids:
            self._drop(uuid)
        self._lost = {uuid: why for uuid, why in self._lost.items() if uuid not in uuids}
        for uuid in sorted(uuids):
            child = self._children.get(uuid)
            if child is None:
                interval = str(self._interval_ns / 1e9)
                self._children[uuid] = GpuProcess(("--gpu", uuid, "--interval", interval), self._environ)
            elif not child.wanted:
                child.start_again()
        self._rows.keep(uuids)

    def _drop(self, uuid: str) -> None:
        child = self._children.pop(uuid)
        child.stop()
        self._leaving.append(child)

    def _take(self, uuid: str, frame: Frame) -> None:
        gpu, child = self._rows.gpus.get(uuid), self._children.get(uuid)
        if gpu is None or child is None:
            return
        if isinstance(frame, CallFrame):
            gpu.called_ns = frame.at_ns
        elif isinstance(frame, IdentityFrame):
            gpu.identity = frame
        elif isinstance(frame, LostFrame):  # for good: only a person who resets it brings it back
            self._lost[uuid] = frame.reason
            self._drop(uuid)
            self._rows.keep(other for other in self._rows.gpus if other != uuid)
        elif isinstance(frame, SampleFrame):
            if child.starts != gpu.start:  # it was started again and answers: the driver may show other GPUs now
                gpu.start = child.starts
                self._list_again()
            child.failure = None
            self._rows.take(gpu, frame)

    def _silence(self, uuid: str) -> str:
        return self._children[uuid].failure or f"the driver does not answer for {uuid}"

    def _condition(self) -> tuple[GpuCondition, str]:
        if self._closed:
            return GpuCondition.CLOSED, "closed"
        if self._list.absent is not None:
            return GpuCondition.ABSENT, self._list.absent
        if not self._wanted:
            pids = ", ".join(str(process.pid) for process in self._processes() if process.pid is not None)
            if not pids:
                return GpuCondition.RELEASED, "all handles were given back"
            return GpuCondition.RELEASING, f"the children (PID {pids}) end after the driver calls they are in"
        if not self._children:
            return self._condition_without_gpus()
        failures = [child.failure for child in self._children.values() if child.failure is not None]
        if failures:
            return GpuCondition.FAILED, "; ".join(dict.fromkeys(failures))
        if any(child.pid is None or not child.wanted for child in self._children.values()):
            return GpuCondition.STARTING, "a child is being started"
        late = self._rows.late(self._now_ns)
        if late:
            return GpuCondition.STALE, "; ".join(self._silence(uuid) for uuid in late)
        if any(gpu.at_ns is None for gpu in self._rows.gpus.values()):
            return GpuCondition.STARTING, "nothing was read yet"
        return GpuCondition.READING, ""

    def _condition_without_gpus(self) -> tuple[GpuCondition, str]:
        if self._lost:
            return GpuCondition.FAILED, "every GPU is lost"
        if self._list.failure is not None:
            return GpuCondition.FAILED, self._list.failure
        if self._list.pid is not None and self._now_ns - self._list.started_ns > _LIST_NS:
            return GpuCondition.STALE, "the driver does not tell which GPUs there are"
        return GpuCondition.STARTING, "nothing was read yet"
