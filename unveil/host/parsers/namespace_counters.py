"""Counters of a network namespace: the few of ``snmp`` and ``netstat`` that are wanted, and what is made of them.

These files hold two hundred numbers, of which a dozen are kept of each namespace. So they are picked out before the
texts of a pace are parsed together, and written down one a line, below a line that says whose they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading, Text
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_DIGITS = 20  # of a number of 64 bits
_MOST_PLANS = 32  # lines of names that a kernel has: a handful


class Selection:
    """What is wanted of such files; it remembers where it stands, as the lines of names are the same everywhere."""

    def __init__(self, wanted: Mapping[bytes, Mapping[bytes, bytes]]) -> None:
        """Make a selection.

        Args:
            wanted: by protocol with its colon and by name: what the counter is called.
        """
        self._wanted = wanted
        self._plans: dict[bytes, tuple[tuple[int, bytes], ...]] = {}

    def of(self, text: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield the counters of a text made of pairs of lines, names and numbers."""
        lines = text.split(b"\n")
        for header, numbers in zip(lines[::2], lines[1::2], strict=False):
            plan = self._plans.get(header)
            if plan is None:
                plan = self._planned(header)
            if plan and numbers.startswith(header[: header.find(b":") + 1]):
                fields = numbers.split()
                for index, name in plan:
                    if index < len(fields) and fields[index].isdigit() and len(fields[index]) <= _MOST_DIGITS:
                        yield name, int(fields[index])

    def _planned(self, header: bytes) -> tuple[tuple[int, bytes], ...]:
        """Return where the counters that are wanted stand below a line of names."""
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        names = self._wanted.get(header[: header.find(b":") + 1], {})
        plan = tuple((index, names[name]) for index, name in enumerate(header.split()) if name in names)
        self._plans[header] = plan
        return plan


def parse_counters(text: Text, cgroup: str) -> Iterator[Reading]:
    """Yield the counters of a cgroup's namespaces; with other namespaces they begin anew.

    The text is ``of 4026532207``, with the numbers of all its namespaces, and then ``network.cgroup_tcp_retrans 12``.
    """
    labels = (("cgroup", cgroup),)
    whose = ""
    for line in text.lines():
        if line.fields[0] == b"of":
            line.pin(1, len(line.fields))
            whose = b" ".join(line.fields[1:]).decode("ascii", "replace")
        elif len(line.fields) == 2 and (number := line.number(1)) is not None:
            yield Reading(Channel(line.fields[0].decode("ascii", "replace"), labels), (number,), 1.0, whose)
