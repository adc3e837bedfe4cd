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

_MOST_PLANS = 32  # headers of a kernel: a handful

_plans: dict[bytes, tuple[tuple[int, bytes], ...]] = {}


def select_counters(text: bytes, wanted: Mapping[bytes, Mapping[bytes, bytes]]) -> Iterator[tuple[bytes, int]]:
    """Yield the wanted counters of a text made of pairs of lines, names and numbers.

    Args:
        wanted: by protocol with its colon and by name: what the counter is called.
    """
    lines = iter(text.split(b"\n"))
    for header in lines:
        protocol = header[: header.find(b":") + 1]
        if protocol not in wanted:
            continue
        plan = _plan(header, wanted[protocol])
        fields = next(lines, b"").split()
        if not fields or fields[0] != protocol:
            continue
        for index, name in plan:
            if index < len(fields) and fields[index].isdigit():
                yield name, int(fields[index])


def _plan(header: bytes, wanted: Mapping[bytes, bytes]) -> tuple[tuple[int, bytes], ...]:
    """Return where the wanted counters stand; remembered, as the lines of names are the same in all namespaces."""
    plan = _plans.get(header)
    if plan is None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        names = header.split()
        plan = tuple((index, wanted[name]) for index, name in enumerate(names) if name in wanted)
        _plans[header] = plan
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
