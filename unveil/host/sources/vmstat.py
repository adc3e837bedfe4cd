"""Paging, reclaim, huge pages and NUMA balancing: ``/proc/vmstat``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.records.metric import Kind, Metric
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Reading, Text

_PAGE = float(os.sysconf("SC_PAGE_SIZE"))
_FILE = "/proc/vmstat"
_ZONES = ("", "_dma", "_dma32", "_normal", "_high", "_movable", "_device")
_RECLAIMERS = ("kswapd", "direct", "khugepaged", "proactive")

# Name of the line → metric below memory., unit, what it is.
_MEMORY = {
    "pgfault": ("page_faults", "1", "page faults, minor and major"),
    "pgmajfault": ("major_faults", "1", "page faults that waited for a disk"),
    "pswpin": ("swap_in", "pages", "pages read from swap"),
    "pswpout": ("swap_out", "pages", "pages written to swap"),
    "pgpgin": ("page_in", "KiB", "read from block devices"),
    "pgpgout": ("page_out", "KiB", "written to block devices"),
    "thp_fault_alloc": ("thp_fault_alloc", "1", "huge pages given at a page fault"),
    "thp_fault_fallback": ("thp_fault_fallback", "1", "page faults that wanted a huge page and got a small one"),
    "thp_collapse_alloc": ("thp_collapse_alloc", "1", "huge pages that khugepaged put together"),
    "thp_split_page": ("thp_split", "1", "huge pages that were split"),
    "compact_stall": ("compact_stall", "1", "allocations that had to compact memory first"),
    "compact_fail": ("compact_fail", "1", "compactions that found no room"),
    "compact_success": ("compact_success", "1", "compactions that found room"),
    "oom_kill": ("oom_kill", "1", "processes killed for want of memory"),
    "nr_dirtied": ("dirtied", "pages", "file pages that became dirty"),
    "nr_written": ("written", "pages", "file pages that were written"),
}
_SUMS = {
    "pgscan": ("pages that reclaim looked at, all kinds of reclaim", "pages"),
    "pgsteal": ("pages that reclaim took, all kinds of reclaim", "pages"),
    "alloc_stall": ("allocations that had to reclaim first, all zones", "1"),
}
_THRESHOLDS = {
    "nr_dirty_threshold": ("dirty_threshold", "dirty memory at which writers are throttled"),
    "nr_dirty_background_threshold": ("dirty_background_threshold", "dirty memory at which writeback begins"),
}
_INTERCONNECT = {
    "numa_hit": "pages allocated on the node that was wanted",
    "numa_miss": "pages allocated here though another node was wanted",
    "numa_foreign": "pages wanted here and allocated on another node",
    "numa_local": "pages allocated on the node of the task",
    "numa_other": "pages allocated here by a task on another node",
    "numa_pte_updates": "page table entries marked by NUMA balancing",
    "numa_hint_faults": "faults on those marks",
    "numa_hint_faults_local": "faults on those marks on the right node already",
    "numa_pages_migrated": "pages moved by NUMA balancing",
}

_PARTS = {
    **{name: Part(f"memory.{metric}") for name, (metric, _, _) in _MEMORY.items()},
    **{
        f"{sum_of}_{who}{zone}": Part(f"memory.{sum_of}")
        for sum_of in ("pgscan", "pgsteal")
        for who in _RECLAIMERS
        for zone in _ZONES
    },
    **{f"allocstall{zone}": Part("memory.alloc_stall") for zone in _ZONES},
    **{name: Part(f"memory.{metric}", _PAGE) for name, (metric, _) in _THRESHOLDS.items()},
    **{name: Part(f"interconnect.{name}") for name in _INTERCONNECT},
}
PARTS = {name.encode("ascii"): part for name, part in _PARTS.items()}


def _metric(name: str, unit: str, meaning: str, kind: Kind = Kind.COUNTER) -> Metric:
    subsystem = Subsystem(name.partition(".")[0])
    return Metric(name=name, subsystem=subsystem, unit=unit, kind=kind, source=_FILE, meaning=meaning)


METRICS = (
    *(_metric(f"memory.{name}", unit, meaning) for name, unit, meaning in _MEMORY.values()),
    *(_metric(f"memory.{name}", unit, meaning) for name, (meaning, unit) in _SUMS.items()),
    *(_metric(f"memory.{name}", "bytes", meaning, Kind.GAUGE) for name, meaning in _THRESHOLDS.values()),
    *(_metric(f"interconnect.{name}", "pages", meaning) for name, meaning in _INTERCONNECT.items()),
)


def _parse(text: Text) -> Iterator[Reading]:
    return parse_keyed(text, PARTS)


def _feeds(_: Surroundings) -> tuple[Feed, ...]:
    return (Feed(path="proc/vmstat", parser=_parse, whole=False),)


SOURCE = Source(name="vmstat", pace=MEDIUM, metrics=METRICS, feeds=_feeds)
