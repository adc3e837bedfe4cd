"""What NFS mounts of this host do: ``/proc/self/mountstats``.

The client keeps these numbers itself: nothing is asked of a server, so that one which is dead hangs nobody (trap 8).
No file system is ever asked how full it is. The mounts are those that this process sees.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.folded import parse_folded
from unveil.host.parsers.mountstats import fold_mountstats
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from unveil.host.root import HostRoot

_MS = 1e-3

_METRICS = {
    "read_bytes": ("nfs_read_bytes", "bytes", 1.0, "bytes read from servers"),
    "write_bytes": ("nfs_write_bytes", "bytes", 1.0, "bytes written to servers"),
    "operations": ("nfs_operations", "1", 1.0, "requests to servers that were answered"),
    "transmissions": ("nfs_transmissions", "1", 1.0, "requests to servers that were sent, again or not"),
    "timeouts": ("nfs_timeouts", "1", 1.0, "requests to servers that were given up"),
    "queue_ms": ("nfs_queue_time", "s", _MS, "time that requests waited before they were sent"),
    "rtt_ms": ("nfs_server_time", "s", _MS, "time from sending requests to their answers"),
    "execute_ms": ("nfs_time", "s", _MS, "time of all requests together, waiting included"),
}

METRICS = tuple(
    declare(f"storage.{name}", Kind.COUNTER, unit, f"{meaning}, all NFS mounts", source="/proc/self/mountstats")
    for name, unit, _, meaning in _METRICS.values()
)

_METRIC_OF = {line.encode("ascii"): (f"storage.{name}", scale) for line, (name, _, scale, _) in _METRICS.items()}


def _process(root: HostRoot) -> str:
    """Return the folder of the process whose mounts are looked at: below another root, the first one's."""
    return "proc/self" if root.live or not root.exists("proc/1/mountstats") else "proc/1"


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    process = _process(root)
    try:
        mounts = root.read(f"{process}/mounts").split(b"\n")
    except FileNotFoundError:
        mounts = []
    kinds = {mount.split(b" ")[2] for mount in mounts if mount.count(b" ") > 2}
    if not kinds & {b"nfs", b"nfs4"}:
        raise SourceAbsentError("no NFS is mounted")
    parser = partial(parse_folded, metrics=_METRIC_OF)
    return (Feed(path=f"{process}/mountstats", parser=parser, whole=False, cut=fold_mountstats, kept=False),)


SOURCE = Source(name="nfs", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
