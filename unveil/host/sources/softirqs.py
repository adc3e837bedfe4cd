"""Softirqs by vector: ``/proc/softirqs``."""

from __future__ import annotations

from unveil.host.parsers.softirqs import parse_softirqs
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

METRICS = (
    declare(
        "cpu.softirqs",
        Kind.COUNTER,
        "1",
        "softirqs of a kind (NET_RX, BLOCK, TASKLET, …) over all CPUs",
        labels=("vector",),
        source="/proc/softirqs",
    ),
)


def _feeds(_: Surroundings) -> tuple[Feed, ...]:
    return (Feed(path="proc/softirqs", parser=parse_softirqs),)


SOURCE = Source(name="softirqs", pace=MEDIUM, metrics=METRICS, feeds=_feeds)
