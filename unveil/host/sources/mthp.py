"""Transparent huge pages by size: ``/sys/kernel/mm/transparent_hugepage/hugepages-*/stats``, since Linux 6.8.

Sizes that are turned off are left out, as nothing happens there: mostly one size of ten is on. The kernel sums each
file over all CPUs, so they are read seldom.

Source: Documentation/admin-guide/mm/transhuge.rst.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from unveil.host.root import HostRoot

_FOLDER = "sys/kernel/mm/transparent_hugepage"
_SIZE = re.compile(r"hugepages-([1-9][0-9]{0,8})kB", re.ASCII)

_FILES = {
    "anon_fault_alloc": ("fault_alloc", Kind.COUNTER, "huge pages of a size given at a page fault"),
    "anon_fault_fallback": ("fault_fallback", Kind.COUNTER, "page faults that wanted the size and got a smaller one"),
    "swpin": ("swap_in", Kind.COUNTER, "huge pages swapped in in one piece"),
    "swpout": ("swap_out", Kind.COUNTER, "huge pages swapped out in one piece"),
    "swpout_fallback": ("swap_out_fallback", Kind.COUNTER, "huge pages split to be swapped out"),
    "shmem_alloc": ("shmem_alloc", Kind.COUNTER, "huge pages given to shared memory"),
    "shmem_fallback": ("shmem_fallback", Kind.COUNTER, "shared memory that wanted the size and got a smaller one"),
    "split": ("split", Kind.COUNTER, "huge pages of a size that were split"),
    "split_failed": ("split_failed", Kind.COUNTER, "huge pages of a size that could not be split"),
    "nr_anon": ("anon", Kind.GAUGE, "anonymous huge pages of a size"),
    "nr_anon_partially_mapped": ("partly_mapped", Kind.GAUGE, "of those, such as are partly unused"),
}

METRICS = tuple(
    declare(f"memory.mthp_{name}", kind, "1", meaning, labels=("size",), source=f"/{_FOLDER}/hugepages-*/stats/{file}")
    for file, (name, kind, meaning) in _FILES.items()
)


def _is_on(root: HostRoot, folder: str) -> bool:
    """Tell whether pages of a size may be given; one that inherits follows the setting for all."""
    try:
        chosen = root.read(f"{folder}/enabled")
        if b"[inherit]" in chosen:
            chosen = root.read(f"{_FOLDER}/enabled")
    except OSError:
        return True
    return b"[never]" not in chosen


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    names = root.names(_FOLDER)
    sizes = {name: found[1] for name in names if (found := _SIZE.fullmatch(name))}
    told = [name for name in sizes if root.exists(f"{_FOLDER}/{name}/stats")]
    if not told:
        raise SourceAbsentError("this kernel does not count huge pages by size")
    feeds = []
    for name in told:
        folder = f"{_FOLDER}/{name}"
        if not _is_on(root, folder):
            continue
        there = frozenset(root.names(f"{folder}/stats"))
        for file, (metric, _, _) in _FILES.items():
            if file in there:
                parser = partial(parse_number, metric=f"memory.mthp_{metric}", labels=(("size", sizes[name]),))
                feeds.append(Feed(path=f"{folder}/stats/{file}", parser=parser, kept=False))
    if not feeds:
        raise SourceAbsentError("every size of huge pages is turned off")
    return tuple(feeds)


SOURCE = Source(name="mthp", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
