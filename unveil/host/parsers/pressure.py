"""``/proc/pressure/*``: time in which some or all tasks waited for a resource.

Source: Documentation/accounting/psi.rst. Only the totals are taken: the averages are the kernel's own, over 10 s and
more. A kernel before 5.13 has no ``full`` line for the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Text

_SEPARATORS = bytes.maketrans(b"=.", b"  ")


def parse_pressure(text: Text, subsystem: str) -> Iterator[Reading]:
    """Yield ``psi_some`` and ``psi_full`` of a subsystem, in seconds."""
    for line in text.lines(lambda raw: raw.translate(_SEPARATORS)):
        kind = line.fields[0]
        if kind in (b"some", b"full") and line.fields[-2] == b"total":
            number = line.number(len(line.fields) - 1)
            if number is not None:
                yield Reading(Channel(f"{subsystem}.psi_{kind.decode('ascii')}"), (number,), 1e-6)
