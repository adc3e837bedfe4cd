"""What TCP and UDP went through: ``/proc/net/snmp`` and ``/proc/net/netstat``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.net_snmp import parse_net_snmp
from unveil.host.source import MEDIUM, Feed, Source, Surroundings
from unveil.host.sources.net_dev import net_file
from unveil.records.metric import Kind, declare

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
    ("snmp", "Tcp", "ActiveOpens"): ("tcp_active_opens", "connections opened from here"),
    ("snmp", "Tcp", "PassiveOpens"): ("tcp_passive_opens", "connections opened from elsewhere"),
    ("snmp", "Tcp", "AttemptFails"): ("tcp_attempt_fails", "connections that were not made"),
    ("snmp", "Tcp", "EstabResets"): ("tcp_resets", "connections that were cut"),
    ("snmp", "Tcp", "OutRsts"): ("tcp_out_resets", "segments sent that cut a connection or refuse one"),
    ("netstat", "TcpExt", "ListenOverflows"): ("tcp_listen_overflows", "connections that met a full accept queue"),
    ("netstat", "TcpExt", "TCPReqQFullDrop"): ("tcp_syn_drops", "requests for connections dropped for a full queue"),
    ("netstat", "TcpExt", "TCPLostRetransmit"): ("tcp_lost_retrans", "segments sent again that were lost again"),
    ("netstat", "TcpExt", "TCPSynRetrans"): ("tcp_syn_retrans", "requests for connections sent again"),
    ("netstat", "TcpExt", "TCPRcvQDrop"): ("tcp_receive_drops", "segments dropped for a full receive queue"),
    ("netstat", "TcpExt", "TCPZeroWindowDrop"): ("tcp_window_drops", "segments dropped as the window was shut"),
    ("netstat", "TcpExt", "TCPToZeroWindowAdv"): ("tcp_window_shut", "times a receiver here shut its window"),
    ("netstat", "TcpExt", "TCPRcvCollapsed"): ("tcp_collapsed", "segments squeezed together for want of buffer"),
    ("netstat", "TcpExt", "PruneCalled"): ("tcp_pruned", "receive queues that were cleared for want of buffer"),
    ("netstat", "TcpExt", "TCPMemoryPressures"): ("tcp_memory_pressures", "times TCP's memory ran short"),
    ("netstat", "TcpExt", "TCPAbortOnMemory"): ("tcp_memory_aborts", "connections cut for want of memory"),
    ("netstat", "TcpExt", "TCPAbortOnTimeout"): ("tcp_timeout_aborts", "connections given up after too many timeouts"),
    ("netstat", "IpExt", "InCEPkts"): ("ip_congestion_marks", "packets received with a mark of congestion"),
    ("snmp", "Ip", "InDiscards"): ("ip_in_discards", "packets received and dropped for want of memory"),
    ("snmp", "Ip", "OutDiscards"): ("ip_out_discards", "packets dropped that should have been sent"),
    ("snmp", "Ip", "ReasmFails"): ("ip_reassembly_fails", "packets that could not be put together"),
    ("snmp", "Udp", "InDatagrams"): ("udp_in_datagrams", "datagrams delivered"),
    ("snmp", "Udp", "OutDatagrams"): ("udp_out_datagrams", "datagrams sent"),
    ("snmp", "Udp", "NoPorts"): ("udp_no_ports", "datagrams that nobody waited for"),
    ("snmp", "Udp", "SndbufErrors"): ("udp_sndbuf_errors", "datagrams not sent for a full socket buffer"),
    ("snmp", "Udp", "InErrors"): ("udp_in_errors", "datagrams that could not be delivered"),
    ("snmp", "Udp", "RcvbufErrors"): ("udp_rcvbuf_errors", "datagrams dropped for a full socket buffer"),
}

METRICS = tuple(
    declare(f"network.{name}", Kind.COUNTER, "1", meaning, source=f"/proc/net/{file}")
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
