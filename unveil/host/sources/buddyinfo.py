"""How fragmented free memory is: ``/proc/buddyinfo``.

Its big sibling ``pagetypeinfo`` walks every page and is never read.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from unveil.host.facts.sheet import number, plain
from unveil.host.parsers.buddyinfo import fold_buddyinfo, parse_buddyinfo
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from unveil.host.root import HostRoot

_PAGE = os.sysconf("SC_PAGE_SIZE")
_HUGE_PAGE_BYTES = 2 << 20  # where the kernel does not tell

METRICS = tuple(
    declare(f"memory.{name}", Kind.GAUGE, "bytes", meaning, labels=("node",), source="/proc/buddyinfo")
    for name, meaning in (
        ("free_blocks", "free memory of a node in blocks of any size"),
        ("free_huge", "part of it in blocks that hold a huge page"),
    )
)


def huge_order(root: HostRoot) -> int:
    """Return the order of a block of pages that holds one transparent huge page."""
    try:
        size = int(number(plain(root.read("sys/kernel/mm/transparent_hugepage/hpage_pmd_size"))))
    except (OSError, ValueError):
        size = _HUGE_PAGE_BYTES
    return max(1, (size // _PAGE).bit_length() - 1)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    return (
        Feed(
            path="proc/buddyinfo",
            parser=partial(parse_buddyinfo, page_bytes=_PAGE),
            whole=False,
            cut=partial(fold_buddyinfo, huge_order=huge_order(surroundings.root)),
            kept=False,
        ),
    )


SOURCE = Source(name="buddyinfo", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
