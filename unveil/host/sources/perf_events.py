"""Counters of the kernel and of the CPUs' own performance units, by perf_event_open(2): all CPUs, all processes.

Software events are everywhere; cycles, instructions, caches, TLB and memory of other nodes are where there is a
performance unit, which most hypervisors hide. Events are kept open, in groups that the unit can count at the same
time; each CPU's group is one read. A group that had to share the unit is scaled by the time that it was counted.

Reading an idle CPU's counters wakes it, and a group is a descriptor a CPU: hence the slow pace, and the bound.

Source: perf_event_open(2); include/uapi/linux/perf_event.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from dataclasses import dataclass, field
from pathlib import Path

from unveil.errors import SourceAbsentError
from unveil.host.cpulist import parse_cpulist
from unveil.records.metric import Channel, Kind, declare

_SYSCALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "ppc64": 319, "s390x": 331}
_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
_DTLB, _NODE, _MISS = 3, 6, 1 << 16  # of PERF_TYPE_HW_CACHE: cache | read << 8 | result << 16
_READ_FORMAT = 1 | 2 | 8  # TOTAL_TIME_ENABLED, TOTAL_TIME_RUNNING, GROUP
_CLOSE_ON_EXEC = 8
_ATTRIBUTES = struct.Struct("IIQQQQQIIQ")  # struct perf_event_attr, version 0: 64 bytes
_SPARE_FILES = 512  # descriptors that are left to everyone else
MOST_DESCRIPTORS = 4096

# Groups: name → metric → type, configuration. Four counters a group: what a small unit counts at a time.
GROUPS: dict[str, dict[str, tuple[int, int]]] = {
    "software": {
        "cpu.migrations": (_SOFTWARE, 4),
        "cpu.alignment_faults": (_SOFTWARE, 7),
        "cpu.emulation_faults": (_SOFTWARE, 8),
    },
    "core": {
        "cpu.cycles": (_HARDWARE, 0),
        "cpu.instructions": (_HARDWARE, 1),
        "cpu.branches": (_HARDWARE, 4),
        "cpu.branch_misses": (_HARDWARE, 5),
    },
    "memory": {
        "cpu.cache_references": (_HARDWARE, 2),
        "cpu.cache_misses": (_HARDWARE, 3),
        "memory.tlb_loads": (_CACHE, _DTLB),
        "memory.tlb_misses": (_CACHE, _DTLB | _MISS),
    },
    "node": {
        "interconnect.node_loads": (_CACHE, _NODE),
        "interconnect.node_load_misses": (_CACHE, _NODE | _MISS),
    },
}
_MEANINGS = {
    "cpu.migrations": "times a task was moved to another CPU",
    "cpu.alignment_faults": "accesses that the kernel had to align",
    "cpu.emulation_faults": "instructions that the kernel had to emulate",
    "cpu.cycles": "cycles of all CPUs while not halted",
    "cpu.instructions": "instructions that were retired",
    "cpu.branches": "branches that were retired",
    "cpu.branch_misses": "branches that were predicted wrongly",
    "cpu.cache_references": "accesses to the last cache",
    "cpu.cache_misses": "accesses that the last cache did not have",
    "memory.tlb_loads": "loads that asked the data TLB",
    "memory.tlb_misses": "loads that the data TLB did not have",
    "interconnect.node_loads": "loads from memory",
    "interconnect.node_load_misses": "loads from memory of another node",
}
METRICS = tuple(
    declare(name, Kind.COUNTER, "1", meaning, source="perf_event_open") for name, meaning in _MEANINGS.items()
)


@dataclass(slots=True)
class Group:
    """The events of one group on one CPU.

    Attributes:
        descriptors: one an event; the first is read for all.
        before: enabled time, running time and raw counts at the last reading.
    """

    metrics: tuple[str, ...]
    descriptors: list[int] = field(default_factory=list)
    before: tuple[int, ...] = ()

    def read(self) -> dict[str, float] | None:
        """Return what was counted since the last reading, scaled; None when nothing was, as others had the unit.

        Raises:
            OSError: the counters are gone.
        """
        layout = struct.Struct(f"{3 + len(self.metrics)}Q")
        data = os.read(self.descriptors[0], layout.size)
        if len(data) != layout.size:
            return None  # the group is in error: the unit cannot count it
        now = layout.unpack(data)[1:]
        before = self.before or (0,) * len(now)
        self.before = now
        enabled, running = now[0] - before[0], now[1] - before[1]
        if enabled <= 0:
            return dict.fromkeys(self.metrics, 0.0)  # a CPU that went away since: nothing was counted on it
        if running <= 0:
            return None
        share = enabled / running
        return {
            metric: max(0, new - old) * share
            for metric, new, old in zip(self.metrics, now[2:], before[2:], strict=True)
        }

    def close(self) -> None:
        """Close the events, the first one last."""
        for descriptor in reversed(self.descriptors):
            os.close(descriptor)
        self.descriptors.clear()


class PerfEvents:
    """The probe. Totals over all CPUs, counted on from where they were when CPUs come and go."""

    name = "perf"
    period_s = 10.0

    def __init__(self) -> None:
        self.reason = ""
        self._groups: list[Group] = []
        self._online = ""
        self._totals: dict[str, float] = {}
        self._absent: dict[str, str] = {}

    def open(self) -> None:
        """Open what this machine counts.

        Raises:
            SourceAbsentError: it counts nothing that we may see.
        """
        number = _SYSCALLS.get(platform.machine())
        if number is None:
            raise SourceAbsentError(f"the number of perf_event_open on {platform.machine()} is not known")
        self._online = _online()
        self._absent = {}
        cpus = sorted(parse_cpulist(self._online))
        room = min(MOST_DESCRIPTORS, _raised_limit() - _SPARE_FILES)
        for name, events in GROUPS.items():
            needed = len(events) * len(cpus)
            if needed > room:
                self._absent[name] = f"{needed} descriptors would be needed"
                continue
            groups = self._open_group(number, name, events, cpus)
            room -= needed if groups else 0
            self._groups += groups
        if not self._groups:
            raise SourceAbsentError("; ".join(dict.fromkeys(self._absent.values())))
        self.reason = "; ".join(
            f"no counters of {', '.join(name for name, other in self._absent.items() if other == why)}: {why}"
            for why in dict.fromkeys(self._absent.values())
        )

    def read(self) -> dict[Channel, float]:
        """Return the totals. A metric that was not counted on some CPU this time is absent this time."""
        if _online() != self._online:
            self.close()
            self.open()
        missed: set[str] = set()
        for group in self._groups:
            counted = group.read()
            if counted is None:
                missed |= set(group.metrics)
                continue
            for metric, count in counted.items():
                self._totals[metric] = self._totals.get(metric, 0.0) + count
        seen = {metric for group in self._groups for metric in group.metrics}
        return {Channel(name): float("nan") if name in missed else self._totals.get(name, 0.0) for name in seen}

    def close(self) -> None:
        """Close all events."""
        for group in self._groups:
            group.close()
        self._groups = []

    def _open_group(self, number: int, name: str, events: dict[str, tuple[int, int]], cpus: list[int]) -> list[Group]:
        """Open on every CPU what the first one counts of a group; nothing, and the reason kept, when it refuses."""
        probed = {metric: _open_event(number, *event, cpus[0], -1) for metric, event in events.items()}
        for answer in probed.values():
            if answer >= 0:
                os.close(answer)
        counted = tuple(metric for metric, answer in probed.items() if answer >= 0)
        lacking = {metric: _refusal(-answer) for metric, answer in probed.items() if answer < 0}
        if lacking:
            what = name if not counted else ", ".join(lacking)
            self._absent[what] = next(iter(lacking.values()))
        groups: list[Group] = []
        for cpu in cpus if counted else ():
            group = Group(counted)
            for metric in counted:
                leader = group.descriptors[0] if group.descriptors else -1
                answer = _open_event(number, *events[metric], cpu, leader)
                if answer < 0:
                    break
                group.descriptors.append(answer)
            if len(group.descriptors) == len(counted):
                groups.append(group)
                continue
            group.close()
            if answer != -errno.ENODEV:  # a CPU that went offline just now is no refusal
                self._absent[name] = _refusal(-answer)
                for each in groups:
                    each.close()
                return []
        return groups


def _open_event(number: int, kind: int, configuration: int, cpu: int, leader: int) -> int:
    """Open one event of a CPU for all processes; return its descriptor, or the error as a negative number."""
    attributes = _ATTRIBUTES.pack(kind, _ATTRIBUTES.size, configuration, 0, 0, _READ_FORMAT, 0, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.syscall(
        ctypes.c_long(number),
        ctypes.c_char_p(attributes),
        ctypes.c_int(-1),
        ctypes.c_int(cpu),
        ctypes.c_int(leader),
        ctypes.c_ulong(_CLOSE_ON_EXEC),
    )
    return int(answer) if answer >= 0 else -ctypes.get_errno()


def _refusal(number: int) -> str:
    if number in (errno.EACCES, errno.EPERM):
        try:
            paranoid = Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii").strip()
        except OSError:
            paranoid = "unknown"
        return f"counting all processes takes CAP_PERFMON (kernel.perf_event_paranoid is {paranoid})"
    if number in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL):
        return "this CPU, or the hypervisor above it, does not count them"
    if number == errno.ENOSYS:
        return "this kernel was built without perf events"
    return os.strerror(number)


def _online() -> str:
    """Return the CPUs that are online, as the kernel lists them."""
    return Path("/sys/devices/system/cpu/online").read_text(encoding="ascii").strip()


def _raised_limit() -> int:
    """Raise this process's limit of open files as far as it may, up to what is needed; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted and (hard == resource.RLIM_INFINITY or hard > soft):
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft
