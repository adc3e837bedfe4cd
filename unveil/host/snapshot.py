"""Everything that a host shows, once: its facts, and one sample of each channel. What ``unveil snapshot`` prints."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.catalogue import metric_of, new_probes
from unveil.host.facts.reader import read_facts
from unveil.host.gpu import GpuReader
from unveil.host.gpu_health import GpuCondition
from unveil.host.probe import Probes
from unveil.host.sampler import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unveil.host.root import HostRoot
    from unveil.host.source import SourceHealth
    from unveil.records.fact import Fact, FactTable
    from unveil.records.metric import Channel
    from unveil.records.sample import SampleBlock

_TICK_NS = 100_000_000
_TICKS = 101  # a row of the slowest pace, 10 s
_LONGEST = 100  # ticks of that pace
_GPU_WAIT_S = 8.0  # NVML takes seconds to open on a host with eight GPUs
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One channel and its newest value.

    Attributes:
        value: in *unit*; counters as they stand. None where the host serves no value.
    """

    metric: str
    labels: Mapping[str, str]
    value: float | None
    unit: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One record of a host, plain enough for JSON.

    Attributes:
        taken_s: wall clock, seconds since the epoch.
        settings: raw text of every managed setting that was read, by address.
        sources: how each source did.
    """

    taken_s: float
    root: str
    facts: tuple[Fact, ...]
    settings: Mapping[str, str]
    readings: tuple[Reading, ...]
    sources: tuple[SourceHealth, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a first look at a host gives: samples of all paces, facts, and how the sources did.

    Attributes:
        facts_cpu_s: CPU time that reading the facts took, in full and with cold caches.
    """

    blocks: tuple[SampleBlock, ...]
    table: FactTable
    sources: tuple[SourceHealth, ...]
    facts_cpu_s: float


def survey(root: HostRoot, *, gpus: bool | None = None, pause_s: float = 0.0, ticks: int = _TICKS) -> Survey:
    """Read all sources and facts of a host.

    Args:
        gpus: whether to ask this machine's NVIDIA driver; by default only for this machine's own root.
        pause_s: real time between two ticks. Without one they follow at once, told times 100 ms apart, which gives
            the same values sooner; the costs that sources report are then those of warm caches.
        ticks: how many ticks. Slow sources whose turn did not come are read once behind them.
    """
    sampler = Sampler(root, interval_ns=_TICK_NS)
    try:
        start_ns = time.monotonic_ns()
        for number in range(ticks):
            sampler.tick(start_ns + number * _TICK_NS)
            if pause_s:
                time.sleep(pause_s)
        ticks += _LONGEST
        sampler.tick(start_ns + ticks * _TICK_NS)  # as if late: what was not due yet is read now
        blocks = sampler.collect(start_ns + ticks * _TICK_NS)
        sources = sampler.health()
        follow = sampler.cgroups()
    finally:
        sampler.close()
    probes = Probes(new_probes(), live=root.live)
    blocks, sources = (*blocks, *probes.poll(start_ns)), (*sources, *probes.health())
    probes.close()
    facts: tuple[Fact, ...] = ()
    if root.live if gpus is None else gpus:
        gpu_blocks, facts, health = _ask_gpus(root)
        blocks, sources = (*blocks, *gpu_blocks), (*sources, health)
    before = time.thread_time()
    table = read_facts(root, gpu_facts=facts, follow=follow)
    return Survey(blocks=blocks, table=table, sources=sources, facts_cpu_s=time.thread_time() - before)


def _ask_gpus(root: HostRoot) -> tuple[tuple[SampleBlock, ...], tuple[Fact, ...], SourceHealth]:
    """Wait for one complete reading of the GPUs, or for the news that there is none."""
    reader = GpuReader(root)
    try:
        blocks: list[SampleBlock] = []
        until = time.monotonic() + _GPU_WAIT_S
        while True:
            block = reader.poll(time.monotonic_ns())
            if block is not None:
                blocks.append(block)
            if reader.health().condition is not GpuCondition.STARTING or time.monotonic() > until:
                return tuple(blocks), reader.facts(), reader.health().as_source()
            time.sleep(_POLL_S)
    finally:
        reader.close()


def take_snapshot(root: HostRoot, *, wall_s: float, gpus: bool | None = None) -> Snapshot:
    """Return everything that a host shows now.

    Args:
        wall_s: the wall clock, seconds since the epoch.
        gpus: as in ``survey``.
    """
    seen = survey(root, gpus=gpus)
    return Snapshot(
        taken_s=wall_s,
        root=root.path,
        facts=seen.table.facts,
        settings=seen.table.settings,
        readings=newest(seen.blocks),
        sources=seen.sources,
    )


def newest(blocks: Iterable[SampleBlock]) -> tuple[Reading, ...]:
    """Return the newest value of each channel, in the order of names; None where it never had one."""
    values: dict[Channel, float | None] = {}
    for block in blocks:
        for column, channel in enumerate(block.layout.channels):
            present = [value for value in block.values[:, column].tolist() if math.isfinite(value)]
            values[channel] = present[-1] if present else values.get(channel)
    return tuple(_reading(channel, values[channel]) for channel in sorted(values))


def _reading(channel: Channel, value: float | None) -> Reading:
    metric = metric_of(channel)
    return Reading(
        metric=channel.metric,
        labels=dict(channel.labels),
        value=value,
        unit="" if metric is None else metric.unit,
        kind="" if metric is None else str(metric.kind),
    )
