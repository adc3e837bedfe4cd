"""What GPUs deliver and what hurts them: tensor throughput, NVLink, time lost to limits, errors reported as events."""

from __future__ import annotations

from unveil.features.families import across, plain
from unveil.features.feature import SHARE, Across, Feature, Stat, Trouble
from unveil.records.entity import EntityKind

_GPU = EntityKind.GPU
_MEAN, _RATE = (Stat.MEAN,), (Stat.RATE,)

_SHARES = plain(
    "gpu",
    _MEAN,
    SHARE,
    {
        "ofu": "share of its tensor throughput that it delivers (activity times clock)",
        "tensor_active": "share of time in which tensor cores worked",
        "sm_active": "share of multiprocessors that were busy",
        "sm_occupancy": "warps on the multiprocessors against as many as there could be",
        "dram_active": "share of the bandwidth of its memory in use",
    },
    over=(_GPU,),
    each=_GPU,
    trouble=Trouble.DOWN,
)
_LOST = plain(
    "gpu",
    _RATE,
    SHARE,
    {
        "violation_power": "share of time in which power held its clocks down",
        "violation_thermal": "share of time in which heat held its clocks down",
    },
    over=(_GPU,),
    each=_GPU,
)
_RATES = plain(
    "gpu",
    _RATE,
    "1/s",
    {
        "xid_errors": "errors that its driver reported",
        "xid_application": "errors that its driver reported and a program may cause",
        "ecc_uncorrected": "errors of its memory that were not corrected",
        "pcie_replays": "packets of PCIe sent again",
        "nvlink_crc_errors": "flits of NVLink with a wrong checksum",
        "nvlink_replays": "packets of NVLink sent again",
        "nvlink_recoveries": "links of NVLink trained again",
    },
    over=(_GPU,),
    each=_GPU,
)
_TRAFFIC = plain(
    "gpu",
    _RATE,
    "bytes/s",
    {"nvlink_tx": "bytes sent over NVLink", "nvlink_rx": "bytes received over NVLink"},
    over=(_GPU,),
    each=_GPU,
    trouble=Trouble.EITHER,
)
_STATES = (
    *plain(
        "gpu",
        (Stat.MIN,),
        "1",
        {
            "nvlink_links": "links of NVLink that are active",
            "fabric_ready": "whether it has joined its NVLink fabric (1) or not (0)",
        },
        over=(_GPU,),
        each=_GPU,
        trouble=Trouble.DOWN,
        log=False,
    ),
    *plain(
        "gpu",
        (Stat.MIN,),
        "C",
        {"temperature_margin": "degrees to where heat lowers its clocks"},
        over=(_GPU,),
        each=_GPU,
        trouble=Trouble.DOWN,
        log=False,
    ),
    *plain(
        "gpu", (Stat.MAX,), "C", {"memory_temperature": "temperature of its memory"}, over=(_GPU,), each=_GPU, log=False
    ),
    *plain(
        "gpu",
        (Stat.LAST,),
        "1",
        {
            "xid_last": "number of the last error that its driver reported, 0 for none",
            "remapped_corrected": "rows of memory out of use for errors that were corrected",
            "remapped_uncorrected": "rows of memory out of use for errors that were not corrected",
            "performance_state": "performance state, 0 the highest",
        },
        over=(_GPU,),
        each=_GPU,
    ),
    *plain(
        "gpu",
        (Stat.LAST,),
        "bytes",
        {"bar1_used": "memory mapped through BAR1"},
        over=(_GPU,),
        each=_GPU,
        trouble=Trouble.EITHER,
    ),
)

GPU_ACTIVITY: tuple[Feature, ...] = (*_SHARES, *_LOST, *_RATES, *_TRAFFIC, *_STATES)

_ALL = (Across.LOWEST, Across.AVERAGE, Across.HIGHEST)
_WAYS = {
    "gpu.ofu.mean": (*_ALL, Across.IMBALANCE),
    "gpu.tensor_active.mean": _ALL,
    "gpu.violation_power.rate": (Across.HIGHEST,),
    "gpu.violation_thermal.rate": (Across.HIGHEST,),
    "gpu.nvlink_tx.rate": (Across.AVERAGE, Across.HIGHEST),
    "gpu.nvlink_rx.rate": (Across.AVERAGE, Across.IMBALANCE),
    "gpu.nvlink_links.min": (Across.LOWEST,),
    "gpu.xid_errors.rate": (Across.HIGHEST,),
}
GPU_ACTIVITY_EXTREMES: tuple[Feature, ...] = tuple(
    extreme for part in GPU_ACTIVITY for extreme in across(part, _WAYS.get(part.name, ()), detect=False)
)
"""Of the host, for fingerprints: detectors see utilisation, clocks and heat of the same GPUs already."""
