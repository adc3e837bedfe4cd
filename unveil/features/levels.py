"""Levels: where gauges stand. Those that only say who uses the host are for fingerprints, not for the detectors."""

from __future__ import annotations

from unveil.features.families import gauges, plain, ratio
from unveil.features.feature import SHARE, FactNumber, Feature, Stat, Trouble
from unveil.records.entity import EntityKind

_MEAN, _LAST = (Stat.MEAN,), (Stat.LAST,)
_EITHER, _DOWN = Trouble.EITHER, Trouble.DOWN
_CGROUP, _NODE, _GPU = EntityKind.CGROUP, EntityKind.NODE, EntityKind.GPU

HOST_LEVELS: tuple[Feature, ...] = (
    *plain(
        "cpu",
        (Stat.MEAN, Stat.MAX),
        "tasks",
        {"running": "tasks that run or want to", "blocked": "tasks that wait for I/O"},
    ),
    *plain("cpu", (Stat.MAX,), "s", {"watcher_late": "lateness of the watcher's ticks"}, log=False),
    *plain(
        "memory",
        _MEAN,
        "bytes",
        {"dirty": "memory to be written to disks", "writeback": "memory being written to disks"},
    ),
    *plain("storage", _MEAN, "requests", {"in_flight": "requests that disks have in hand"}, over=(EntityKind.DISK,)),
    # Levels that drift with other tenants: a detector that sees them learns the hour of the day.
    *plain(
        "memory",
        _MEAN,
        "bytes",
        {
            "free": "memory unused",
            "available": "memory that programs could still get",
            "cached": "file cache",
            "anon": "anonymous memory",
            "anon_huge": "anonymous memory in huge pages",
            "mapped": "file cache mapped by programs",
            "slab": "memory of kernel objects",
            "swap_free": "swap unused",
            "file_huge": "file cache in huge pages",
            "shmem": "shared memory",
            "page_tables": "memory of page tables",
            "huge_total": "pool of explicit huge pages",
            "huge_free": "explicit huge pages unused",
            "dirty_threshold": "dirty memory at which writers are throttled",
            "dirty_background_threshold": "dirty memory at which writeback begins",
            "buffers": "cache of block devices and file systems' own structures",
            "swap_cached": "memory that is in swap, too",
            "unevictable": "memory that reclaim must leave alone",
            "locked": "memory that programs locked",
            "slab_reclaimable": "memory of kernel objects that can be given up",
            "slab_unreclaimable": "memory of kernel objects that cannot be given up",
            "kernel_stack": "stacks of tasks in the kernel",
            "vmalloc": "memory of the kernel that is contiguous only in its own eyes",
            "percpu": "memory that the kernel keeps for each CPU",
            "shmem_huge": "shared memory in huge pages",
            "huge_reserved": "explicit huge pages that are promised",
            "huge_surplus": "huge pages beyond the pool",
        },
        trouble=_EITHER,
        detect=False,
    ),
)

PART_LEVELS: tuple[Feature, ...] = (
    *plain(
        "memory",
        _LAST,
        "bytes",
        {
            "cgroup_anon": "anonymous memory",
            "cgroup_anon_huge": "anonymous memory in huge pages",
            "cgroup_file": "file cache",
        },
        over=(_CGROUP,),
        each=_CGROUP,
        trouble=_EITHER,
    ),
    *plain(
        "memory",
        _LAST,
        "bytes",
        {"node_free": "memory unused", "node_anon": "anonymous memory", "node_file": "file cache"},
        over=(_NODE,),
        each=_NODE,
        trouble=_EITHER,
    ),
    *plain(
        "storage",
        _MEAN,
        "requests",
        {"in_flight": "requests that the disk has in hand"},
        name="disk_{}",
        over=(EntityKind.DISK,),
        each=EntityKind.DISK,
    ),
)

GPU_LEVELS: tuple[Feature, ...] = (
    *plain(
        "gpu",
        _MEAN,
        SHARE,
        {"util": "share of time in which kernels ran", "memory_util": "share of time in which memory was accessed"},
        over=(_GPU,),
        each=_GPU,
        trouble=_DOWN,
    ),
    *plain("gpu", _LAST, "bytes", {"memory_used": "memory in use"}, over=(_GPU,), each=_GPU, trouble=_EITHER),
    *plain(
        "gpu",
        _MEAN,
        "MHz",
        {"sm_clock": "clock of the multiprocessors", "memory_clock": "clock of the memory"},
        over=(_GPU,),
        each=_GPU,
        trouble=_DOWN,
        log=False,
    ),
    *plain("gpu", _MEAN, "W", {"power": "power"}, over=(_GPU,), each=_GPU, trouble=_EITHER, log=False),
    *plain("gpu", (Stat.MAX,), "C", {"temperature": "temperature"}, over=(_GPU,), each=_GPU, log=False),
    *plain(
        "gpu",
        _MEAN,
        SHARE,
        {
            "throttle_power": "share of time slowed down for power",
            "throttle_other": "share of time slowed down for another reason",
        },
        over=(_GPU,),
        each=_GPU,
    ),
    *plain(
        "gpu",
        (Stat.MAX,),
        SHARE,
        {
            "throttle_thermal": "slowed down for heat (1) or not (0)",
            "throttle_hw_slowdown": "slowed down by the hardware (1) or not (0)",
        },
        over=(_GPU,),
        each=_GPU,
    ),
    *plain(
        "gpu",
        _MEAN,
        "bytes/s",
        {"pcie_tx": "bytes sent over PCIe", "pcie_rx": "bytes received over PCIe"},
        over=(_GPU,),
        each=_GPU,
        trouble=_EITHER,
    ),
    *plain(
        "gpu",
        (Stat.MIN,),
        "1",
        {"pcie_width": "lanes of PCIe in use", "pcie_gen": "generation of PCIe in use"},
        over=(_GPU,),
        each=_GPU,
        trouble=_DOWN,
        log=False,
    ),
    *plain(
        "gpu",
        (Stat.MAX,),
        "s",
        {"nvml_latency": "time that the driver took to answer", "value_age": "age of the GPU's values"},
        over=(_GPU,),
        each=_GPU,
        log=False,
    ),
    ratio(
        "gpu.sm_clock_share.mean",
        "clock of the multiprocessors against their highest",
        gauges("gpu", "sm_clock", Stat.MEAN, ("gpu",)),
        (FactNumber(fact="gpu.sm_clock_max", per=_GPU),),
        each=_GPU,
        unit="1",
        log=False,
        trouble=Trouble.DOWN,
    ),
    ratio(
        "gpu.bar1_share.last",
        "share of BAR1 that is in use",
        gauges("gpu", "bar1_used", Stat.LAST, ("gpu",)),
        (FactNumber(fact="gpu.bar1_total", per=_GPU),),
        each=_GPU,
    ),
)
