"""One source at work on a made host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.host.active_source import ActiveSource
from unveil.host.cgroups import CgroupTrees
from unveil.host.sampler import Sampler
from unveil.host.source import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.host.source import Source, SourceHealth

    Looked = Callable[[Source], tuple[dict[str, float], SourceHealth]]

_TICK = 100_000_000


@pytest.fixture
def look(procfs) -> Looked:
    """Give what reads a source once: its values by channel, and its health."""

    def once(source: Source) -> tuple[dict[str, float], SourceHealth]:
        sampler = Sampler(procfs.root, sources=(source,))
        try:
            sampler.tick(0)
            sampler.tick(200 * _TICK)  # late, so that all is read at once
            blocks = sampler.collect(200 * _TICK)
            (health,) = sampler.health()
        finally:
            sampler.close()
        values = {
            str(channel): block.values[-1, column]
            for block in blocks
            for column, channel in enumerate(block.layout.channels)
            if not channel.metric.startswith("cpu.watcher")
        }
        assert {channel.partition("{")[0] for channel in values} <= {metric.name for metric in source.metrics}
        return values, health

    return once


@pytest.fixture
def look_twice(procfs) -> Callable[[Source, Callable[[], object]], set[str]]:
    """Give what looks for a source's files, lets something happen, and looks again: the channels it then has."""

    def twice(source: Source, happens: Callable[[], object]) -> set[str]:
        surroundings = Surroundings(root=procfs.root, cgroups=CgroupTrees(procfs.root))
        surroundings.cgroups.walk(0)
        active = ActiveSource(source, surroundings)
        active.look(room=100)
        happens()
        active.look(room=100)
        for file in active.files:
            if (text := file.read()) is not None:
                file.learn(file.cut(text))
        channels = {str(reading.channel) for file in active.files for reading in file.shape.readings}
        active.close()
        return channels

    return twice
