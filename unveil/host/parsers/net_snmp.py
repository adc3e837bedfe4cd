"""``/proc/net/snmp`` and ``/proc/net/netstat``: pairs of lines, the names of a protocol's counters and the counters.

Source: RFC 4022 and 4113 for the counters, net/ipv4/proc.c for the files. A counter may be negative (``MaxConn -1``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.host.parsers.text import Text


def parse_net_snmp(text: Text, metrics: Mapping[tuple[bytes, bytes], str]) -> Iterator[Reading]:
    """Yield counters.

    Args:
        metrics: those that are wanted, by protocol with its colon and name: ``(b"Tcp:", b"RetransSegs")``.
    """
    names: list[bytes] = []
    for line in text.lines():
        if line.fields[0] != (names[0] if names else None):
            names = line.fields
            continue
        if len(names) == len(line.fields):
            for index, name in enumerate(names[1:], 1):
                metric = metrics.get((names[0], name))
                if metric is not None and (number := line.number(index)) is not None:
                    yield Reading(Channel(metric), (number,))
        names = []
