"""How the CPUs keep up with received packets: ``/proc/net/softnet_stat``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.folded import fold_softnet, parse_folded
from unveil.host.source import SLOWER, Feed, Source, Surroundings
from unveil.host.sources.net_dev import net_file
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Reading, Text

_METRICS = {
    "processed": "packets taken in by all CPUs",
    "dropped": "packets dropped as the input queue of a CPU was full",
    "squeezed": "softirq rounds that ended with packets left over",
    "rps": "times a CPU was woken to take packets that another one received",
    "flow_limit": "packets dropped as their flow had more than its part of the queue",
}

METRICS = tuple(
    declare(f"network.softnet_{name}", Kind.COUNTER, "1", meaning, source="/proc/net/softnet_stat")
    for name, meaning in _METRICS.items()
)

_METRIC_OF = {name.encode("ascii"): (f"network.softnet_{name}", 1.0) for name in _METRICS}


def _parse(text: Text) -> Iterator[Reading]:
    return parse_folded(text, _METRIC_OF)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    path = net_file(surroundings.root, "softnet_stat")
    return (Feed(path=path, parser=_parse, whole=False, cut=fold_softnet),)


SOURCE = Source(name="softnet", pace=SLOWER, metrics=METRICS, feeds=_feeds)
