"""More calls that read one GPU: time lost to limits, NVLink, the fabric, repairs of memory, margins, BAR1.

Source: NVML API reference (nvml.h): field identifiers, units.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from unveil.host.sources.gpu_queries import Query, active_links, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.host.sources.gpu_queries import Values

_ALL_LINKS = 0xFFFF_FFFF  # the scope of a field that is of all links together
_FABRIC_COMPLETED = 3

# Metric → field, scope, factor to its unit. One call answers all of them, each with its own error.
_FIELDS: dict[str, tuple[int, int, int]] = {
    "nvlink_tx": (138, _ALL_LINKS, 1024),
    "nvlink_rx": (139, _ALL_LINKS, 1024),
    "nvlink_crc_errors": (38, 0, 1),
    "nvlink_replays": (52, 0, 1),
    "nvlink_recoveries": (59, 0, 1),
    "memory_temperature": (82, 0, 1),
}
_MOST = {"memory_temperature": 200.0}
_KINDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # members of nvmlValue_t by nvmlValueType_t


def _read_fields(nvml: Any, gpu: Any) -> Values:
    answers = nvml.nvmlDeviceGetFieldValues(gpu, [(field, scope) for field, scope, _ in _FIELDS.values()])
    values: Values = {}
    for (name, (_, _, times)), answer in zip(_FIELDS.items(), answers, strict=True):
        if answer.nvmlReturn == 0 and answer.valueType < len(_KINDS):
            told = getattr(answer.value, _KINDS[answer.valueType])
            values |= number(name, told, times=times, most=_MOST.get(name, float("inf")))
    return values


def _violation(name: str, policy: int) -> Query:
    """Return the query of the time (ns, since the driver was loaded) in which a policy held the clocks down."""

    def read(nvml: Any, gpu: Any) -> Values:
        return number(name, nvml.nvmlDeviceGetViolationStatus(gpu, policy).violationTime, per=10**9)

    return Query((f"gpu.{name}",), read)


def _read_links(nvml: Any, gpu: Any) -> Values:
    return {"gpu.nvlink_links": float(len(active_links(nvml, gpu)))}


def _read_fabric(nvml: Any, gpu: Any) -> Values:
    info = nvml.c_nvmlGpuFabricInfoV_t()
    nvml.nvmlDeviceGetGpuFabricInfoV(gpu, ctypes.byref(info))
    if info.state == 0:
        raise ValueError("this GPU is on no NVLink fabric")
    return {"gpu.fabric_ready": float(info.state == _FABRIC_COMPLETED and info.status == 0)}


def _read_remapped(nvml: Any, gpu: Any) -> Values:
    corrected, uncorrected, _, _ = nvml.nvmlDeviceGetRemappedRows(gpu)
    return number("remapped_corrected", corrected) | number("remapped_uncorrected", uncorrected)


def _read_margin(nvml: Any, gpu: Any) -> Values:
    margin = nvml.nvmlDeviceGetMarginTemperature(gpu)  # falls as it gets hot, below zero beyond the limit
    return {"gpu.temperature_margin": float(margin)} if -100 <= margin <= 200 else {}


def _slow(name: str, read: Callable[[Any, Any], int], most: float = float("inf")) -> Query:
    return Query((f"gpu.{name}",), lambda nvml, gpu: number(name, read(nvml, gpu), most=most), slow=True)


STATE_QUERIES: tuple[Query, ...] = (
    Query(tuple(f"gpu.{name}" for name in _FIELDS), _read_fields),
    _violation("violation_power", 0),
    _violation("violation_thermal", 1),
    Query(("gpu.temperature_margin",), _read_margin),
    Query(("gpu.nvlink_links",), _read_links, slow=True),
    Query(("gpu.fabric_ready",), _read_fabric, slow=True),
    Query(("gpu.remapped_corrected", "gpu.remapped_uncorrected"), _read_remapped, slow=True),
    _slow("bar1_used", lambda n, g: int(n.nvmlDeviceGetBAR1MemoryInfo(g).bar1Used)),
    _slow("pcie_replays", lambda n, g: int(n.nvmlDeviceGetPcieReplayCounter(g))),
    _slow("performance_state", lambda n, g: int(n.nvmlDeviceGetPerformanceState(g)), most=15),
    _slow(
        "ecc_uncorrected",
        lambda n, g: int(n.nvmlDeviceGetTotalEccErrors(g, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, n.NVML_VOLATILE_ECC)),
    ),
)
