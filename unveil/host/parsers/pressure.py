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


def parse_pressure(text: Text, subsystem: str) -> Iterator[Reading]:
    """Yield ``psi_some`` and ``psi_full`` of a subsystem, in seconds."""
    for line in text.lines(lambda raw: _POINT.sub(b" ", raw).replace(b"=", b" ")):
        kind, last = line.fields[0], len(line.fields) - 1
        if kind not in (b"some", b"full") or last < 2 or line.fields[last - 1] != b"total":
            continue
        if (number := line.number(last)) is not None:
            yield Reading(Channel(f"{subsystem}.psi_{kind.decode('ascii')}"), (number,), 1e-6)
