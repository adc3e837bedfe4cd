"""Where the memory is: ``/proc/meminfo``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.meminfo import parse_meminfo
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Reading, Text

_LINES = {
    "MemTotal": ("total", "memory in all"),
    "MemFree": ("free", "memory used for nothing"),
    "MemAvailable": ("available", "memory a new workload could have without swapping"),
    "Cached": ("cached", "page cache, shared memory included"),
    "Dirty": ("dirty", "file pages that wait to be written"),
    "Writeback": ("writeback", "file pages that are being written"),
    "AnonPages": ("anon", "memory of processes that no file backs"),
    "AnonHugePages": ("anon_huge", "part of it in transparent huge pages"),
    "Mapped": ("mapped", "file pages mapped into processes"),
    "Slab": ("slab", "memory of the kernel's own structures"),
    "SwapTotal": ("swap_total", "swap in all"),
    "SwapFree": ("swap_free", "swap that is free"),
    "FileHugePages": ("file_huge", "page cache in huge pages"),
    "Shmem": ("shmem", "shared memory and tmpfs"),
    "PageTables": ("page_tables", "page tables of processes"),
    "Buffers": ("buffers", "cache of block devices and of file systems' own structures"),
    "SwapCached": ("swap_cached", "memory that is in swap, too"),
    "Unevictable": ("unevictable", "memory that reclaim must leave alone"),
    "Mlocked": ("locked", "part of it that programs locked"),
    "SReclaimable": ("slab_reclaimable", "part of the kernel's own structures that can be given up"),
    "SUnreclaim": ("slab_unreclaimable", "the rest of them"),
    "KernelStack": ("kernel_stack", "stacks of tasks in the kernel"),
    "Committed_AS": ("committed", "memory that programs asked for, used or not"),
    "CommitLimit": ("commit_limit", "how much they may ask for where overcommit is off"),
    "VmallocUsed": ("vmalloc", "memory of the kernel that is contiguous only in its own eyes"),
    "Percpu": ("percpu", "memory that the kernel keeps once for each CPU"),
    "ShmemHugePages": ("shmem_huge", "shared memory in huge pages"),
}
_HUGE_PAGES = {
    "HugePages_Total": ("huge_total", "reserved huge pages (hugetlbfs)"),
    "HugePages_Free": ("huge_free", "reserved huge pages that nobody uses"),
    "HugePages_Rsvd": ("huge_reserved", "free ones among them that are promised"),
    "HugePages_Surp": ("huge_surplus", "huge pages beyond the pool"),
}

METRICS = tuple(
    declare(f"memory.{name}", Kind.GAUGE, "bytes", meaning, source="/proc/meminfo")
    for name, meaning in (*_LINES.values(), *_HUGE_PAGES.values())
)

_METRIC_OF = {f"{line}:".encode("ascii"): f"memory.{name}" for line, (name, _) in _LINES.items()}
_HUGE_METRIC_OF = {f"{line}:".encode("ascii"): f"memory.{name}" for line, (name, _) in _HUGE_PAGES.items()}


def _parse(text: Text) -> Iterator[Reading]:
    return parse_meminfo(text, _METRIC_OF, huge_pages=_HUGE_METRIC_OF)


def _feeds(_: Surroundings) -> tuple[Feed, ...]:
    return (Feed(path="proc/meminfo", parser=_parse),)


SOURCE = Source(name="meminfo", pace=MEDIUM, metrics=METRICS, feeds=_feeds)
