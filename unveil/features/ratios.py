"""Ratios: quantities measured against their own limit, their total, or each other.

CPU time is divided by the sum of the eight states. Time of guests is in *user* (and *nice*) already, so it is no part
of that sum; adding it, as the ninth and tenth column of /proc/stat invite to, counts it twice. *Steal* is in the sum,
and is neither busy nor idle: it is time that this host wanted and did not get.
"""

from __future__ import annotations

from unveil.features.families import across, counters, device_irqs, gauges, ratio
from unveil.features.feature import Across, Channels, FactNumber, Feature, Stat, Trouble
from unveil.records.entity import EntityKind

_DOWN, _EITHER = Trouble.DOWN, Trouble.EITHER
_NIC, _DISK, _GPU, _CGROUP = EntityKind.NIC, EntityKind.DISK, EntityKind.GPU, EntityKind.CGROUP
_MEMORY_TOTAL = gauges("memory", "total", Stat.MEAN)
_NIC_SPEED = (FactNumber(fact="network.nic_speed", per=_NIC),)
_NET_RX = (Channels(metric="cpu.softirqs", stat=Stat.RATE, where=(("vector", "NET_RX"),)),)
_TRAFFIC = counters("network", "rx_bytes tx_bytes", ("nic",))
_WAYS = (("rx", "received"), ("tx", "sent"))
_IO = (("read", "reads", "read"), ("write", "writes", "written"))

STATES = "user nice system idle iowait irq softirq steal"
BUSY = "user nice system irq softirq"
_STATE_ROWS = (
    ("user", "share of CPU time in programs", _EITHER),
    ("nice", "share of CPU time in programs of low priority", _EITHER),
    ("system", "share of CPU time in the kernel", Trouble.UP),
    ("idle", "share of CPU time without work", _EITHER),
    ("iowait", "share of CPU time without work while a task waits for I/O (a hint, no measure)", Trouble.UP),
    ("irq", "share of CPU time in interrupts", Trouble.UP),
    ("softirq", "share of CPU time in softirqs", Trouble.UP),
    ("steal", "share of CPU time that the hypervisor gave to others", Trouble.UP),
)

CPU_RATIOS: tuple[Feature, ...] = (
    *(
        ratio(f"cpu.{state}.rate", meaning, counters("cpu", state), counters("cpu", STATES), trouble=trouble)
        for state, meaning, trouble in _STATE_ROWS
    ),
    ratio("cpu.busy.rate", "share of CPU time with work", counters("cpu", BUSY), counters("cpu", STATES)),
    ratio(
        "cpu.kernel_share.rate",
        "share of the work that is the kernel's",
        counters("cpu", "system irq softirq"),
        counters("cpu", BUSY),
    ),
    ratio(
        "cpu.running_per_cpu.mean",
        "tasks that run or want to, per CPU",
        gauges("cpu", "running", Stat.MEAN),
        (FactNumber(fact="cpu.online_count"),),
        unit="tasks",
    ),
    ratio(
        "cpu.busy_per_gigabyte.rate",
        "CPU time spent per gigabyte of network traffic",
        counters("cpu", BUSY),
        _TRAFFIC,
        unit="s/GB",
        scale=1e9,
    ),
)

MEMORY_RATIOS: tuple[Feature, ...] = (
    ratio(
        "memory.available_share.mean",
        "share of memory that programs could still get",
        gauges("memory", "available", Stat.MEAN),
        _MEMORY_TOTAL,
        trouble=_DOWN,
    ),
    ratio(
        "memory.anon_share.mean",
        "share of memory that is anonymous",
        gauges("memory", "anon", Stat.MEAN),
        _MEMORY_TOTAL,
        trouble=_EITHER,
        detect=False,
    ),
    ratio(
        "memory.swap_free_share.last",
        "share of swap that is unused",
        gauges("memory", "swap_free", Stat.LAST),
        gauges("memory", "swap_total", Stat.LAST),
        trouble=_DOWN,
    ),
    ratio(
        "memory.anon_huge_share.last",
        "share of anonymous memory in huge pages",
        gauges("memory", "anon_huge", Stat.LAST),
        gauges("memory", "anon", Stat.LAST),
        trouble=_DOWN,
    ),
    ratio(
        "memory.file_huge_share.last",
        "share of the file cache in huge pages",
        gauges("memory", "file_huge", Stat.LAST),
        gauges("memory", "cached", Stat.LAST),
        trouble=_DOWN,
    ),
    ratio(
        "memory.page_tables_share.last",
        "page tables against the anonymous memory that they map",
        gauges("memory", "page_tables", Stat.LAST),
        gauges("memory", "anon", Stat.LAST),
        unit="1",
        log=False,
    ),
    ratio(
        "memory.huge_free_share.last",
        "share of explicit huge pages that is unused",
        gauges("memory", "huge_free", Stat.LAST),
        gauges("memory", "huge_total", Stat.LAST),
        trouble=_EITHER,
    ),
    ratio(
        "memory.committed_share.last",
        "memory that programs asked for against what they may ask for",
        gauges("memory", "committed", Stat.LAST),
        gauges("memory", "commit_limit", Stat.LAST),
        unit="1",
        detect=False,
        log=False,
    ),
    ratio(
        "memory.swap_read_ahead_share.rate",
        "pages read from swap in advance that were needed",
        counters("memory", "swap_read_ahead_hit"),
        counters("memory", "swap_read_ahead"),
        unit="1",
        detect=False,
        log=False,
        trouble=_DOWN,
    ),
    ratio(
        "memory.thp_fault_fallback_share.rate",
        "share of huge-page faults that got small pages instead",
        counters("memory", "thp_fault_fallback"),
        counters("memory", "thp_fault_fallback thp_fault_alloc"),
    ),
    ratio(
        "memory.thp_fault_share.rate",
        "huge pages given out per page fault",
        counters("memory", "thp_fault_alloc"),
        counters("memory", "page_faults"),
        unit="1",
        log=False,
        trouble=_DOWN,
    ),
    ratio(
        "memory.major_fault_share.rate",
        "major faults per page fault",
        counters("memory", "major_faults"),
        counters("memory", "page_faults"),
        unit="1",
        log=False,
    ),
    ratio(
        "memory.reclaim_yield.rate",
        "pages reclaimed per page looked at",
        counters("memory", "pgsteal"),
        counters("memory", "pgscan"),
        unit="1",
        log=False,
        trouble=_DOWN,
    ),
    ratio(
        "memory.compact_fail_share.rate",
        "share of compactions in vain",
        counters("memory", "compact_fail"),
        counters("memory", "compact_fail compact_success"),
    ),
    ratio(
        "memory.dirty_to_threshold.mean",
        "dirty memory against the threshold at which writers are throttled",
        gauges("memory", "dirty", Stat.MEAN),
        gauges("memory", "dirty_threshold", Stat.MEAN),
        unit="1",
        log=False,
    ),
    ratio(
        "memory.dirty_to_background.mean",
        "dirty memory against the threshold at which writeback begins",
        gauges("memory", "dirty", Stat.MEAN),
        gauges("memory", "dirty_background_threshold", Stat.MEAN),
        unit="1",
        log=False,
    ),
)

NETWORK_RATIOS: tuple[Feature, ...] = (
    *(
        ratio(
            f"network.{way}_packet_size.rate",
            f"bytes per packet {said}",
            counters("network", f"{way}_bytes", ("nic",)),
            counters("network", f"{way}_packets", ("nic",)),
            unit="bytes",
            trouble=_EITHER,
        )
        for way, said in _WAYS
    ),
    *(
        ratio(
            f"network.{way}_drop_share.rate",
            f"share of packets lost that should have been {said}",
            counters("network", f"{way}_dropped {way}_errors", ("nic",)),
            counters("network", f"{way}_dropped {way}_errors {way}_packets", ("nic",)),
        )
        for way, said in _WAYS
    ),
    ratio(
        "network.tcp_retrans_share.rate",
        "TCP segments sent again per segment sent",
        counters("network", "tcp_retrans"),
        counters("network", "tcp_out_segs"),
        unit="1",
        log=False,
    ),
    ratio(
        "network.tcp_ofo_share.rate",
        "TCP segments out of order per segment received",
        counters("network", "tcp_ofo_queue"),
        counters("network", "tcp_in_segs"),
        unit="1",
        log=False,
    ),
    ratio(
        "network.softirqs_per_packet.rate",
        "NET_RX softirqs per packet received",
        _NET_RX,
        counters("network", "rx_packets", ("nic",)),
        unit="1",
        trouble=_EITHER,
    ),
    ratio(
        "network.interrupts_per_packet.rate",
        "device interrupts per packet received",
        (device_irqs(),),
        counters("network", "rx_packets", ("nic",)),
        unit="1",
        trouble=_EITHER,
    ),
)

NIC_RATIOS: tuple[Feature, ...] = tuple(
    ratio(
        f"network.{way}_utilisation.rate",
        f"share of the link's speed at which bytes are {said}",
        counters("network", f"{way}_bytes", ("nic",)),
        _NIC_SPEED,
        each=_NIC,
        scale=8e-6,
        unit="1",
        log=False,
        trouble=_EITHER,
    )
    for way, said in _WAYS
)

STORAGE_RATIOS: tuple[Feature, ...] = (
    *(
        ratio(
            f"storage.{one}_latency.rate",
            f"time per {one}, waiting included",
            counters("storage", f"{one}_time", ("disk",)),
            counters("storage", many, ("disk",)),
            unit="ms",
            scale=1e3,
        )
        for one, many, _ in _IO
    ),
    *(
        ratio(
            f"storage.{one}_size.rate",
            f"bytes {done} at once",
            counters("storage", f"{one}_bytes", ("disk",)),
            counters("storage", many, ("disk",)),
            unit="bytes",
            trouble=_EITHER,
        )
        for one, many, done in _IO
    ),
)

DISK_RATIOS: tuple[Feature, ...] = (
    ratio(
        "storage.disk_utilisation.rate",
        "share of time in which the disk had a request in hand",
        counters("storage", "io_time", ("disk",)),
        (),
        each=_DISK,
        unit="1",
        log=False,
    ),
    *(
        ratio(
            f"storage.disk_{one}_latency.rate",
            f"time per {one}, waiting included",
            counters("storage", f"{one}_time", ("disk",)),
            counters("storage", many, ("disk",)),
            each=_DISK,
            unit="ms",
            scale=1e3,
        )
        for one, many, _ in (*_IO, ("flush", "flushes", ""), ("discard", "discards", ""))
    ),
)

GPU_RATIOS: tuple[Feature, ...] = (
    ratio(
        "gpu.memory_share.last",
        "share of its memory in use",
        gauges("gpu", "memory_used", Stat.LAST, ("gpu",)),
        gauges("gpu", "memory_total", Stat.LAST, ("gpu",)),
        each=_GPU,
        trouble=_EITHER,
    ),
    ratio(
        "gpu.power_limit_share.min",
        "power limit against the one the vendor set",
        gauges("gpu", "power_limit", Stat.MIN, ("gpu",)),
        gauges("gpu", "power_default", Stat.MEAN, ("gpu",)),
        each=_GPU,
        unit="1",
        log=False,
        trouble=_DOWN,
    ),
    ratio(
        "gpu.power_to_limit.mean",
        "power against the limit in force",
        gauges("gpu", "power", Stat.MEAN, ("gpu",)),
        gauges("gpu", "power_limit", Stat.MEAN, ("gpu",)),
        each=_GPU,
        unit="1",
        log=False,
        trouble=_EITHER,
    ),
    ratio(
        "gpu.power_per_util.mean",
        "power per share of time in which kernels ran",
        gauges("gpu", "power", Stat.MEAN, ("gpu",)),
        gauges("gpu", "util", Stat.MEAN, ("gpu",)),
        each=_GPU,
        unit="W",
    ),
)

PCIE_TO_NETWORK = ratio(
    "interconnect.pcie_to_network.mean",
    "bytes between host and GPUs per byte on the network",
    gauges("gpu", "pcie_tx pcie_rx", Stat.MEAN, ("gpu",)),
    _TRAFFIC,
    unit="1",
    trouble=_EITHER,
)

CGROUP_RATIOS: tuple[Feature, ...] = (
    ratio(
        "memory.cgroup_huge_share.last",
        "share of its anonymous memory in huge pages",
        gauges("memory", "cgroup_anon_huge", Stat.LAST, ("cgroup",)),
        gauges("memory", "cgroup_anon", Stat.LAST, ("cgroup",)),
        each=_CGROUP,
        trouble=_DOWN,
    ),
    ratio(
        "memory.cgroup_limit_share.last",
        "anonymous memory against its limit",
        gauges("memory", "cgroup_anon", Stat.LAST, ("cgroup",)),
        gauges("memory", "cgroup_limit", Stat.LAST, ("cgroup",)),
        each=_CGROUP,
        unit="1",
        log=False,
    ),
    ratio(
        "cpu.cgroup_throttled_share.rate",
        "share of the periods in which its quota ran out",
        counters("cpu", "cgroup_throttled", ("cgroup",)),
        counters("cpu", "cgroup_periods", ("cgroup",)),
        each=_CGROUP,
    ),
    ratio(
        "cpu.cgroup_quota_share.rate",
        "CPUs in use against its quota",
        counters("cpu", "cgroup_usage", ("cgroup",)),
        (FactNumber(fact="cpu.cgroup_quota", per=_CGROUP),),
        each=_CGROUP,
        unit="1",
        log=False,
    ),
)

UTILISATION: tuple[Feature, ...] = (
    *(each for part in NIC_RATIOS for each in across(part, (Across.HIGHEST,))),
    *(each for part in DISK_RATIOS[:1] for each in across(part, (Across.HIGHEST,))),
)
