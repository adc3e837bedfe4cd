"""Memory errors that were corrected, and such that could not be: ``/sys/devices/system/edac``."""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

_FOLDER = "sys/devices/system/edac/mc"
_FILES = {
    "ce_count": ("ecc_corrected", "errors of memory that were corrected"),
    "ue_count": ("ecc_uncorrected", "errors of memory that could not be corrected"),
}

METRICS = tuple(
    declare(f"memory.{name}", Kind.COUNTER, "1", meaning, labels=("controller",), source=f"/{_FOLDER}/mc*/{file}")
    for file, (name, meaning) in _FILES.items()
)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    names = root.names(_FOLDER)
    controllers = [name for name in names if name[:2] == "mc" and name[2:].isdecimal()]
    if not controllers:
        raise SourceAbsentError("no driver counts errors of memory, as is usual in a virtual machine")
    return tuple(
        Feed(
            path=f"{_FOLDER}/{name}/{file}",
            parser=partial(parse_number, metric=f"memory.{metric}", labels=(("controller", name[2:]),)),
            kept=False,
        )
        for name in controllers
        for file, (metric, _) in _FILES.items()
    )


SOURCE = Source(name="edac", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
