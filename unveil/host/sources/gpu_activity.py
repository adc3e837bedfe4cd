"""What is watched over time in the driver: tensor activity between two samples, errors that it reports as events.

Unlike the calls of ``gpu_queries`` these hold something between two readings, so each GPU has its own.

Source: NVML API reference: GPM (Hopper and later), events; NVIDIA's catalogue of XID errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.host.sources.gpu_queries import Query

if TYPE_CHECKING:
    from unveil.host.sources.gpu_queries import Values

_TIMEOUT = 10  # NVML_ERROR_TIMEOUT: no event waits
_MOST_EVENTS = 64  # of one reading; the rest is taken by the next
_APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68})  # a program's own fault, or its end: says nothing of the GPU

# Per cent, by NVML_GPM_METRIC_*.
_SHARES = {"gpu.sm_active": 2, "gpu.sm_occupancy": 3, "gpu.tensor_active": 5, "gpu.dram_active": 10}


class _Activity:
    """Shares of the time between two readings in which parts of a GPU worked."""

    metrics = (*_SHARES, "gpu.ofu")

    def __init__(self) -> None:
        self._before: Any = None
        self._now: Any = None
        self._highest_mhz = 0

    def read(self, nvml: Any, gpu: Any) -> Values:
        """Take a sample and compare it with the one before.

        OFU is tensor activity times the clock over the highest clock (arXiv 2605.20799): the share of its tensor
        throughput that a GPU delivers. Dimensions that are rounded up to tiles are counted as work.
        """
        if self._now is None:
            if not nvml.nvmlGpmQueryDeviceSupport(gpu).isSupportedDevice:
                raise ValueError("this GPU does not measure its activity (Hopper and later do)")
            self._highest_mhz = nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM)
            self._now = nvml.nvmlGpmSampleGet(gpu, nvml.nvmlGpmSampleAlloc())
            self._before = nvml.nvmlGpmSampleAlloc()
            raise ValueError("activity is measured between two readings")
        self._before, self._now = self._now, nvml.nvmlGpmSampleGet(gpu, self._before)
        answer = nvml.c_nvmlGpmMetricsGet_t()
        answer.version = nvml.NVML_GPM_METRICS_GET_VERSION
        answer.numMetrics = len(_SHARES)
        answer.sample1, answer.sample2 = self._before, self._now
        for place, number in enumerate(_SHARES.values()):
            answer.metrics[place].metricId = number
        nvml.nvmlGpmMetricsGet(answer)
        values: Values = {}
        for place, name in enumerate(_SHARES):
            one = answer.metrics[place]
            if one.nvmlReturn == 0 and 0 <= one.value <= 100:  # neither a blank nor NaN
                values[name] = one.value / 100
        if "gpu.tensor_active" in values and self._highest_mhz:
            clock = nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)
            values["gpu.ofu"] = values["gpu.tensor_active"] * min(1.0, clock / self._highest_mhz)
        return values


class _Errors:
    """XID errors, counted from the driver's events: the last one alone would be read as a state that lasts."""

    metrics = ("gpu.xid_errors", "gpu.xid_application", "gpu.xid_last")

    def __init__(self) -> None:
        self._events: Any = None
        self._counts = dict.fromkeys(self.metrics[:2], 0.0)
        self._last = 0.0

    def read(self, nvml: Any, gpu: Any) -> Values:
        """Take the events that wait, and never wait for one."""
        if self._events is None:
            events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(gpu, nvml.nvmlEventTypeXidCriticalError, events)
            self._events = events
        for _ in range(_MOST_EVENTS):
            try:
                xid = nvml.nvmlEventSetWait_v2(self._events, 0).eventData
            except nvml.NVMLError as error:
                if error.value != _TIMEOUT:
                    raise
                break
            self._counts["gpu.xid_application" if xid in _APPLICATION_XIDS else "gpu.xid_errors"] += 1
            self._last = float(xid)
        return self._counts | {"gpu.xid_last": self._last}


def watching_queries() -> tuple[Query, ...]:
    """Return the queries of one GPU that remember; a fresh GPU (or driver) needs fresh ones."""
    activity, errors = _Activity(), _Errors()
    return (Query(activity.metrics, activity.read), Query(errors.metrics, errors.read))
