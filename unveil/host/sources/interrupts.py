"""Who handles which interrupt: ``/proc/interrupts``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.cpulist import parse_cpulist
from unveil.host.parsers.interrupts import parse_interrupts
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.host.sources.node import node_ids
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Reading, Text
    from unveil.host.root import HostRoot

_FILE = "/proc/interrupts"

METRICS = (
    declare(
        "cpu.irq",
        Kind.COUNTER,
        "1",
        "interrupts of a device handled by a CPU, on a big host by the CPUs of a node",
        labels=("irq", "cpu", "node"),
        source=_FILE,
    ),
    declare(
        "cpu.ipi",
        Kind.COUNTER,
        "1",
        "interrupts of no device over all CPUs: RES rescheduling, CAL calls, TLB shootdowns, LOC timers, …",
        labels=("vector",),
        source=_FILE,
    ),
)


def nodes_of_cpus(root: HostRoot) -> dict[int, int]:
    """Return the NUMA node of each CPU that a node lists."""
    nodes: dict[int, int] = {}
    for node in node_ids(root):
        try:
            cpus = parse_cpulist(root.read(f"sys/devices/system/node/node{node}/cpulist"))
        except (OSError, ValueError):
            continue
        nodes.update(dict.fromkeys(cpus, int(node)))
    return nodes


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root

    def parse(text: Text) -> Iterator[Reading]:
        return parse_interrupts(text, nodes_of_cpus(root))

    return (Feed(path="proc/interrupts", parser=parse, whole=False),)


SOURCE = Source(name="interrupts", pace=MEDIUM, metrics=METRICS, feeds=_feeds)
