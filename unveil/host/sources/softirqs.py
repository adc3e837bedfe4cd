"""Softirqs by vector: ``/proc/softirqs``."""

from __future__ import annotations

from unveil.host.parsers.softirqs import parse_softirqs
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.records.metric import Kind, Metric
from unveil.records.subsystem import Subsystem

METRICS = (
    Metric(
        name="cpu.softirqs",
        subsystem=Subsystem.CPU,
        unit="1",
        kind=Kind.COUNTER,
        labels=("vector",),
        source="/proc/softirqs",
        meaning="softirqs of a kind (NET_RX, BLOCK, TASKLET, …) over all CPUs",
    ),
)


def _feeds(_: Surroundings) -> tuple[Feed, ...]:
    return (Feed(path="proc/softirqs", parser=parse_softirqs),)


SOURCE = Source(name="softirqs", pace=MEDIUM, metrics=METRICS, feeds=_feeds)
