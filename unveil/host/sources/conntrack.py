"""The table of tracked connections: how full it is, and what it turned away."""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.folded import fold_conntrack, parse_folded
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.host.sources.net_dev import net_file
from unveil.records.metric import Kind, declare

_FOLDER = "proc/sys/net/netfilter"
_FILES = {
    "nf_conntrack_count": ("conntrack_entries", "connections that are tracked"),
    "nf_conntrack_max": ("conntrack_limit", "connections that can be tracked"),
}
_COUNTERS = {
    "drop": ("conntrack_dropped", "packets dropped as the table of connections was full"),
    "early_drop": ("conntrack_evicted", "connections forgotten early to make room for others"),
    "insert_failed": ("conntrack_insert_failed", "connections that could not be entered into the table"),
    "search_restart": ("conntrack_restarts", "searches in the table that had to begin anew"),
}


METRICS = (
    *(
        declare(f"network.{name}", Kind.GAUGE, "1", meaning, source=f"/{_FOLDER}/{file}")
        for file, (name, meaning) in _FILES.items()
    ),
    *(
        declare(f"network.{name}", Kind.COUNTER, "1", meaning, source="/proc/net/stat/nf_conntrack")
        for name, meaning in _COUNTERS.values()
    ),
)

_METRIC_OF = {column.encode("ascii"): (f"network.{name}", 1.0) for column, (name, _) in _COUNTERS.items()}


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    if not root.exists(f"{_FOLDER}/nf_conntrack_count"):
        raise SourceAbsentError("connections are not tracked on this host")
    return (
        *(
            Feed(path=f"{_FOLDER}/{file}", parser=partial(parse_number, metric=f"network.{name}"), kept=False)
            for file, (name, _) in _FILES.items()
        ),
        Feed(
            path=net_file(root, "stat/nf_conntrack"),
            parser=partial(parse_folded, metrics=_METRIC_OF),
            whole=False,
            cut=fold_conntrack,
            kept=False,
        ),
    )


SOURCE = Source(name="conntrack", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
