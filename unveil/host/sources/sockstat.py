"""How many sockets there are and what memory they take: ``/proc/net/sockstat``, with the limit of TCP's memory."""

from __future__ import annotations

import os
from functools import partial

from unveil.host.parsers.sockstat import parse_limits, parse_sockstat
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.host.sources.net_dev import net_file
from unveil.records.metric import Kind, declare

_PAGE = float(os.sysconf("SC_PAGE_SIZE"))
_LIMIT = "network.tcp_memory_limit"

# Protocol and name → metric below network., unit, scale, what it is.
_NUMBERS = {
    ("sockets:", "used"): ("sockets", "sockets", 1.0, "sockets of all kinds"),
    ("TCP:", "inuse"): ("tcp_sockets", "sockets", 1.0, "TCP sockets of IPv4 in use"),
    ("TCP:", "orphan"): ("tcp_orphans", "sockets", 1.0, "TCP sockets that no program holds any more"),
    ("TCP:", "tw"): ("tcp_time_wait", "sockets", 1.0, "TCP connections that wait for late segments"),
    ("TCP:", "alloc"): ("tcp_allocated", "sockets", 1.0, "TCP sockets that take memory"),
    ("TCP:", "mem"): ("tcp_memory", "bytes", _PAGE, "memory of TCP's buffers"),
    ("UDP:", "inuse"): ("udp_sockets", "sockets", 1.0, "UDP sockets of IPv4 in use"),
    ("UDP:", "mem"): ("udp_memory", "bytes", _PAGE, "memory of UDP's buffers"),
    ("FRAG:", "memory"): ("fragment_memory", "bytes", 1.0, "memory of packets that wait for their other parts"),
}


METRICS = (
    *(
        declare(f"network.{name}", Kind.GAUGE, unit, meaning, source="/proc/net/sockstat")
        for name, unit, _, meaning in _NUMBERS.values()
    ),
    declare(_LIMIT, Kind.GAUGE, "bytes", "memory that TCP's buffers may have", source="/proc/sys/net/ipv4/tcp_mem"),
)

_METRIC_OF = {
    (protocol.encode("ascii"), word.encode("ascii")): (f"network.{name}", scale)
    for (protocol, word), (name, _, scale, _) in _NUMBERS.items()
}


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    sockstat = partial(parse_sockstat, metrics=_METRIC_OF)
    limit = partial(parse_limits, metric=_LIMIT, scale=_PAGE)
    return (
        Feed(path=net_file(surroundings.root, "sockstat"), parser=sockstat, kept=False),
        Feed(path="proc/sys/net/ipv4/tcp_mem", parser=limit, kept=False),
    )


SOURCE = Source(name="sockstat", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
