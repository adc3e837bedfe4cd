"""Bytes and requests of each cgroup: ``io.stat``; version 2 only.

Version 1 has counters of the same meaning (``blkio.throttle.io_service_bytes``), but they leave out everything that
is written back later, which is nearly all that training writes: half a truth, and so absent.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.cgroup_io import parse_cgroup_io
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.host.sources.diskstats import whole_disks
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.host.root import HostRoot

_METRICS = {
    "read_bytes": ("bytes", "bytes its processes read from disks"),
    "write_bytes": ("bytes", "bytes written to disks on its account"),
    "reads": ("1", "reads from disks"),
    "writes": ("1", "writes to disks"),
}

METRICS = tuple(
    declare(f"storage.cgroup_{name}", Kind.COUNTER, unit, meaning, labels=("cgroup",), source="io.stat")
    for name, (unit, meaning) in _METRICS.items()
)


def disk_numbers(root: HostRoot) -> Callable[[str], bool]:
    """Return what tells whether a device number is that of a disk of its own.

    The disks are looked up when first asked, and again for a number that is new: a disk may be plugged in.
    """
    known: dict[str, bool] = {}

    def wanted(number: str) -> bool:
        if number not in known:
            known.update(_disks(root))
            known.setdefault(number, False)
        return known[number]

    return wanted


def _disks(root: HostRoot) -> Iterator[tuple[str, bool]]:
    """Yield the number of each block device, and whether it is a disk of its own."""
    wanted = whole_disks(root)
    for name in root.names("sys/block"):
        try:
            number = root.read(f"sys/block/{name}/dev").decode("ascii", "replace").strip()
        except OSError:
            continue
        yield number, wanted(name.replace("!", "/"))


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    trees, root = surroundings.cgroups, surroundings.root
    unified = trees.unified
    if unified is None or not root.exists(f"{unified.mount}/io.stat"):
        raise SourceAbsentError("this host has no I/O controller of version 2")
    wanted = disk_numbers(root)  # asked when a text is new, and not for every look at the cgroups
    feeds = []
    for cgroup in trees.followed(unified):
        identity = str(cgroup.inode)
        parser = partial(parse_cgroup_io, wanted=wanted, cgroup=cgroup.key, identity=identity)
        feeds.append(
            Feed(
                path=f"{unified.mount}{cgroup.path}/io.stat", parser=parser, identity=identity, whole=False, kept=False
            )
        )
    if not feeds:
        raise SourceAbsentError("no cgroup of version 2 but the root")
    return tuple(feeds)


SOURCE = Source(name="cgroup_io", pace=SLOWEST, metrics=METRICS, feeds=_feeds, changing=True)
