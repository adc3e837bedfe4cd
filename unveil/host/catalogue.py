"""The sources that are sampled and the metrics they give. A new source is one file in ``sources/`` and a line here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.host.sources import (
    amd_gpu,
    buddyinfo,
    cgroup_cpu,
    cgroup_events,
    cgroup_io,
    cgroup_memory,
    cgroup_network,
    cgroup_pressure,
    conntrack,
    cpu_throttle,
    cpufreq,
    cpuidle,
    diskstats,
    edac,
    ethtool_stats,
    gpu,
    hwmon,
    interrupts,
    meminfo,
    mthp,
    net_dev,
    net_snmp,
    nfs,
    nic_faults,
    node,
    pcie,
    perf_events,
    pressure,
    pressure_irq,
    rapl,
    rdma,
    schedstat,
    sockstat,
    softirqs,
    softnet,
    stat,
    vm_threads,
    vmstat,
    watcher,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.host.probe import Probe
    from unveil.host.source import Source
    from unveil.records.metric import Channel, Metric

SOURCES: tuple[Source, ...] = (
    stat.SOURCE,
    pressure.SOURCE,
    softirqs.SOURCE,
    net_dev.SOURCE,
    vmstat.SOURCE,
    meminfo.SOURCE,
    net_snmp.SOURCE,
    diskstats.SOURCE,
    interrupts.SOURCE,
    node.NUMASTAT,
    cgroup_cpu.SOURCE,
    cgroup_memory.SOURCE,
    node.MEMINFO,
    schedstat.SOURCE,
    softnet.SOURCE,
    cgroup_pressure.SOURCE,
    pressure_irq.SOURCE,
    amd_gpu.SOURCE,
    mthp.SOURCE,
    buddyinfo.SOURCE,
    cgroup_events.SOURCE,
    cgroup_io.SOURCE,
    vm_threads.SOURCE,
    cgroup_network.SOURCE,
    sockstat.SOURCE,
    conntrack.SOURCE,
    nic_faults.SOURCE,
    rdma.SOURCE,
    nfs.SOURCE,
    pcie.SOURCE,
    cpuidle.SOURCE,
    cpufreq.SOURCE,
    cpu_throttle.SOURCE,
    rapl.SOURCE,
    edac.SOURCE,
    hwmon.SOURCE,
)

PROBE_METRICS: tuple[Metric, ...] = (*perf_events.METRICS, *ethtool_stats.METRICS)


def new_probes() -> tuple[Probe, ...]:
    """Return what is read by system calls, not yet open; a new one is a file in ``sources/`` and two words here."""
    return (perf_events.PerfEvents(), ethtool_stats.EthtoolStatistics())


def _catalogued(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """Return metrics by name; one that several sources give (for the host, for each node) names them and all labels."""
    by_name: dict[str, Metric] = {}
    for metric in metrics:
        known = by_name.setdefault(metric.name, metric)
        if known is not metric:
            labels = tuple(dict.fromkeys((*known.labels, *metric.labels)))
            by_name[metric.name] = replace(known, labels=labels, source=f"{known.source}, {metric.source}")
    return by_name


_DECLARED = (
    *gpu.METRICS, *(metric for source in SOURCES for metric in source.metrics), *PROBE_METRICS, *watcher.METRICS
)  # fmt: skip
_VARIANTS: dict[str, list[Metric]] = {metric.name: [] for metric in _DECLARED}
for _metric in _DECLARED:
    _VARIANTS[_metric.name].append(_metric)

METRICS: dict[str, Metric] = _catalogued(_DECLARED)
"""Every metric by name. Labels are those that some of its channels have; a channel without one is the host's total."""


def metric_of(channel: Channel) -> Metric | None:
    """Return the declaration of a channel; None when the catalogue has none.

    ``cpu.irq{cpu}`` is time in interrupt handlers and ``cpu.irq{irq,cpu}`` a count: of several declarations of a name
    it is the first whose labels the channel keeps to.
    """
    labels = {key for key, _ in channel.labels}
    variants = _VARIANTS.get(channel.metric, ())
    return next((metric for metric in variants if labels <= {*metric.labels}), next(iter(variants), None))


GIVEN_BY: dict[str, frozenset[str]] = {
    "gpu": frozenset(metric.name for metric in gpu.METRICS),
    **{source.name: frozenset(metric.name for metric in source.metrics) for source in SOURCES},
    perf_events.PerfEvents.name: frozenset(metric.name for metric in perf_events.METRICS),
    ethtool_stats.EthtoolStatistics.name: frozenset(metric.name for metric in ethtool_stats.METRICS),
}
"""The metrics of each source, by the name that ``doctor`` calls it."""
