"""How often a cgroup met its memory limits: ``memory.events``; in version 1 ``memory.failcnt``, ``memory.oom_control``.

Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst.
"""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

_EVENTS = {
    "low": ("low", "times it was reclaimed from though below its protection"),
    "high": ("high", "times its tasks were slowed down for being above the high mark"),
    "max": ("at_limit", "times it was about to exceed its limit"),
    "oom": ("oom", "times it ran out of memory"),
    "oom_kill": ("oom_kill", "processes of it that were killed for want of memory"),
}

METRICS = tuple(
    declare(f"memory.cgroup_{name}", Kind.COUNTER, "1", meaning, labels=("cgroup",), source="memory.events")
    for name, meaning in _EVENTS.values()
)

_V2 = {line.encode("ascii"): Part(f"memory.cgroup_{name}") for line, (name, _) in _EVENTS.items()}
_V1 = {b"oom_kill": _V2[b"oom_kill"]}


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    trees = surroundings.cgroups
    hierarchy = trees.memory
    if hierarchy is None:
        raise SourceAbsentError("this kernel has no memory controller")
    feeds = []
    for cgroup in trees.followed(hierarchy):
        folder, identity, labels = f"{hierarchy.mount}{cgroup.path}", str(cgroup.inode), (("cgroup", cgroup.key),)
        events = partial(parse_keyed, parts=_V2 if hierarchy.version == 2 else _V1, labels=labels, identity=identity)
        if hierarchy.version == 2:
            feeds.append(Feed(path=f"{folder}/memory.events", parser=events, identity=identity, kept=False))
            continue
        failed = partial(parse_number, metric="memory.cgroup_at_limit", labels=labels, identity=identity)
        feeds.append(Feed(path=f"{folder}/memory.failcnt", parser=failed, identity=identity, kept=False))
        feeds.append(Feed(path=f"{folder}/memory.oom_control", parser=events, identity=identity, kept=False))
    if not feeds:
        raise SourceAbsentError("no cgroup but the root has the memory controller")
    return tuple(feeds)


SOURCE = Source(name="cgroup_events", pace=SLOWEST, metrics=METRICS, feeds=_feeds, changing=True)
