"""Pressure stall information: ``/proc/pressure``."""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.pressure import parse_pressure
from unveil.host.source import FAST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare
from unveil.records.subsystem import Subsystem

_RESOURCES = {"cpu": Subsystem.CPU, "memory": Subsystem.MEMORY, "io": Subsystem.STORAGE}
_KINDS = {"some": "time in which at least one task waited for", "full": "time in which every busy task waited for"}

METRICS = tuple(
    declare(f"{subsystem}.psi_{kind}", Kind.COUNTER, "s", f"{meaning} {subsystem}", source=f"/proc/pressure/{file}")
    for file, subsystem in _RESOURCES.items()
    for kind, meaning in _KINDS.items()
)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    if not surroundings.root.exists("proc/pressure"):
        raise SourceAbsentError("this kernel has no /proc/pressure", hint="boot with psi=1")
    return tuple(
        Feed(path=f"proc/pressure/{file}", parser=partial(parse_pressure, subsystem=str(subsystem)))
        for file, subsystem in _RESOURCES.items()
    )


SOURCE = Source(name="pressure", pace=FAST, metrics=METRICS, feeds=_feeds)
