"""Requests, bytes and time of each disk: ``/proc/diskstats``, whole disks by ``/sys/block``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.host.parsers.diskstats import parse_diskstats
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.host.parsers.text import Reading, Text
    from unveil.host.root import HostRoot

_NO_DISK = re.compile(r"(loop|ram|zram|fd|sr)\d+")
_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)", re.ASCII)
_HEADS_COUNT = (6, 4)  # the first kernel whose multipath heads count what goes over their paths
_PARTITION = re.compile(r"((sd|vd|xvd|hd)[a-z]+\d+|(nvme\d+n|mmcblk|nbd)\d+p\d+)")

_METRICS = {
    "reads": ("1", "reads"),
    "read_bytes": ("bytes", "bytes read"),
    "read_time": ("s", "time of all reads together"),
    "writes": ("1", "writes"),
    "write_bytes": ("bytes", "bytes written"),
    "write_time": ("s", "time of all writes together"),
    "io_time": ("s", "time with at least one request under way"),
    "in_flight": ("1", "requests under way"),
    "queue_time": ("s", "time of all requests together; by the second, requests under way on average"),
    "read_merges": ("1", "reads that were joined to others before"),
    "write_merges": ("1", "writes that were joined to others before"),
    "discards": ("1", "discards"),
    "discard_bytes": ("bytes", "bytes discarded"),
    "discard_time": ("s", "time of all discards together"),
    "flushes": ("1", "flushes of the disk's own cache"),
    "flush_time": ("s", "time of all flushes together"),
}

METRICS = tuple(
    declare(
        f"storage.{name}",
        Kind.GAUGE if name == "in_flight" else Kind.COUNTER,
        unit,
        meaning,
        labels=("disk",),
        source="/proc/diskstats",
    )
    for name, (unit, meaning) in _METRICS.items()
)


def whole_disks(root: HostRoot) -> Callable[[str], bool]:
    """Return what tells whether a name is that of a disk of its own.

    Disks made of others (device mapper, software RAID) are left out: their requests are counted at the disks below.
    Of an NVMe disk with several paths, either the head or the hidden paths count, by what the kernel does.
    Where ``/sys/block`` is not there (some captured trees), names that look like partitions are left out.
    """
    try:
        blocks = frozenset(root.list("sys/block"))
    except OSError:
        return lambda name: not _NO_DISK.fullmatch(name) and not _PARTITION.fullmatch(name)

    paths = {name: f"{found[1]}{found[2]}" for name in blocks if (found := _PATH.fullmatch(name))}
    silent = frozenset(paths if _heads_count(root) else paths.values())

    def wanted(name: str) -> bool:
        entry = name.replace("/", "!")
        if entry not in blocks or entry in silent or _NO_DISK.fullmatch(name):
            return False
        try:
            return not root.list(f"sys/block/{entry}/slaves")
        except OSError:
            return True

    return wanted


def _heads_count(root: HostRoot) -> bool:
    try:
        release = root.read("proc/sys/kernel/osrelease").decode("ascii", "replace")
    except OSError:
        return True
    found = re.match(r"([0-9]{1,3})\.([0-9]{1,3})", release)
    return found is None or (int(found[1]), int(found[2])) >= _HEADS_COUNT


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root

    def parse(text: Text) -> Iterator[Reading]:
        return parse_diskstats(text, whole_disks(root))

    return (Feed(path="proc/diskstats", parser=parse, whole=False),)


SOURCE = Source(name="diskstats", pace=MEDIUM, metrics=METRICS, feeds=_feeds)
