"""``/proc/pressure/*``: time in which some or all tasks waited for a resource.

Source: Documentation/accounting/psi.rst. Only the totals are taken: the averages are the kernel's own, over 10 s and
more. A kernel before 5.13 has no ``full`` line for the CPU.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Text

_POINT = re.compile(rb"(?<=[0-9])\.(?=[0-9])")  # the averages are two numbers each, so that they are no names


def parse_pressure(
    text: Text, subsystem: str, name: str = "psi", labels: tuple[tuple[str, str], ...] = (), identity: str = ""
) -> Iterator[Reading]:
    """Yield ``psi_some`` and ``psi_full`` of a subsystem, in seconds.

    Args:
        name: what stands for ``psi`` in the name of the metric.
        labels, identity: of every reading.
    """
    for line in text.lines(lambda raw: _POINT.sub(b" ", raw).replace(b"=", b" ")):
        kind, last = line.fields[0], len(line.fields) - 1
        if kind not in (b"some", b"full") or last < 2 or line.fields[last - 1] != b"total":
            continue
        if (number := line.number(last)) is not None:
            channel = Channel(f"{subsystem}.{name}_{kind.decode('ascii')}", labels)
            yield Reading(channel, (number,), 1e-6, identity)
