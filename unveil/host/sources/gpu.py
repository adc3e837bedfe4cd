"""NVIDIA GPUs, read through NVML by nvidia-ml-py. Runs in the GPU child only: a driver call may hang for minutes.

The watcher imports this file for ``METRICS`` alone, so pynvml (39 ms, 6 MB) is imported inside ``open_nvml``.

What is read every second is what the driver serves at once. What is slow or rare (PCIe throughput measures for 20 ms
a direction, ECC, the link, the default limit) is read in turns, one GPU a cycle, and its value is repeated until then.
"""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unveil.errors import SourceAbsentError, SourceFailedError
from unveil.host.sources.gpu_activity import watching_queries
from unveil.host.sources.gpu_queries import (
    DRIVER_GONE,
    FACT_QUERIES,
    LIBRARY_NOT_FOUND,
    LOST,
    NOT_SUPPORTED,
    QUERIES,
    Query,
    Values,
)
from unveil.host.sources.gpu_state_queries import STATE_QUERIES
from unveil.records.metric import Kind, Metric, declare

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from unveil.records.fact import FactValue

LIBRARY_VARIABLE = "UNVEIL_NVML_LIBRARY"


def _metric(name: str, unit: str, meaning: str, kind: Kind = Kind.GAUGE) -> Metric:
    return declare(f"gpu.{name}", kind, unit, meaning, labels=("gpu",), source="nvml")


METRICS: tuple[Metric, ...] = (
    _metric("util", "1", "share of the driver's last sampling period in which a kernel ran (0 to 1)"),
    _metric("memory_util", "1", "share of that period in which memory was read or written (0 to 1)"),
    _metric("memory_used", "bytes", "memory allocated by processes, without what the driver reserves"),
    _metric("memory_total", "bytes", "memory in all"),
    _metric("sm_clock", "MHz", "clock of the streaming multiprocessors"),
    _metric("memory_clock", "MHz", "clock of the memory"),
    _metric("power", "W", "power drawn by the board"),
    _metric("power_limit", "W", "limit of power that is set"),
    _metric("power_default", "W", "limit of power the board has by default"),
    _metric("energy", "J", "energy drawn since the driver was loaded", Kind.COUNTER),
    _metric("temperature", "C", "temperature of the chip"),
    _metric("throttle_power", "1", "1 while the software power cap lowers the clocks"),
    _metric("throttle_thermal", "1", "1 while heat lowers the clocks (software or hardware)"),
    _metric("throttle_hw_slowdown", "1", "1 while the hardware brakes (HW slowdown or external power brake)"),
    _metric(
        "throttle_other", "1", "1 while anything else holds the clocks (application clocks, sync boost, reliability)"
    ),
    _metric("pcie_tx", "bytes/s", "bytes the GPU sends over PCIe, measured for 20 ms every tenth second"),
    _metric("pcie_rx", "bytes/s", "bytes the GPU receives over PCIe, measured for 20 ms every tenth second"),
    _metric("pcie_width", "1", "lanes of the PCIe link in use"),
    _metric("pcie_gen", "1", "generation of the PCIe link in use; an idle GPU may lower it"),
    _metric("ecc_corrected", "1", "memory errors corrected since the driver was loaded", Kind.COUNTER),
    _metric("ecc_uncorrected", "1", "memory errors not corrected since the driver was loaded", Kind.COUNTER),
    _metric("remapped_corrected", "1", "rows of memory put out of use for errors that were corrected"),
    _metric("remapped_uncorrected", "1", "rows of memory put out of use for errors that were not corrected"),
    _metric("xid_errors", "1", "errors that the driver reported (XID) and no program caused by itself", Kind.COUNTER),
    _metric("xid_application", "1", "errors (XID 13, 31, 43, 45, 68) that a program may cause", Kind.COUNTER),
    _metric("xid_last", "1", "number of the last XID error, 0 while there was none; says what happened, not what is"),
    _metric(
        "violation_power", "s", "time in which power held the clocks down, since the driver was loaded", Kind.COUNTER
    ),
    _metric(
        "violation_thermal", "s", "time in which heat held the clocks down, since the driver was loaded", Kind.COUNTER
    ),
    _metric("temperature_margin", "C", "degrees to where heat lowers the clocks; below 0 beyond it"),
    _metric("memory_temperature", "C", "temperature of the memory"),
    _metric("nvlink_links", "1", "NVLink links that are active"),
    _metric("nvlink_tx", "bytes", "data sent over NVLink", Kind.COUNTER),
    _metric("nvlink_rx", "bytes", "data received over NVLink", Kind.COUNTER),
    _metric("nvlink_crc_errors", "1", "NVLink flits with a wrong checksum", Kind.COUNTER),
    _metric("nvlink_replays", "1", "NVLink packets sent again", Kind.COUNTER),
    _metric("nvlink_recoveries", "1", "NVLink links trained again", Kind.COUNTER),
    _metric("fabric_ready", "1", "1 when the GPU has joined its NVLink fabric, 0 until then"),
    _metric("bar1_used", "bytes", "memory mapped for others through BAR1"),
    _metric("pcie_replays", "1", "PCIe packets sent again", Kind.COUNTER),
    _metric("performance_state", "1", "performance state, 0 the highest to 15"),
    _metric("sm_active", "1", "share of multiprocessors busy between two readings (0 to 1; GPM, Hopper and later)"),
    _metric("sm_occupancy", "1", "warps on them against as many as there could be (0 to 1)"),
    _metric("tensor_active", "1", "share of time in which tensor cores worked (0 to 1)"),
    _metric("dram_active", "1", "bandwidth of memory in use against what there is (0 to 1)"),
    _metric("ofu", "1", "tensor activity times clock over highest clock: tensor throughput delivered (0 to 1)"),
    _metric("nvml_latency", "s", "longest single driver call of the last reading, growing while a call hangs"),
    _metric("value_age", "s", "age of this GPU's values"),
)


def open_nvml(environ: Mapping[str, str] = os.environ) -> Any:
    """Load and initialise the driver's library in this process; return the pynvml module.

    A path in ``UNVEIL_NVML_LIBRARY`` is loaded first and for all (RTLD_GLOBAL): its SONAME then satisfies pynvml's own
    ``dlopen("libnvidia-ml.so.1")``. Without it the dynamic linker's paths decide (``LD_LIBRARY_PATH``).

    Raises:
        SourceAbsentError: this host has no NVML library: a host without NVIDIA GPUs.
        SourceFailedError: the library is there and the driver does not answer.
    """
    import pynvml  # here, not above: the watcher must not pay for it

    if path := environ.get(LIBRARY_VARIABLE):
        try:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise SourceFailedError(
                f"the NVML library {path} cannot be loaded: {error}", hint=f"see the variable {LIBRARY_VARIABLE}"
            ) from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value == LIBRARY_NOT_FOUND:
            raise SourceAbsentError("this host has no NVML library (libnvidia-ml.so.1)") from error
        raise SourceFailedError(f"the NVIDIA driver does not answer: {error}") from error
    return pynvml


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One reading of one GPU.

    Attributes:
        values: metric → value; what is not there is absent for the reason in *reasons*.
        latency_s: longest single call, without those that measure by waiting.
        lost: why this GPU is gone for good, None while it answers.
    """

    values: Mapping[str, float]
    reasons: Mapping[str, str]
    latency_s: float
    lost: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What one GPU is: fact → value; what is not there is absent for the reason in *reasons*."""

    facts: Mapping[str, FactValue]
    reasons: Mapping[str, str]


@dataclass(slots=True)
class _Gpu:
    """One GPU while its handle is held: the slow values between two readings, and what it does not support."""

    handle: Any
    queries: tuple[Query, ...] = field(default_factory=lambda: (*QUERIES, *STATE_QUERIES, *watching_queries()))
    slow: Values = field(default_factory=dict)
    slow_reasons: dict[str, str] = field(default_factory=dict)
    unsupported: dict[str, str] = field(default_factory=dict)


class GpuSource:
    """GPUs of the driver, by UUID: all of them (``discover``) or one (``attach``). Owns handles until ``close``.

    Handles are taken by index once and named by the UUID they answer; an index is never kept, as no driver promises
    that it stands for the same GPU tomorrow.
    """

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._gpus: dict[str, _Gpu] = {}

    def discover(self) -> tuple[str, ...]:
        """Take a handle of each GPU that answers; return their UUIDs, sorted.

        Raises:
            SourceFailedError: the driver is gone, or no GPU answers.
        """
        nvml, refusals = self._nvml, []
        for index in range(self._call(nvml.nvmlDeviceGetCount)):
            try:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                self._gpus[str(nvml.nvmlDeviceGetUUID(handle))] = _Gpu(handle)
            except nvml.NVMLError as error:  # one bad GPU must not hide the others
                self._refuse_dead_driver(error)
                refusals.append(str(error))
        if not self._gpus:
            raise SourceFailedError(f"the driver shows no GPU that answers ({', '.join(refusals) or 'it counts none'})")
        return tuple(sorted(self._gpus))

    def attach(self, uuid: str) -> None:
        """Take the handle of one GPU, without a call for any other: one that hangs is no hindrance.

        Raises:
            SourceFailedError: the driver is gone, or does not show this GPU.
        """
        self._gpus[uuid] = _Gpu(self._call(lambda: self._nvml.nvmlDeviceGetHandleByUUID(uuid)))

    def read(self, uuid: str, *, slow: bool) -> Reading:
        """Read one GPU; with *slow*, also what is read in turns.

        A GPU that the driver calls lost is forgotten, its handle with it.

        Raises:
            SourceFailedError: the driver is gone; only a fresh process can begin anew.
        """
        gpu, latency = self._gpus[uuid], 0.0
        values: Values = {}
        reasons: dict[str, str] = {}
        if slow:
            gpu.slow.clear()
            gpu.slow_reasons.clear()
            gpu.unsupported.clear()  # asked again: MIG or a new mode may have changed it
        for query in gpu.queries:
            if query.slow and not slow:
                continue
            if why := gpu.unsupported.get(query.metrics[0]):
                reasons.update(dict.fromkeys(query.metrics, why))
                continue
            began = time.monotonic()
            try:
                found = query.read(self._nvml, gpu.handle)
                why = "the driver answered a blank"
            except self._nvml.NVMLError as error:
                self._refuse_dead_driver(error)
                if error.value in LOST:
                    del self._gpus[uuid]
                    return Reading(values={}, reasons={}, latency_s=time.monotonic() - began, lost=str(error))
                found, why = {}, str(error)
                if error.value in NOT_SUPPORTED:
                    gpu.unsupported[query.metrics[0]] = why
            except ValueError as error:
                found, why = {}, str(error)
            if not query.blocks:
                latency = max(latency, time.monotonic() - began)
            absent = {name: why for name in query.metrics if name not in found}
            (gpu.slow if query.slow else values).update(found)
            (gpu.slow_reasons if query.slow else reasons).update(absent)
        return Reading(values=values | gpu.slow, reasons=gpu.slow_reasons | reasons, latency_s=latency)

    def identify(self, uuid: str) -> Identity:
        """Read what facts are made of: the name, the place, the limits, the processes.

        Raises:
            SourceFailedError: the driver is gone.
        """
        handle = self._gpus[uuid].handle
        facts: dict[str, FactValue] = {}
        reasons: dict[str, str] = {}
        for names, read in FACT_QUERIES:
            try:
                facts.update(read(self._nvml, handle))
            except self._nvml.NVMLError as error:
                self._refuse_dead_driver(error)
                reasons.update(dict.fromkeys(names, str(error)))
            except ValueError as error:
                reasons.update(dict.fromkeys(names, f"the driver answered nonsense: {error}"))
        return Identity(facts=facts, reasons=reasons)

    def close(self) -> None:
        """Give all handles back to the driver."""
        self._gpus.clear()
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:  # a driver that is gone holds no handle of ours either
            return

    def _call(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except self._nvml.NVMLError as error:
            raise SourceFailedError(f"the NVIDIA driver does not answer: {error}") from error

    @staticmethod
    def _refuse_dead_driver(error: Any) -> None:
        if error.value in DRIVER_GONE:
            raise SourceFailedError(f"the NVIDIA driver is gone: {error}") from error
