"""Time in which interrupts kept every task from running: ``/proc/pressure/irq``, since Linux 6.1 where configured."""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.pressure import parse_pressure
from unveil.host.source import SLOW, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

_PATH = "proc/pressure/irq"

METRICS = (
    declare(
        "cpu.psi_irq_full",
        Kind.COUNTER,
        "s",
        "time in which interrupts kept every busy task from running",
        source=f"/{_PATH}",
    ),
)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    if not surroundings.root.exists(_PATH):
        raise SourceAbsentError("this kernel does not tell the pressure of interrupts")
    return (Feed(path=_PATH, parser=partial(parse_pressure, subsystem="cpu", name="psi_irq")),)


SOURCE = Source(name="pressure_irq", pace=SLOW, metrics=METRICS, feeds=_feeds)
