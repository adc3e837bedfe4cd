"""What TCP and UDP went through inside of containers: the counters of network namespaces that are not the host's.

Read once for each namespace, however many cgroups share it, and added up where a cgroup has several. Only what tells
that work goes badly is taken, and what that is measured against. Losses inside of containers are seen nowhere else:
``/proc/net/snmp`` of the host counts its own connections only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.namespace_counters import Selection, parse_counters
from unveil.host.source import SLOWER, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from unveil.host.namespaces import Member, Place, Texts

# Protocol and counter → metric below network. and what it counts.
_COUNTERS = {
    ("Tcp", "InSegs"): ("cgroup_tcp_in_segs", "segments received"),
    ("Tcp", "OutSegs"): ("cgroup_tcp_out_segs", "segments sent"),
    ("Tcp", "RetransSegs"): ("cgroup_tcp_retrans", "segments sent again"),
    ("TcpExt", "TCPTimeouts"): ("cgroup_tcp_timeouts", "retransmission timeouts"),
    ("TcpExt", "TCPFastRetrans"): ("cgroup_tcp_fast_retrans", "fast retransmissions"),
    ("TcpExt", "TCPOFOQueue"): ("cgroup_tcp_ofo_queue", "segments that came out of order"),
    ("TcpExt", "ListenDrops"): ("cgroup_tcp_listen_drops", "connections dropped for a full listen queue"),
    ("TcpExt", "ListenOverflows"): ("cgroup_tcp_listen_overflows", "connections that met a full accept queue"),
    ("TcpExt", "TCPBacklogDrop"): ("cgroup_tcp_backlog_drop", "segments dropped for a full backlog"),
    ("TcpExt", "PruneCalled"): ("cgroup_tcp_pruned", "receive queues that were cleared for want of buffer"),
    ("TcpExt", "TCPRcvCollapsed"): ("cgroup_tcp_collapsed", "segments squeezed together for want of buffer"),
    ("Udp", "InDatagrams"): ("cgroup_udp_in_datagrams", "datagrams delivered"),
    ("Udp", "RcvbufErrors"): ("cgroup_udp_rcvbuf_errors", "datagrams dropped for a full socket buffer"),
}
_FILE_OF = {"Tcp": "snmp", "Udp": "snmp", "TcpExt": "netstat"}
_CORE_SHARE = 0.0006  # at five seconds three milliseconds: some dozen busy containers; where there are more, every ten
_READ_BYTES = 6000  # what the kernel writes down for one namespace, of which hardly anything is kept

METRICS = tuple(
    declare(
        f"network.{name}",
        Kind.COUNTER,
        "1",
        f"{meaning}, in its own network namespaces",
        source=f"/proc/PID/net/{_FILE_OF[protocol]}",
        labels=("cgroup",),
    )
    for (protocol, _), (name, meaning) in _COUNTERS.items()
)

_WANTED = Selection(
    {
        f"{protocol}:".encode("ascii"): {
            counter.encode("ascii"): f"network.{name}".encode("ascii")
            for (one, counter), (name, _) in _COUNTERS.items()
            if one == protocol
        }
        for protocol in _FILE_OF
    }
)


class _Counters:
    """What is told of a cgroup: made of its namespaces' texts where these are others than the last time."""

    __slots__ = ("_member", "_seen", "_told")

    def __init__(self, member: Member) -> None:
        self._member = member
        self._seen: tuple[object, ...] = ()
        self._told = b""

    def __call__(self) -> bytes | None:
        """Return its counters in the form that ``parse_counters`` takes, and whose they are; None where it has none."""
        texts = self._member.read()
        if not texts:
            return None
        seen = (self._member.places, texts)
        if seen != self._seen:
            self._seen, self._told = seen, _told(self._member.places, texts)
        return self._told


def _told(places: tuple[Place, ...], texts: tuple[Texts, ...]) -> bytes:
    summed: dict[bytes, int] = {}
    for each in texts:
        for text in each:
            for name, value in _WANTED.of(text):
                summed[name] = summed.get(name, 0) + value
    whose = b" ".join(b"%d" % place.whose[0] for place in places)
    return b"of %b\n%b" % (whose, b"".join(b"%b %d\n" % each for each in summed.items()))


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    namespaces = surroundings.namespaces
    members = namespaces.look()
    if members is None:
        raise SourceAbsentError("which network namespace is the host's is not known")
    if not members and namespaces.hidden:
        raise SourceAbsentError(
            f"the processes of {namespaces.hidden} containers are hidden (hidepid, or another PID namespace)"
        )
    if not members:
        raise SourceAbsentError("no cgroup that is followed has a network namespace of its own")
    return tuple(
        Feed(
            path=f"{member.folders[0]}/cgroup.procs",
            parser=partial(parse_counters, cgroup=member.key),
            kept=False,
            identity=member.key,
            own_way=_Counters(member),
            beside=_READ_BYTES * len(member.places),
        )
        for member in members
    )


SOURCE = Source(
    name="cgroup_network", pace=SLOWER, metrics=METRICS, feeds=_feeds, changing=True, core_share=_CORE_SHARE
)
