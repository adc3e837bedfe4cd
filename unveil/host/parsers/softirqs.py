"""``/proc/softirqs``: softirqs by vector, one column for every possible CPU.

Source: Documentation/filesystems/proc.rst section 1.8, fs/proc/softirqs.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import ParseError, Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Text


def parse_softirqs(text: Text) -> Iterator[Reading]:
    """Yield the number of softirqs of each vector, summed over the CPUs.

    Raises:
        ParseError: there is no line of CPUs on top.
    """
    lines = text.lines()
    header = next(lines, None)
    if header is None or not all(field.startswith(b"CPU") for field in header.fields):
        raise ParseError("no line of CPUs on top")
    width = len(header.fields)
    for line in lines:
        vector = line.fields[0]
        if vector.endswith(b":") and len(line.fields) == 1 + width and (numbers := line.numbers(1, 1 + width)):
            yield Reading(Channel("cpu.softirqs", (("vector", vector[:-1].decode("ascii", "replace")),)), numbers)
