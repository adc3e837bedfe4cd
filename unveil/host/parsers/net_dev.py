"""``/proc/net/dev``: bytes, packets, errors and drops of each network interface.

Source: Documentation/filesystems/proc.rst section 1.4, net/core/net-procfs.c. An alias has a colon in its name
(``eth0:1:``), so the name ends at the last one; an old kernel leaves no blank after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import ParseError, Reading, name_of
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.host.parsers.text import Text

MOST_NICS = 64
"""Interfaces that are followed, in the order of the file, which is that of their creation: physical ones come first."""

_COLUMNS = {b"bytes": "bytes", b"packets": "packets", b"errs": "errors", b"drop": "dropped"}


def parse_net_dev(text: Text, identity: Callable[[str], str] = lambda _: "") -> Iterator[Reading]:
    """Yield the counters of each interface, received and sent.

    Args:
        identity: from the name of an interface to what tells it from an earlier one of that name.

    Raises:
        ParseError: the header does not name the columns.
    """
    columns: list[tuple[int, str]] = []
    width = 0
    nics = 0
    for line in text.lines(_part_name):
        if not columns:
            if line.raw.count(b"|") == 2:
                received, sent = (part.split() for part in line.raw.split(b"|")[1:])
                columns = [*_named(received, 1, "rx"), *_named(sent, 1 + len(received), "tx")]
                width = 1 + len(received) + len(sent)
            continue
        line.pin(0, 1)
        if len(line.fields) != width or nics == MOST_NICS:
            continue
        nics += 1
        nic = name_of(line.fields[0])
        known_by = identity(nic)
        for index, metric in columns:
            if (number := line.number(index)) is not None:
                yield Reading(Channel(metric, (("nic", nic),)), (number,), 1.0, known_by)
    if not columns:
        raise ParseError("no header that names the columns")


def nic_names(text: bytes) -> tuple[bytes, ...]:
    """Return what stands before the numbers of each line."""
    return tuple([line[: line.rfind(b":")] for line in text.split(b"\n")])


def _part_name(line: bytes) -> bytes:
    if b"|" in line:
        return line
    name, colon, numbers = line.rpartition(b":")
    return name + b" " + numbers if colon else line


def _named(names: list[bytes], start: int, direction: str) -> Iterator[tuple[int, str]]:
    for index, name in enumerate(names, start):
        if name in _COLUMNS:
            yield index, f"network.{direction}_{_COLUMNS[name]}"
