"""Memory of each NUMA node and where its pages were allocated: ``/sys/devices/system/node``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.parsers.meminfo import parse_meminfo
from unveil.host.source import MEDIUM, SLOWER, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from unveil.host.root import HostRoot

_NODES = "sys/devices/system/node"

_ALLOCATIONS = {
    "numa_hit": ("numa_hit", "pages allocated on the node as wanted"),
    "numa_miss": ("numa_miss", "pages allocated on the node though another was wanted"),
    "numa_foreign": ("numa_foreign", "pages wanted on the node and allocated on another"),
    "local_node": ("numa_local", "pages allocated on the node by tasks that ran on it"),
    "other_node": ("numa_other", "pages allocated on the node by tasks that ran on another"),
}
_AMOUNTS = {
    "MemTotal": ("node_total", "memory of the node"),
    "MemFree": ("node_free", "memory of the node used for nothing"),
    "AnonPages": ("node_anon", "memory of processes on the node"),
    "FilePages": ("node_file", "page cache on the node"),
}

ALLOCATION_METRICS = tuple(
    declare(
        f"interconnect.{name}", Kind.COUNTER, "pages", meaning, labels=("node",), source=f"/{_NODES}/node*/numastat"
    )
    for name, meaning in _ALLOCATIONS.values()
)
AMOUNT_METRICS = tuple(
    declare(f"memory.{name}", Kind.GAUGE, "bytes", meaning, labels=("node",), source=f"/{_NODES}/node*/meminfo")
    for name, meaning in _AMOUNTS.values()
)

_PARTS = {line.encode("ascii"): Part(f"interconnect.{name}") for line, (name, _) in _ALLOCATIONS.items()}
_METRIC_OF = {f"{line}:".encode("ascii"): f"memory.{name}" for line, (name, _) in _AMOUNTS.items()}


def node_ids(root: HostRoot) -> tuple[str, ...]:
    """Return the ids of the nodes, which may leave gaps; none where the kernel knows no nodes."""
    try:
        names = root.list(_NODES)
    except OSError:
        return ()
    return tuple(sorted((name[4:] for name in names if name[:4] == "node" and name[4:].isdecimal()), key=int))


def _nodes(surroundings: Surroundings) -> tuple[str, ...]:
    ids = node_ids(surroundings.root)
    if not ids:
        raise SourceAbsentError(f"this kernel has no nodes in /{_NODES}")
    return ids


def _allocation_feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    return tuple(
        Feed(
            path=f"{_NODES}/node{node}/numastat",
            parser=partial(parse_keyed, parts=_PARTS, labels=(("node", node),)),
        )
        for node in _nodes(surroundings)
    )


def _amount_feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    return tuple(
        Feed(
            path=f"{_NODES}/node{node}/meminfo",
            parser=partial(parse_meminfo, metrics=_METRIC_OF, labels=(("node", node),)),
        )
        for node in _nodes(surroundings)
    )


NUMASTAT = Source(name="node_numastat", pace=MEDIUM, metrics=ALLOCATION_METRICS, feeds=_allocation_feeds)
MEMINFO = Source(name="node_meminfo", pace=SLOWER, metrics=AMOUNT_METRICS, feeds=_amount_feeds)
