"""Relations: one thing against what bounds it, shares it or pays for it. For fingerprints, not for the detectors.

They answer whose it is (the cgroup's part of the work, of the I/O), how much of a limit is used (a disk's queue, a
node's memory), and how dense events are, so that one threshold holds for two CPUs and for five hundred.
"""

from __future__ import annotations

from unveil.features.families import counters, gauges, ratio
from unveil.features.feature import Channels, FactNumber, Feature, Stat, Trouble
from unveil.features.ratios import BUSY
from unveil.records.entity import EntityKind

_EITHER, _DOWN = Trouble.EITHER, Trouble.DOWN
_DISK, _CGROUP, _NODE = EntityKind.DISK, EntityKind.CGROUP, EntityKind.NODE
_CPUS = (FactNumber(fact="cpu.online_count"),)

HOST_RELATIONS: tuple[Feature, ...] = (
    ratio(
        "cpu.context_switches_per_cpu.rate",
        "context switches of each CPU, on average",
        counters("cpu", "context_switches"),
        _CPUS,
        unit="1/s",
        detect=False,
    ),
    *(
        ratio(
            f"cpu.ipi_{vector.lower()}_per_cpu.rate",
            f"{said} of each CPU, on average",
            (Channels(metric="cpu.ipi", stat=Stat.RATE, where=(("vector", vector),)),),
            _CPUS,
            unit="1/s",
            detect=False,
        )
        for vector, said in (
            ("TLB", "address translations revoked on request"),
            ("CAL", "functions run on request of other CPUs"),
            ("LOC", "local timer interrupts"),
        )
    ),
    ratio(
        "cpu.frequency_share.mean",
        "frequency of single CPUs, looked at in turn, against what the vendor rates them for",
        gauges("cpu", "frequency", Stat.MEAN),
        (FactNumber(fact="cpu.frequency_rated"),),
        unit="1",
        trouble=_DOWN,
        detect=False,
        log=False,
    ),
    ratio(
        "memory.huge_pool_share.last",
        "share of memory that is set aside for explicit huge pages",
        gauges("memory", "huge_total", Stat.LAST),
        gauges("memory", "total", Stat.LAST),
        trouble=_EITHER,
        detect=False,
    ),
    ratio(
        "storage.nfs_request_size.rate",
        "bytes read or written per request to NFS servers",
        counters("storage", "nfs_read_bytes nfs_write_bytes"),
        counters("storage", "nfs_operations"),
        unit="bytes",
        trouble=_DOWN,
        detect=False,
    ),
)

PART_RELATIONS: tuple[Feature, ...] = (
    ratio(
        "cpu.cgroup_busy_part.rate",
        "its part of all CPU time with work",
        counters("cpu", "cgroup_usage", ("cgroup",)),
        counters("cpu", BUSY),
        each=_CGROUP,
        unit="1",
        trouble=_EITHER,
        log=False,
    ),
    ratio(
        "storage.cgroup_io_part.rate",
        "its part of all bytes read from and written to disks",
        counters("storage", "cgroup_read_bytes cgroup_write_bytes", ("cgroup",)),
        counters("storage", "read_bytes write_bytes", ("disk",), whole=True),
        each=_CGROUP,
        unit="1",
        trouble=_EITHER,
        log=False,
    ),
    *(
        ratio(
            f"storage.cgroup_{one}_limit_share.rate",
            f"bytes {done} against its limit",
            counters("storage", f"cgroup_{one}_bytes", ("cgroup",)),
            (FactNumber(fact=f"storage.cgroup_{one}_limit", per=_CGROUP),),
            each=_CGROUP,
            unit="1",
            log=False,
        )
        for one, done in (("read", "read"), ("write", "written"))
    ),
    ratio(
        "memory.cgroup_filled_share.last",
        "anonymous memory and page cache against its limit",
        gauges("memory", "cgroup_anon cgroup_file", Stat.LAST, ("cgroup",)),
        gauges("memory", "cgroup_limit", Stat.LAST, ("cgroup",)),
        each=_CGROUP,
        unit="1",
        log=False,
    ),
    ratio(
        "memory.node_anon_share.last",
        "share of the node's memory that is anonymous",
        gauges("memory", "node_anon", Stat.LAST, ("node",)),
        gauges("memory", "node_total", Stat.LAST, ("node",)),
        each=_NODE,
        trouble=_EITHER,
    ),
    *(
        ratio(
            f"storage.disk_{one}_size.rate",
            f"bytes {done} at once",
            counters("storage", f"{one}_bytes", ("disk",)),
            counters("storage", many, ("disk",)),
            each=_DISK,
            unit="bytes",
            trouble=_EITHER,
        )
        for one, many, done in (("read", "reads", "read"), ("write", "writes", "written"))
    ),
    ratio(
        "storage.disk_queue_fill.mean",
        "requests that the disk has in hand against the length of one of its queues",
        gauges("storage", "in_flight", Stat.MEAN, ("disk",)),
        (FactNumber(fact="storage.nr_requests", per=_DISK),),
        each=_DISK,
        unit="1",
        log=False,
    ),
)
