"""FEATURES: every feature that unveil knows, by name. The one list that adds a family to the product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.features.container_network import CONTAINERS_TOGETHER, EACH_CONTAINER
from unveil.features.dispersion import CGROUP_EXTREMES, CPU_IMBALANCE, GPU_EXTREMES, PART_OF_ALL, UNEVENNESS
from unveil.features.gpu_activity import GPU_ACTIVITY, GPU_ACTIVITY_EXTREMES
from unveil.features.guests import EACH_GUEST, GUESTS_TOGETHER
from unveil.features.hardware import CPU_HARDWARE, ERROR_RATES, LINKS, LOWEST_LINKS
from unveil.features.huge_pages import HUGE_PAGES, NODE_HUGE_PAGES
from unveil.features.levels import GPU_LEVELS, HOST_LEVELS, PART_LEVELS
from unveil.features.locality import HOST_LOCALITY, PART_LOCALITY
from unveil.features.network_stack import HOST_STACK, NIC_STACK
from unveil.features.perf_events import NIC_DRIVER, PERF_EVENTS
from unveil.features.progress import PROGRESS, WORK_MOVED
from unveil.features.rates import HOST_RATES, PART_RATES
from unveil.features.ratios import (
    CGROUP_RATIOS,
    CPU_RATIOS,
    DISK_RATIOS,
    GPU_RATIOS,
    MEMORY_RATIOS,
    NETWORK_RATIOS,
    NIC_RATIOS,
    PCIE_TO_NETWORK,
    STORAGE_RATIOS,
    UTILISATION,
)
from unveil.features.relations import HOST_RELATIONS, PART_RELATIONS
from unveil.features.stalls import CGROUP_STALLS, HOST_STALLS

if TYPE_CHECKING:
    from unveil.features.feature import Feature

FEATURES: dict[str, Feature] = {
    feature.name: feature
    for feature in (
        # of the host; the order is part of every trained model, so what is new goes where it belongs and models retrain
        *CPU_RATIOS,
        *MEMORY_RATIOS,
        *NETWORK_RATIOS,
        *STORAGE_RATIOS,
        PCIE_TO_NETWORK,
        *HOST_RATES,
        *HOST_LEVELS,
        *HOST_LOCALITY,
        *UNEVENNESS,
        *CPU_IMBALANCE,
        *CGROUP_EXTREMES,
        *PART_OF_ALL,
        *UTILISATION,
        *GPU_EXTREMES,
        *GPU_ACTIVITY_EXTREMES,
        *HOST_STALLS,
        *GUESTS_TOGETHER,
        *HOST_STACK,
        *CONTAINERS_TOGETHER,
        *CPU_HARDWARE,
        *ERROR_RATES,
        *LOWEST_LINKS,
        *HUGE_PAGES,
        *PERF_EVENTS,
        *HOST_RELATIONS,
        WORK_MOVED,
        *PROGRESS,
        # of its parts
        *CGROUP_RATIOS,
        *NIC_RATIOS,
        *DISK_RATIOS,
        *GPU_RATIOS,
        *PART_RATES,
        *PART_LEVELS,
        *GPU_LEVELS,
        *GPU_ACTIVITY,
        *PART_LOCALITY,
        *CGROUP_STALLS,
        *EACH_GUEST,
        *NIC_STACK,
        *EACH_CONTAINER,
        *NIC_DRIVER,
        *LINKS,
        *NODE_HUGE_PAGES,
        *PART_RELATIONS,
    )
}
