"""How long tasks waited for a CPU that they could have run on: ``/proc/schedstat``."""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.folded import fold_schedstat, parse_folded
from unveil.host.source import SLOWER, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

_METRICS = {
    "run": ("run_time", "s", 1e-6, "time that tasks ran"),
    "wait": ("run_delay", "s", 1e-6, "time that tasks waited in the queue of a CPU"),
    "slices": ("timeslices", "1", 1.0, "times a task was given a CPU"),
}

METRICS = tuple(
    declare(f"cpu.{name}", Kind.COUNTER, unit, f"{meaning}, all CPUs together", source="/proc/schedstat")
    for name, unit, _, meaning in _METRICS.values()
)

_METRIC_OF = {line.encode("ascii"): (f"cpu.{name}", scale) for line, (name, _, scale, _) in _METRICS.items()}


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    if not surroundings.root.exists("proc/schedstat"):
        raise SourceAbsentError("this kernel was built without scheduler statistics (CONFIG_SCHEDSTATS)")
    parser = partial(parse_folded, metrics=_METRIC_OF)
    return (Feed(path="proc/schedstat", parser=parser, whole=False, cut=fold_schedstat),)


SOURCE = Source(name="schedstat", pace=SLOWER, metrics=METRICS, feeds=_feeds)
