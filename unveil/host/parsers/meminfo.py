"""``/proc/meminfo``, and ``meminfo`` of a NUMA node, which puts ``Node 0`` before each line.

Source: Documentation/filesystems/proc.rst section 1.5, Documentation/ABI/stable/sysfs-devices-node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.host.parsers.text import Text

_KIB = 1024.0
_PAGE_SIZE = b"Hugepagesize:"


def parse_meminfo(
    text: Text,
    metrics: Mapping[bytes, str],
    *,
    huge_pages: Mapping[bytes, str] | None = None,
    labels: tuple[tuple[str, str], ...] = (),
) -> Iterator[Reading]:
    """Yield amounts of memory in bytes.

    Args:
        metrics: lines in kB that are wanted, the name with its colon.
        huge_pages: lines that count huge pages of the default size. They are only yielded when the text tells that
            size, which is pinned: the scale holds no longer when it changes.
        labels: labels of every channel.
    """
    counts: list[tuple[str, int]] = []
    page_bytes = 0.0
    for line in text.lines():
        start = 2 if line.fields[0] == b"Node" else 0
        name, *rest = line.fields[start:] or (b"",)
        number = line.number(start + 1)
        if number is None:
            continue
        if rest[1:] == [b"kB"]:
            if name in metrics:
                yield Reading(Channel(metrics[name], labels), (number,), _KIB)
            elif name == _PAGE_SIZE and len(rest[0]) < 10:
                page_bytes = int(rest[0]) * _KIB
                line.pin(start + 1, start + 2)
        elif huge_pages and name in huge_pages and len(rest) == 1:
            counts.append((huge_pages[name], number))
    if page_bytes:
        for metric, number in counts:
            yield Reading(Channel(metric, labels), (number,), page_bytes)
