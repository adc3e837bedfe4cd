"""``/proc/net/sockstat``: a line for each protocol, of names and numbers in turn; ``tcp_mem``, three numbers.

Source: net/ipv4/proc.c, Documentation/networking/ip-sysctl.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.host.parsers.text import Text


def parse_sockstat(text: Text, metrics: Mapping[tuple[bytes, bytes], tuple[str, float]]) -> Iterator[Reading]:
    """Yield the numbers that are wanted.

    Args:
        metrics: protocol with its colon and name → metric, and its scale.
    """
    for line in text.lines():
        protocol, *rest = line.fields
        for place, name in enumerate(rest[::2]):
            metric = metrics.get((protocol, name))
            if metric is not None and (number := line.number(2 * place + 2)) is not None:
                yield Reading(Channel(metric[0]), (number,), metric[1])


def parse_limits(text: Text, metric: str, scale: float) -> Iterator[Reading]:
    """Yield the last of the three numbers of ``tcp_mem``: no more than that is given."""
    lines = list(text.lines())
    if len(lines) == 1 and len(lines[0].fields) == 3 and (number := lines[0].number(2)) is not None:
        yield Reading(Channel(metric), (number,), scale)
