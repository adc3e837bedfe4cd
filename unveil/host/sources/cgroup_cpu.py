"""CPU time and throttling of each cgroup: ``cpu.stat``, and ``cpuacct.usage`` in version 1."""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.cgroup_stat import parse_cgroup_cpu, parse_single
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

_METRICS = {
    "usage": ("s", "CPU time used"),
    "periods": ("1", "quota periods in which it wanted to run"),
    "throttled": ("1", "quota periods in which it used up its quota"),
    "throttled_time": ("s", "time its tasks waited for the next quota period, summed over CPUs"),
}

METRICS = tuple(
    declare(
        f"cpu.cgroup_{name}",
        Kind.COUNTER,
        unit,
        meaning,
        labels=("cgroup",),
        source="cpuacct.usage, cpu.stat" if name == "usage" else "cpu.stat",
    )
    for name, (unit, meaning) in _METRICS.items()
)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    trees = surroundings.cgroups
    feeds = []
    if (cpu := trees.cpu) is not None:
        for cgroup in trees.followed(cpu):
            identity = str(cgroup.inode)
            stat = partial(parse_cgroup_cpu, version=cpu.version, cgroup=cgroup.key, identity=identity)
            feeds.append(Feed(path=f"{cpu.mount}{cgroup.path}/cpu.stat", parser=stat, identity=identity))
    if (accounting := trees.accounting) is not None and accounting.version == 1:
        for cgroup in trees.followed(accounting):
            identity = str(cgroup.inode)
            usage = partial(parse_single, metric="cpu.cgroup_usage", scale=1e-9, cgroup=cgroup.key, identity=identity)
            feeds.append(Feed(path=f"{accounting.mount}{cgroup.path}/cpuacct.usage", parser=usage, identity=identity))
    if not feeds:
        raise SourceAbsentError("no cgroup but the root has the cpu controller")
    return tuple(feeds)


SOURCE = Source(name="cgroup_cpu", pace=MEDIUM, metrics=METRICS, feeds=_feeds, changing=True)
