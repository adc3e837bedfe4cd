"""Stalls: who waits for what, for the host as a whole and for each cgroup; limits that were met; NFS."""

from __future__ import annotations

from unveil.features.families import across, counters, plain, ratio
from unveil.features.feature import SHARE, Across, Feature, Stat, Trouble
from unveil.records.entity import EntityKind

_RATE = (Stat.RATE,)
_EITHER = Trouble.EITHER
_CGROUP = EntityKind.CGROUP

_WAITS = (("cpu", "a CPU"), ("memory", "memory"), ("storage", "I/O"))

CGROUP_STALLS: tuple[Feature, ...] = (
    *(
        each
        for subsystem, what in _WAITS
        for each in plain(
            subsystem,
            _RATE,
            SHARE,
            {
                "cgroup_psi_some": f"share of time in which some of its tasks waited for {what}",
                "cgroup_psi_full": f"share of time in which all of its tasks waited for {what}",
            },
            over=(_CGROUP,),
            each=_CGROUP,
        )
    ),
    *plain(
        "memory",
        _RATE,
        "1/s",
        {
            "cgroup_low": "times it was reclaimed from below its protection",
            "cgroup_high": "times its tasks were slowed down for being above the high mark",
            "cgroup_at_limit": "times it was about to exceed its memory limit",
            "cgroup_oom": "times it ran out of memory",
            "cgroup_oom_kill": "processes of it killed for want of memory",
        },
        over=(_CGROUP,),
        each=_CGROUP,
    ),
    *plain(
        "storage",
        _RATE,
        "1/s",
        {
            "cgroup_reads": "reads from disks",
            "cgroup_writes": "writes to disks",
            "cgroup_read_bytes": "bytes read from disks",
            "cgroup_write_bytes": "bytes written to disks",
        },
        over=(_CGROUP,),
        each=_CGROUP,
        trouble=_EITHER,
    ),
)

_SEEN = frozenset(
    {
        "cpu.cgroup_psi_some.rate",
        "memory.cgroup_psi_full.rate",
        "storage.cgroup_psi_full.rate",
        "memory.cgroup_at_limit.rate",
    }
)

HOST_STALLS: tuple[Feature, ...] = (
    *plain("cpu", _RATE, SHARE, {"psi_irq_full": "share of time in which interrupts kept all tasks from running"}),
    *plain("cpu", _RATE, "tasks", {"run_delay": "tasks that could run and waited for a CPU"}),
    *plain("cpu", _RATE, "cores", {"run_time": "tasks that ran"}, trouble=_EITHER, detect=False),
    *plain("cpu", _RATE, "1/s", {"timeslices": "times a task was given a CPU"}, trouble=_EITHER, detect=False),
    ratio(
        "cpu.delay_per_slice.rate",
        "how long a task waited each time before it got a CPU",
        counters("cpu", "run_delay"),
        counters("cpu", "timeslices"),
        unit="ms",
        scale=1e3,
        detect=False,
    ),
    *(each for part in CGROUP_STALLS if part.name in _SEEN for each in across(part, (Across.HIGHEST,))),
    ratio(
        "storage.nfs_latency.rate",
        "time per request to NFS servers, waiting included",
        counters("storage", "nfs_time"),
        counters("storage", "nfs_operations"),
        unit="ms",
        scale=1e3,
    ),
    ratio(
        "storage.nfs_sent_per_answer.rate",
        "requests sent to NFS servers per answer: above one, some were sent again",
        counters("storage", "nfs_transmissions"),
        counters("storage", "nfs_operations"),
        unit="1",
        log=False,
    ),
    *(
        ratio(
            f"storage.nfs_{name}_latency.rate",
            f"time per request {said}",
            counters("storage", f"nfs_{name}_time"),
            counters("storage", "nfs_operations"),
            unit="ms",
            scale=1e3,
            detect=False,
        )
        for name, said in (("queue", "before it is sent to an NFS server"), ("server", "until an NFS server answered"))
    ),
    *plain("storage", _RATE, "1/s", {"nfs_timeouts": "requests to NFS servers given up"}, detect=False),
    *plain(
        "storage",
        _RATE,
        "1/s",
        {"nfs_read_bytes": "bytes read over NFS", "nfs_write_bytes": "bytes written over NFS"},
        trouble=_EITHER,
        detect=False,
    ),
)
