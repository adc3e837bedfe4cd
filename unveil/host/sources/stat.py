"""CPU time by state and CPU, and the kernel's counts of switches, forks and interrupts: ``/proc/stat``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.host.parsers.stat import STATES, cut_interrupts, parse_stat
from unveil.host.source import FAST, Feed, Source, Surroundings
from unveil.records.metric import Kind, Metric, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Reading, Text

_USER_HZ = os.sysconf("SC_CLK_TCK")
_FILE = "/proc/stat"

_TIMES = {
    "user": "time in user mode, guests included",
    "nice": "time in user mode at low priority",
    "system": "time in the kernel",
    "idle": "time with nothing to do",
    "iowait": "time with nothing to do while a task waited for a disk; advisory, may go backwards",
    "irq": "time in interrupt handlers",
    "softirq": "time in softirqs",
    "steal": "time the hypervisor gave to others",
}


def _metric(name: str, kind: Kind, meaning: str, unit: str = "1", labels: tuple[str, ...] = ()) -> Metric:
    return declare(f"cpu.{name}", kind, unit, meaning, labels=labels, source=_FILE)


METRICS = (
    *(_metric(state, Kind.COUNTER, _TIMES[state], "s", ("cpu",)) for state in STATES),
    _metric("context_switches", Kind.COUNTER, "switches from one task to another"),
    _metric("forks", Kind.COUNTER, "processes and threads that were created"),
    _metric("interrupts", Kind.COUNTER, "interrupts of all kinds"),
    _metric("running", Kind.GAUGE, "tasks that run or want to"),
    _metric("blocked", Kind.GAUGE, "tasks that wait for a disk"),
)


def _parse(text: Text) -> Iterator[Reading]:
    return parse_stat(text, _USER_HZ)


def _feeds(_: Surroundings) -> tuple[Feed, ...]:
    return (Feed(path="proc/stat", parser=_parse, cut=cut_interrupts),)


SOURCE = Source(name="stat", pace=FAST, metrics=METRICS, feeds=_feeds)
