"""What TCP and UDP went through: ``/proc/net/snmp`` and ``/proc/net/netstat``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.net_snmp import parse_net_snmp
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.host.sources.net_dev import net_file
from unveil.records.metric import Kind, Metric
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Reading, Text

# File, protocol and counter → metric below network. and what it counts.
_COUNTERS = {
    ("snmp", "Tcp", "InSegs"): ("tcp_in_segs", "segments received"),
    ("snmp", "Tcp", "OutSegs"): ("tcp_out_segs", "segments sent"),
    ("snmp", "Tcp", "RetransSegs"): ("tcp_retrans", "segments sent again"),
    ("snmp", "Tcp", "InErrs"): ("tcp_in_errors", "damaged segments received"),
    ("netstat", "TcpExt", "TCPTimeouts"): ("tcp_timeouts", "retransmission timeouts"),
    ("netstat", "TcpExt", "ListenDrops"): ("tcp_listen_drops", "connections dropped for a full listen queue"),
    ("netstat", "TcpExt", "TCPBacklogDrop"): ("tcp_backlog_drop", "segments dropped for a full backlog"),
    ("netstat", "TcpExt", "TCPOFOQueue"): ("tcp_ofo_queue", "segments that came out of order"),
    ("netstat", "TcpExt", "TCPFastRetrans"): ("tcp_fast_retrans", "fast retransmissions"),
    ("snmp", "Udp", "InErrors"): ("udp_in_errors", "datagrams that could not be delivered"),
    ("snmp", "Udp", "RcvbufErrors"): ("udp_rcvbuf_errors", "datagrams dropped for a full socket buffer"),
}

METRICS = tuple(
    Metric(
        name=f"network.{name}",
        subsystem=Subsystem.NETWORK,
        unit="1",
        kind=Kind.COUNTER,
        source=f"/proc/net/{file}",
        meaning=meaning,
    )
    for (file, _, _), (name, meaning) in _COUNTERS.items()
)

_METRIC_OF = {
    (f"{protocol}:".encode("ascii"), counter.encode("ascii")): f"network.{name}"
    for (_, protocol, counter), (name, _) in _COUNTERS.items()
}


def _parse(text: Text) -> Iterator[Reading]:
    return parse_net_snmp(text, _METRIC_OF)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    return tuple(Feed(path=net_file(surroundings.root, name), parser=_parse) for name in ("snmp", "netstat"))


SOURCE = Source(name="net_snmp", pace=MEDIUM, metrics=METRICS, feeds=_feeds)
