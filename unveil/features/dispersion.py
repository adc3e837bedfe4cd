"""Dispersion: how uneven a quantity is, in time and over the parts of the host."""

from __future__ import annotations

from unveil.features.families import across, counters, plain, ratio, single
from unveil.features.feature import SHARE, Across, Feature, Stat, Trouble, feature
from unveil.features.levels import GPU_LEVELS
from unveil.features.rates import PART_RATES
from unveil.features.ratios import BUSY, CGROUP_RATIOS, GPU_RATIOS, STATES
from unveil.records.entity import EntityKind

_UNEVEN, _STD, _SLOPE = (Stat.UNEVENNESS,), (Stat.STD,), (Stat.SLOPE,)
_LOW, _AVERAGE, _HIGH, _IMBALANCE = Across.LOWEST, Across.AVERAGE, Across.HIGHEST, Across.IMBALANCE
_EITHER = Trouble.EITHER
_CPU, _GPU, _NIC, _DISK = EntityKind.CPU, EntityKind.GPU, EntityKind.NIC, EntityKind.DISK

_PARTS = {each.name: each for each in (*PART_RATES, *GPU_LEVELS, *GPU_RATIOS, *CGROUP_RATIOS)}

# In time.
UNEVENNESS: tuple[Feature, ...] = (
    *plain(
        "cpu",
        _UNEVEN,
        "cores",
        {
            "user": "CPUs in programs",
            "system": "CPUs in the kernel",
            "iowait": "CPUs without work while a task waits for I/O",
            "softirq": "CPUs in softirqs",
            "steal": "CPUs given to others by the hypervisor",
        },
    ),
    *plain("cpu", _UNEVEN, "1/s", {"context_switches": "context switches", "interrupts": "interrupts"}),
    *plain("cpu", _UNEVEN, SHARE, {"psi_some": "tasks waiting for a CPU"}),
    *plain("memory", _UNEVEN, SHARE, {"psi_some": "tasks waiting for memory"}),
    *plain("storage", _UNEVEN, SHARE, {"psi_some": "tasks waiting for I/O"}),
    *plain("cpu", _STD, "tasks", {"running": "tasks that run or want to", "blocked": "tasks that wait for I/O"}),
    *plain(
        "memory",
        _STD,
        "bytes",
        {
            "available": "memory that programs could still get",
            "dirty": "memory to be written to disks",
            "writeback": "memory being written to disks",
        },
    ),
    *plain(
        "memory",
        _SLOPE,
        "bytes",
        {
            "available": "memory that programs could still get",
            "anon": "anonymous memory",
            "cached": "file cache",
            "slab": "memory of kernel objects",
            "page_tables": "memory of page tables",
            "shmem": "shared memory",
            "swap_free": "unused swap",
        },
        trouble=_EITHER,
        detect=False,
    ),
    *(
        each
        for way, said in (("rx", "bytes received"), ("tx", "bytes sent"))
        for each in across(
            feature(
                f"network.{way}_bytes.std",
                f"unevenness of {said} within the window",
                single(f"network.{way}_bytes", Stat.UNEVENNESS, ("nic",), each=_NIC),
                unit="bytes/s",
            ),
            (_HIGH,),
        )
    ),
)


def _cpu_share(name: str, states: str, meaning: str) -> Feature:
    """Return the share of each CPU's time in some states: no feature itself, what others are taken from."""
    above, below = counters("cpu", states, ("cpu",)), counters("cpu", STATES, ("cpu",))
    return ratio(f"cpu.{name}.rate", meaning, above, below, each=_CPU)


_CPU_BUSY = _cpu_share("busy", BUSY, "share of CPU time with work")
_CPU_SOFTIRQ = _cpu_share("softirq", "softirq", "share of CPU time in softirqs")
_CPU_IRQS = ratio(
    "cpu.irq_part.rate",
    "part of the device interrupts that one CPU handles",
    counters("cpu", "irq", ("irq", "cpu")),
    counters("cpu", "irq", ("irq", "cpu"), whole=True),
    each=_CPU,
)

# Over the CPUs: the host's average hides one CPU that does the work of many.
CPU_IMBALANCE: tuple[Feature, ...] = (
    *across(_CPU_BUSY, (_HIGH, _IMBALANCE)),
    *across(_CPU_SOFTIRQ, (_HIGH, _IMBALANCE)),
    *across(_cpu_share("user", "user", "share of CPU time in programs"), (_IMBALANCE,)),
    *across(_cpu_share("system", "system", "share of CPU time in the kernel"), (_IMBALANCE,)),
    *across(_cpu_share("irq", "irq", "share of CPU time in interrupts"), (_IMBALANCE,)),
    *across(_cpu_share("iowait", "iowait", "share of CPU time in iowait"), (_IMBALANCE,)),
    *across(_cpu_share("steal", "steal", "share of CPU time given to others"), (_IMBALANCE,)),
    *across(_CPU_IRQS, (_HIGH,)),
)

# Over the other parts.
CGROUP_EXTREMES: tuple[Feature, ...] = tuple(
    each
    for name in (
        "cpu.cgroup_usage.rate",
        "cpu.cgroup_throttled.rate",
        "cpu.cgroup_throttled_time.rate",
        "cpu.cgroup_throttled_share.rate",
        "cpu.cgroup_quota_share.rate",
        "memory.cgroup_page_faults.rate",
        "memory.cgroup_major_faults.rate",
        "memory.cgroup_limit_share.last",
    )
    for each in across(_PARTS[name], (_HIGH,))
)

PART_OF_ALL: tuple[Feature, ...] = tuple(
    each
    for subsystem, metric, kind, meaning in (
        ("network", "rx_bytes", _NIC, "part of the bytes received that came over one NIC"),
        ("network", "tx_bytes", _NIC, "part of the bytes sent that went over one NIC"),
        ("storage", "read_bytes", _DISK, "part of the bytes read that came from one disk"),
        ("storage", "write_bytes", _DISK, "part of the bytes written that went to one disk"),
    )
    for each in across(
        ratio(
            f"{subsystem}.{metric}_part.rate",
            meaning,
            counters(subsystem, metric, (kind,)),
            counters(subsystem, metric, (kind,), whole=True),
            each=kind,
            trouble=_EITHER,
        ),
        (_HIGH,),
    )
)

_ALL = (_LOW, _AVERAGE, _HIGH)
_GPU_WAYS: dict[str, tuple[Across, ...]] = {
    "gpu.util.mean": (*_ALL, _IMBALANCE),
    "gpu.memory_util.mean": _ALL,
    "gpu.sm_clock.mean": (*_ALL, _IMBALANCE),
    "gpu.memory_clock.mean": (_LOW, _AVERAGE),
    "gpu.power.mean": (*_ALL, _IMBALANCE),
    "gpu.power_to_limit.mean": _ALL,
    "gpu.power_limit_share.min": (_LOW,),
    "gpu.power_per_util.mean": (_AVERAGE,),
    "gpu.temperature.max": (_AVERAGE, _HIGH, _IMBALANCE),
    "gpu.throttle_power.mean": (_AVERAGE, _HIGH),
    "gpu.throttle_thermal.max": (_HIGH,),
    "gpu.throttle_hw_slowdown.max": (_HIGH,),
    "gpu.throttle_other.mean": (_HIGH,),
    "gpu.pcie_tx.mean": (_AVERAGE, _HIGH),
    "gpu.pcie_rx.mean": (_AVERAGE, _HIGH, _IMBALANCE),
    "gpu.pcie_width.min": (_LOW,),
    "gpu.pcie_gen.min": (_LOW,),
    "gpu.ecc_corrected.rate": (_HIGH,),
    "gpu.nvml_latency.max": (_HIGH,),
    "gpu.value_age.max": (_HIGH,),
}

GPU_EXTREMES: tuple[Feature, ...] = tuple(
    each for name, ways in _GPU_WAYS.items() for each in across(_PARTS[name], ways)
) + across(
    feature(
        "gpu.util.std",
        "fluctuation of the share of time in which kernels ran",
        single("gpu.util", Stat.STD, ("gpu",), each=_GPU),
    ),
    (_AVERAGE, _HIGH),
)
