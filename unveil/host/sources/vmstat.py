"""Paging, reclaim, huge pages and NUMA balancing: ``/proc/vmstat``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.records.metric import Kind, Metric, declare

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
    "thp_collapse_alloc_failed": ("thp_collapse_failed", "1", "huge pages that khugepaged could not get"),
    "thp_split_page_failed": ("thp_split_failed", "1", "huge pages that could not be split"),
    "thp_split_pmd": ("thp_split_pmd", "1", "huge mappings that were split into small ones"),
    "thp_deferred_split_page": ("thp_deferred_split", "1", "huge pages put aside for splitting, partly unused"),
    "thp_swpout": ("thp_swap_out", "1", "huge pages swapped out in one piece"),
    "thp_swpout_fallback": ("thp_swap_out_fallback", "1", "huge pages that had to be split to be swapped out"),
    "thp_file_alloc": ("thp_file_alloc", "1", "huge pages given to shared memory and files"),
    "thp_file_fallback": ("thp_file_fallback", "1", "shared memory that wanted a huge page and got small ones"),
    "compact_isolated": ("compact_isolated", "pages", "pages taken aside to be moved by compaction"),
    "compact_daemon_wake": ("compact_wakeups", "1", "times the compaction daemon was woken"),
    "workingset_refault_anon": ("refault_anon", "pages", "anonymous pages swapped in soon after they were reclaimed"),
    "workingset_refault_file": ("refault_file", "pages", "file pages read again soon after they were reclaimed"),
    "workingset_refault": ("refault_file", "pages", "the same in kernels before 5.9"),
    "pgactivate": ("activated", "pages", "pages found to be in use"),
    "pgdeactivate": ("deactivated", "pages", "pages found to be out of use"),
    "pgfree": ("freed", "pages", "pages given back"),
    "pageoutrun": ("kswapd_runs", "1", "times kswapd began to reclaim"),
    "kswapd_low_wmark_hit_quickly": ("kswapd_low_hits", "1", "times memory ran low again at once after kswapd"),
    "slabs_scanned": ("slab_scanned", "1", "kernel objects that reclaim looked at"),
    "nr_vmscan_immediate_reclaim": ("reclaim_writeback", "pages", "pages reclaim met that were being written back"),
    "nr_throttled_written": ("throttled_written", "pages", "pages written while reclaim waited for them"),
    "balloon_inflate": ("balloon_inflate", "pages", "pages taken from this virtual machine by its host"),
    "balloon_deflate": ("balloon_deflate", "pages", "pages given back to this virtual machine"),
    "swap_ra": ("swap_read_ahead", "pages", "pages read from swap in advance"),
    "swap_ra_hit": ("swap_read_ahead_hit", "pages", "of those, pages that were needed"),
    "zswpin": ("zswap_in", "pages", "pages taken from compressed swap"),
    "zswpout": ("zswap_out", "pages", "pages put into compressed swap"),
    "htlb_buddy_alloc_fail": (
        "huge_pool_fail",
        "1",
        "pages for the pool of explicit huge pages that were not to be had",
    ),
    "oom_kill": ("oom_kill", "1", "processes killed for want of memory"),
    "nr_dirtied": ("dirtied", "pages", "file pages that became dirty"),
    "nr_written": ("written", "pages", "file pages that were written"),
}
_OLD = ("workingset_refault",)  # other names of metrics that are there already
_SUMS = {
    "pgscan": ("pages that reclaim looked at, all kinds of reclaim", "pages"),
    "pgsteal": ("pages that reclaim took, all kinds of reclaim", "pages"),
    "alloc_stall": ("allocations that had to reclaim first, all zones", "1"),
    "allocated": ("pages given out, all zones", "pages"),
    "compact_scanned": ("pages that compaction looked at, to move or to fill", "pages"),
    "cache_drops": ("times somebody dropped the page cache or the kernel's objects by hand", "1"),
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
    "numa_interleave": "pages allocated on nodes in turn, as asked for",
    "numa_huge_pte_updates": "huge page table entries marked by NUMA balancing",
    "pgmigrate_success": "pages moved, for whatever reason",
    "pgmigrate_fail": "pages that could not be moved",
    "zone_reclaim_success": "reclaims on a node that made room before memory was taken elsewhere",
    "zone_reclaim_failed": "reclaims on a node that made no room",
    "pgpromote_success": "pages moved from slow memory to fast",
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
    **{f"pgalloc{zone}": Part("memory.allocated") for zone in _ZONES if zone},
    **{f"compact_{what}_scanned": Part("memory.compact_scanned") for what in ("migrate", "free")},
    **{f"drop_{what}": Part("memory.cache_drops") for what in ("pagecache", "slab")},
    **{f"pgdemote_{who}": Part("interconnect.pgdemote") for who in _RECLAIMERS},
    **{name: Part(f"memory.{metric}", _PAGE) for name, (metric, _) in _THRESHOLDS.items()},
    **{name: Part(f"interconnect.{name}") for name in _INTERCONNECT},
}
PARTS = {name.encode("ascii"): part for name, part in _PARTS.items()}


def _metric(name: str, unit: str, meaning: str, kind: Kind = Kind.COUNTER) -> Metric:
    return declare(name, kind, unit, meaning, source=_FILE)


METRICS = (
    *(_metric(f"memory.{name}", unit, meaning) for line, (name, unit, meaning) in _MEMORY.items() if line not in _OLD),
    *(_metric(f"memory.{name}", unit, meaning) for name, (meaning, unit) in _SUMS.items()),
    *(_metric(f"memory.{name}", "bytes", meaning, Kind.GAUGE) for name, meaning in _THRESHOLDS.values()),
    *(_metric(f"interconnect.{name}", "pages", meaning) for name, meaning in _INTERCONNECT.items()),
    _metric("interconnect.pgdemote", "pages", "pages moved from fast memory to slow"),
)


def _parse(text: Text) -> Iterator[Reading]:
    return parse_keyed(text, PARTS)


def _feeds(_: Surroundings) -> tuple[Feed, ...]:
    return (Feed(path="proc/vmstat", parser=_parse, whole=False),)


SOURCE = Source(name="vmstat", pace=MEDIUM, metrics=METRICS, feeds=_feeds)
