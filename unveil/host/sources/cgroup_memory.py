"""Memory of each cgroup and on which node it lies: ``memory.stat``, ``memory.numa_stat``, ``memory.max``."""

from __future__ import annotations

import os
from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.cgroup_stat import parse_cgroup_memory, parse_cgroup_numa, parse_single
from unveil.host.source import SLOW, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

_PAGE = os.sysconf("SC_PAGE_SIZE")

_METRICS = {
    "anon": ("bytes", Kind.GAUGE, "memory of its processes that no file backs"),
    "anon_huge": ("bytes", Kind.GAUGE, "part of it in transparent huge pages"),
    "file": ("bytes", Kind.GAUGE, "page cache, shared memory included"),
    "limit": ("bytes", Kind.GAUGE, "most memory it may have; absent when unlimited"),
    "page_faults": ("1", Kind.COUNTER, "page faults, minor and major"),
    "major_faults": ("1", Kind.COUNTER, "page faults that waited for a disk"),
}

METRICS = (
    *(
        declare(
            f"memory.cgroup_{name}",
            kind,
            unit,
            meaning,
            labels=("cgroup",),
            source="memory.stat, memory.max" if name == "limit" else "memory.stat",
        )
        for name, (unit, kind, meaning) in _METRICS.items()
    ),
    declare(
        "interconnect.cgroup_node_anon",
        Kind.GAUGE,
        "bytes",
        "memory of its processes on a node",
        labels=("cgroup", "node"),
        source="memory.numa_stat",
    ),
)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    trees = surroundings.cgroups
    hierarchy = trees.memory
    if hierarchy is None:
        raise SourceAbsentError("this kernel has no memory controller")
    version = hierarchy.version
    feeds = []
    for cgroup in trees.followed(hierarchy):
        folder, identity = f"{hierarchy.mount}{cgroup.path}", str(cgroup.inode)
        stat = partial(parse_cgroup_memory, version=version, cgroup=cgroup.key, identity=identity)
        numa = partial(parse_cgroup_numa, version=version, page_bytes=_PAGE, cgroup=cgroup.key, identity=identity)
        feeds.append(Feed(path=f"{folder}/memory.stat", parser=stat, identity=identity))
        feeds.append(Feed(path=f"{folder}/memory.numa_stat", parser=numa, identity=identity))
        if version == 2:
            limit = partial(parse_single, metric="memory.cgroup_limit", scale=1.0, cgroup=cgroup.key, identity=identity)
            feeds.append(Feed(path=f"{folder}/memory.max", parser=limit, identity=identity))
    if not feeds:
        raise SourceAbsentError("no cgroup but the root has the memory controller")
    return tuple(feeds)


SOURCE = Source(name="cgroup_memory", pace=SLOW, metrics=METRICS, feeds=_feeds, changing=True)
