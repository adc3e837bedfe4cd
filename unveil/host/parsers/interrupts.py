"""``/proc/interrupts``: who handled which interrupt, one column for every online CPU.

Source: Documentation/filesystems/proc.rst section 1.2, kernel/irq/proc.c, arch/x86/kernel/irq.c. The header names the
CPUs: offline ones leave gaps, so a column is known by its id and not by its place. Behind the columns stand the chip,
the hardware number and the device, which are pinned: a number that is given to another device is another interrupt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.host.parsers.text import ParseError, Reading, name_of
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.host.parsers.text import Line, Text

_CPU = re.compile(rb"CPU[0-9]{1,9}")

MOST_CELLS = 4096
"""Interrupts times CPUs; beyond, the channels are sums over the CPUs of a node."""


def parse_interrupts(text: Text, node_of: Mapping[int, int], most_cells: int = MOST_CELLS) -> Iterator[Reading]:
    """Yield the count of each device interrupt by CPU or node, and of each other kind over all CPUs.

    Args:
        node_of: NUMA node of each CPU. When it does not know all CPUs of a big host, only totals are yielded.
        most_cells: so many interrupts times CPUs are yielded one by one.

    Raises:
        ParseError: the header does not name the CPUs.
    """
    lines = text.lines()
    cpus = _cpus(next(lines, None))
    stop = 1 + len(cpus)
    rows: list[tuple[bytes, list[int], str]] = []
    devices = 0
    for line in lines:
        line.pin(stop, len(line.fields))
        numbers = line.numbers(1, stop)
        label = line.fields[0]
        if numbers is None or not label.endswith(b":") or line.number(stop) is not None:
            continue  # a row with a column more: a CPU came online while the table was being written
        rows.append((label[:-1], numbers, name_of(b" ".join(line.fields[stop:]))))
        devices += label[:-1].isdigit()
    groups = _groups(cpus, node_of, by_cpu=devices * len(cpus) <= most_cells)
    for name, numbers, device in rows:
        if not name.isdigit():
            yield Reading(Channel("cpu.ipi", (("vector", name_of(name)),)), numbers)
            continue
        irq = ("irq", name.decode("ascii"))
        for labels, places in groups:
            yield Reading(Channel("cpu.irq", (irq, *labels)), [numbers[place] for place in places], 1.0, device)


def _cpus(header: Line | None) -> list[int]:
    names = header.fields if header is not None else []
    if not names or not all(_CPU.fullmatch(name) for name in names):
        raise ParseError("the header does not name the CPUs")
    return [int(name[3:]) for name in names]


def _groups(
    cpus: list[int], node_of: Mapping[int, int], *, by_cpu: bool
) -> list[tuple[tuple[tuple[str, str], ...], list[int]]]:
    """Return the labels of each group of CPUs and the places of their columns."""
    if by_cpu:
        return [((("cpu", str(cpu)),), [place]) for place, cpu in enumerate(cpus)]
    if any(cpu not in node_of for cpu in cpus):
        return [((), list(range(len(cpus))))]
    nodes: dict[int, list[int]] = {}
    for place, cpu in enumerate(cpus):
        nodes.setdefault(node_of[cpu], []).append(place)
    return [((("node", str(node)),), places) for node, places in sorted(nodes.items())]
