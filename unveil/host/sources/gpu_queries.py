"""The calls that read one GPU: a table of what is asked, in which unit it comes, and what answer makes no sense.

Nothing here imports pynvml: the calls take the module, which ``gpu.open_nvml`` loaded, as an argument.

Source: NVML API reference (nvml.h): units, error codes and the bits of the clocks event reasons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.fact import FactValue

Values = dict[str, float]

# NVML error codes (nvml.h, nvmlReturn_t) that mean more than one absent value.
NOT_SUPPORTED = frozenset({3, 13, 25})  # NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH
LOST = frozenset({15, 16, 28})  # GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND
DRIVER_GONE = frozenset({1, 9, 18})  # UNINITIALIZED, DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH
LIBRARY_NOT_FOUND = 12

# Bits of nvmlClocksEventReason*.
_REASONS = {
    "gpu.throttle_power": 0x4,  # software power cap
    "gpu.throttle_thermal": 0x20 | 0x40,  # software and hardware thermal slowdown
    "gpu.throttle_hw_slowdown": 0x8 | 0x80,  # hardware slowdown, hardware power brake
}
_IDLE = 0x1
_OTHER = ~(_IDLE | 0x4 | 0x20 | 0x40 | 0x8 | 0x80)

_INVALID_ARGUMENT = 2  # asked for a link that the GPU does not have
_MOST_LINKS = 36

_BLANK_32 = 0xFFFF_FFFF  # drivers answer this where they have no value
_BLANK_64 = 0x7FFF_FFFF_FFFF_FF00  # … and something just below 2^63 (blanks 2^63-16 to 2^63-1)


@dataclass(frozen=True, slots=True)
class Query:
    """One reading of the driver: what it serves, the call, and whether it blocks by design (then no latency)."""

    metrics: tuple[str, ...]
    read: Callable[[Any, Any], Values]
    slow: bool = False
    blocks: bool = False


def number(name: str, value: int, *, times: int = 1, per: int = 1, least: float = 0, most: float = math.inf) -> Values:
    """Return one value in the metric's unit, nothing where the driver answered a blank or nonsense."""
    if value == _BLANK_32 or value >= _BLANK_64 or not least <= value <= most:
        return {}
    return {f"gpu.{name}": value * times / per}


def _read_utilization(nvml: Any, gpu: Any) -> Values:
    rates = nvml.nvmlDeviceGetUtilizationRates(gpu)
    return number("util", rates.gpu, per=100, most=100) | number("memory_util", rates.memory, per=100, most=100)


def _read_memory(nvml: Any, gpu: Any) -> Values:
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(gpu, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError as error:
        if error.value not in NOT_SUPPORTED:
            raise
        memory = nvml.nvmlDeviceGetMemoryInfo(gpu)  # drivers before 510: counts what the driver reserves as used
    return number("memory_used", memory.used) | number("memory_total", memory.total)


def _read_reasons(nvml: Any, gpu: Any) -> Values:
    try:
        bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu)
    except nvml.NVMLError as error:
        if error.value not in NOT_SUPPORTED:
            raise
        bits = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu)  # the name before driver 535
    values = {name: float(bool(bits & mask)) for name, mask in _REASONS.items()}
    values["gpu.throttle_other"] = float(bool(bits & _OTHER))
    return values


# Metrics, call, largest value that makes sense (in the driver's unit). Largest boards draw 1.4 kW today.
QUERIES: tuple[Query, ...] = (
    Query(("gpu.util", "gpu.memory_util"), _read_utilization),
    Query(("gpu.memory_used", "gpu.memory_total"), _read_memory),
    Query(("gpu.sm_clock",), lambda n, g: number("sm_clock", n.nvmlDeviceGetClockInfo(g, n.NVML_CLOCK_SM), most=1e5)),
    Query(
        ("gpu.memory_clock",),
        lambda n, g: number("memory_clock", n.nvmlDeviceGetClockInfo(g, n.NVML_CLOCK_MEM), most=1e5),
    ),
    Query(("gpu.power",), lambda n, g: number("power", n.nvmlDeviceGetPowerUsage(g), per=1000, most=1e7)),
    Query(
        ("gpu.power_limit",),
        lambda n, g: number("power_limit", n.nvmlDeviceGetPowerManagementLimit(g), per=1000, most=1e7),
    ),
    Query(("gpu.energy",), lambda n, g: number("energy", n.nvmlDeviceGetTotalEnergyConsumption(g), per=1000)),
    Query(
        ("gpu.temperature",),
        lambda n, g: number("temperature", n.nvmlDeviceGetTemperature(g, n.NVML_TEMPERATURE_GPU), most=200),
    ),
    Query((*_REASONS, "gpu.throttle_other"), _read_reasons),
    Query(
        ("gpu.power_default",),
        lambda n, g: number("power_default", n.nvmlDeviceGetPowerManagementDefaultLimit(g), per=1000, most=1e7),
        slow=True,
    ),
    Query(
        ("gpu.pcie_tx",),
        lambda n, g: number("pcie_tx", n.nvmlDeviceGetPcieThroughput(g, n.NVML_PCIE_UTIL_TX_BYTES), times=1000),
        slow=True,
        blocks=True,
    ),
    Query(
        ("gpu.pcie_rx",),
        lambda n, g: number("pcie_rx", n.nvmlDeviceGetPcieThroughput(g, n.NVML_PCIE_UTIL_RX_BYTES), times=1000),
        slow=True,
        blocks=True,
    ),
    Query(
        ("gpu.pcie_width",),
        lambda n, g: number("pcie_width", n.nvmlDeviceGetCurrPcieLinkWidth(g), least=1, most=32),
        slow=True,
    ),
    Query(
        ("gpu.pcie_gen",),
        lambda n, g: number("pcie_gen", n.nvmlDeviceGetCurrPcieLinkGeneration(g), least=1, most=16),
        slow=True,
    ),
    Query(
        ("gpu.ecc_corrected",),
        lambda n, g: number(
            "ecc_corrected",
            n.nvmlDeviceGetTotalEccErrors(g, n.NVML_MEMORY_ERROR_TYPE_CORRECTED, n.NVML_VOLATILE_ECC),
        ),
        slow=True,
    ),
)


def pci_address(bus_id: str) -> str:
    """Return NVML's ``00000000:19:00.0`` as sysfs writes it: ``0000:19:00.0``.

    Raises:
        ValueError: the text is no PCI address.
    """
    domain, bus, rest = bus_id.split(":")
    device, _, function = rest.partition(".")
    numbers = [int(part, 16) for part in (domain, bus, device, function or "0")]
    return "{:04x}:{:02x}:{:02x}.{:x}".format(*numbers)


def _watts(milliwatts: int) -> float:
    if not 0 <= milliwatts <= 1e7:
        raise ValueError(f"{milliwatts} mW")
    return milliwatts / 1000


def _read_pci(nvml: Any, gpu: Any) -> dict[str, FactValue]:
    bus_id = nvml.nvmlDeviceGetPciInfo(gpu).busId
    return {"gpu.pci": pci_address(bus_id.decode("ascii") if isinstance(bus_id, bytes) else bus_id)}


def _read_span(nvml: Any, gpu: Any) -> dict[str, FactValue]:
    least, most = nvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu)
    return {"gpu.power_min": _watts(least), "gpu.power_max": _watts(most)}


def _read_pids(nvml: Any, gpu: Any) -> dict[str, FactValue]:
    processes = nvml.nvmlDeviceGetComputeRunningProcesses(gpu)
    return {"gpu.pids": tuple(str(pid) for pid in sorted({int(process.pid) for process in processes}))}


def _megahertz(clock: int) -> float:
    if not 0 < clock < 1e5:
        raise ValueError(f"{clock} MHz")
    return float(clock)


def _read_applications_clocks(nvml: Any, gpu: Any) -> dict[str, FactValue]:
    now = _megahertz(nvml.nvmlDeviceGetApplicationsClock(gpu, nvml.NVML_CLOCK_GRAPHICS))
    memory, sm = (
        _megahertz(nvml.nvmlDeviceGetDefaultApplicationsClock(gpu, domain))
        for domain in (nvml.NVML_CLOCK_MEM, nvml.NVML_CLOCK_GRAPHICS)
    )
    return {
        "gpu.applications_clock": now,
        "gpu.applications_clock_share": now / sm,
        "gpu.applications_clocks_default": f"{memory:.0f},{sm:.0f}",
    }


def active_links(nvml: Any, gpu: Any) -> list[int]:
    """Return the NVLink links that are active; NVMLError where the GPU has none at all."""
    active = []
    for link in range(_MOST_LINKS):
        try:
            if nvml.nvmlDeviceGetNvLinkState(gpu, link):
                active.append(link)
        except nvml.NVMLError as error:
            if link and error.value in {_INVALID_ARGUMENT, *NOT_SUPPORTED}:
                break  # there are no more
            raise
    return active


def _read_peers(nvml: Any, gpu: Any) -> dict[str, FactValue]:
    peers = {nvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link).busId for link in active_links(nvml, gpu)}
    texts = (peer.decode("ascii") if isinstance(peer, bytes) else peer for peer in peers)
    return {"gpu.nvlink_peers": tuple(sorted(pci_address(text) for text in texts))}


def _read_repairs(nvml: Any, gpu: Any) -> dict[str, FactValue]:
    """Read what became of bad memory: rows that are remapped (since Ampere), pages that are retired (before)."""
    try:
        _, _, pending, failed = nvml.nvmlDeviceGetRemappedRows(gpu)
    except nvml.NVMLError as error:
        if error.value not in NOT_SUPPORTED:
            raise
        return {"gpu.repair_pending": bool(nvml.nvmlDeviceGetRetiredPagesPendingStatus(gpu))}
    return {"gpu.repair_pending": bool(pending), "gpu.repair_failed": bool(failed)}


_COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")


def _read_compute_mode(nvml: Any, gpu: Any) -> dict[str, FactValue]:
    mode = nvml.nvmlDeviceGetComputeMode(gpu)
    return {"gpu.compute_mode": dict(enumerate(_COMPUTE_MODES)).get(mode, f"mode {mode:d}")}


# Facts that a call serves, and the call.
FACT_QUERIES: tuple[tuple[tuple[str, ...], Callable[[Any, Any], dict[str, FactValue]]], ...] = (
    (("gpu.name",), lambda n, g: {"gpu.name": str(n.nvmlDeviceGetName(g))}),
    (("gpu.pci",), _read_pci),
    (("gpu.power_limit",), lambda n, g: {"gpu.power_limit": _watts(n.nvmlDeviceGetPowerManagementLimit(g))}),
    (("gpu.power_default",), lambda n, g: {"gpu.power_default": _watts(n.nvmlDeviceGetPowerManagementDefaultLimit(g))}),
    (("gpu.power_min", "gpu.power_max"), _read_span),
    (("gpu.pids",), _read_pids),
    (("gpu.persistence",), lambda n, g: {"gpu.persistence": bool(n.nvmlDeviceGetPersistenceMode(g))}),
    (("gpu.compute_mode",), _read_compute_mode),
    (("gpu.bar1_total",), lambda n, g: {"gpu.bar1_total": float(n.nvmlDeviceGetBAR1MemoryInfo(g).bar1Total)}),
    (("gpu.mig",), lambda n, g: {"gpu.mig": bool(n.nvmlDeviceGetMigMode(g)[0])}),
    (
        ("gpu.sm_clock_max",),
        lambda n, g: {"gpu.sm_clock_max": _megahertz(n.nvmlDeviceGetMaxClockInfo(g, n.NVML_CLOCK_SM))},
    ),
    (
        ("gpu.applications_clock", "gpu.applications_clock_share", "gpu.applications_clocks_default"),
        _read_applications_clocks,
    ),
    (("gpu.repair_pending", "gpu.repair_failed"), _read_repairs),
    (("gpu.nvlink_peers",), _read_peers),
)
