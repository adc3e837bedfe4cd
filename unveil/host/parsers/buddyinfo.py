"""``/proc/buddyinfo``: free blocks of each size, folded to what of it is large enough for huge pages.

A line for each zone of a node, a column for each order: blocks of 1, 2, 4 … pages. Free memory in small blocks is no
use for a huge page until it was compacted.

Source: Documentation/filesystems/proc.rst section 1.4, mm/vmstat.c.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Text

_ZONE = re.compile(rb"Node ([0-9]{1,5}), zone +(\S+)((?: +[0-9]{1,15}){1,64}) *", re.ASCII)
_METRICS = {b"blocks": "memory.free_blocks", b"huge": "memory.free_huge"}


def fold_buddyinfo(raw: bytes, huge_order: int) -> bytes:
    """Return for each node the pages in free blocks of any size, and of those that hold a huge page.

    Args:
        huge_order: order of a block that holds one huge page: 9 for 2 MiB in pages of 4 KiB.
    """
    nodes: dict[int, list[int]] = {}
    for line in filter(None, raw.split(b"\n")):
        zone = _ZONE.fullmatch(line)
        if zone is None:
            return raw
        pages = [int(count) << order for order, count in enumerate(zone[3].split())]
        node = nodes.setdefault(int(zone[1]), [0, 0])
        node[0] += sum(pages)
        node[1] += sum(pages[huge_order:])
    return b"".join(b"node %d blocks %d huge %d\n" % (node, *sums) for node, sums in sorted(nodes.items()))


def parse_buddyinfo(text: Text, page_bytes: int) -> Iterator[Reading]:
    """Yield for each node the bytes in free blocks, and in those that hold a huge page."""
    for line in text.lines():
        if len(line.fields) != 6 or line.fields[0] != b"node" or line.number(1) is None:
            continue
        line.pin(1, 2)
        labels = (("node", line.fields[1].decode("ascii")),)
        for place in (2, 4):
            metric, number = _METRICS.get(line.fields[place]), line.number(place + 1)
            if metric is not None and number is not None:
                yield Reading(Channel(metric, labels), (number,), float(page_bytes))
