"""Huge pages by size, and how much free memory is in pieces large enough for them."""

from __future__ import annotations

from unveil.features.families import counters, gauges, plain, ratio
from unveil.features.feature import Feature, Stat, Trouble
from unveil.records.entity import EntityKind

_SIZE = ("size",)
_NODE = ("node",)

HUGE_PAGES: tuple[Feature, ...] = (
    *plain(
        "memory",
        (Stat.RATE,),
        "1/s",
        {
            "mthp_swap_in": "huge pages of any size swapped in in one piece",
            "mthp_swap_out": "huge pages of any size swapped out in one piece",
            "mthp_swap_out_fallback": "huge pages of any size split to be swapped out",
            "mthp_split": "huge pages of any size split",
            "mthp_split_failed": "huge pages of any size that could not be split",
        },
        over=_SIZE,
        trouble=Trouble.EITHER,
        detect=False,
    ),
    *(
        ratio(
            f"memory.mthp_{name}_fallback_share.rate",
            f"share of {said} that got smaller pages than the size that was wanted",
            counters("memory", f"mthp_{name}_fallback", _SIZE),
            counters("memory", f"mthp_{name}_fallback mthp_{alloc}", _SIZE),
            detect=False,
        )
        for name, alloc, said in (("fault", "fault_alloc", "page faults"), ("shmem", "shmem_alloc", "shared memory"))
    ),
    ratio(
        "memory.mthp_partly_mapped_share.last",
        "share of anonymous huge pages of any size that is partly unused",
        gauges("memory", "mthp_partly_mapped", Stat.LAST, _SIZE),
        gauges("memory", "mthp_anon", Stat.LAST, _SIZE),
        unit="1",
        log=False,
        detect=False,
    ),
    ratio(
        "memory.free_huge_share.last",
        "share of free memory in pieces large enough for a huge page",
        gauges("memory", "free_huge", Stat.LAST, _NODE),
        gauges("memory", "free_blocks", Stat.LAST, _NODE),
        trouble=Trouble.DOWN,
        detect=False,
    ),
)

NODE_HUGE_PAGES: tuple[Feature, ...] = (
    ratio(
        "memory.node_free_huge_share.last",
        "share of the node's free memory in pieces large enough for a huge page",
        gauges("memory", "free_huge", Stat.LAST, _NODE),
        gauges("memory", "free_blocks", Stat.LAST, _NODE),
        each=EntityKind.NODE,
        trouble=Trouble.DOWN,
    ),
)
