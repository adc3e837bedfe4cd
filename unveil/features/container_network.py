"""What TCP and UDP go through inside of containers, for each of them and for the host as the sum over all.

The host's own counters (``network.tcp_retrans.rate``) tell nothing of it: each network namespace counts for itself.
"""

from __future__ import annotations

from unveil.features.families import counters, plain, ratio
from unveil.features.feature import Feature, Stat, Trouble
from unveil.records.entity import EntityKind

_RATE = (Stat.RATE,)
_CGROUP = EntityKind.CGROUP
_OVER = (_CGROUP,)
_EVENTS, _SUBSYSTEM = "1/s", "network"

_WORK = {
    "cgroup_tcp_in_segs": "TCP segments received inside of containers",
    "cgroup_tcp_out_segs": "TCP segments sent inside of containers",
    "cgroup_udp_in_datagrams": "UDP datagrams delivered inside of containers",
}
_LOSSES = {
    "cgroup_tcp_retrans": "TCP segments sent again inside of containers",
    "cgroup_tcp_timeouts": "TCP retransmission timers that ran out inside of containers",
    "cgroup_tcp_fast_retrans": "TCP segments sent again before the timer ran out, inside of containers",
    "cgroup_tcp_ofo_queue": "TCP segments received out of order inside of containers",
    "cgroup_tcp_listen_drops": "connections dropped by a full accept queue inside of containers",
    "cgroup_tcp_backlog_drop": "TCP segments dropped by a full backlog inside of containers",
    "cgroup_udp_rcvbuf_errors": "UDP datagrams lost to a full receive buffer inside of containers",
}
_BY_THE_WAY = {
    "cgroup_tcp_listen_overflows": "TCP connections that met a full accept queue inside of containers",
    "cgroup_tcp_collapsed": "TCP segments squeezed together for want of buffer inside of containers",
    "cgroup_tcp_pruned": "TCP receive queues cleared for want of buffer inside of containers",
}
_SHARES = (
    ("retrans", "retrans", "out_segs", "TCP segments sent again per segment sent, inside of containers"),
    ("ofo", "ofo_queue", "in_segs", "TCP segments out of order per segment received, inside of containers"),
)


def _shares(each: EntityKind, name: str) -> tuple[Feature, ...]:
    return tuple(
        ratio(  # a share of a hundredth is much, and far below what the detectors take for a change of a share
            f"network.{name.format(f'cgroup_tcp_{share}_share')}.rate",
            meaning,
            counters("network", f"cgroup_tcp_{above}", _OVER),
            counters("network", f"cgroup_tcp_{below}", _OVER),
            each=each,
            unit="1",
            detect=False,
            log=False,
        )
        for share, above, below, meaning in _SHARES
    )


CONTAINERS_TOGETHER: tuple[Feature, ...] = (
    *plain(_SUBSYSTEM, _RATE, _EVENTS, _WORK, name="{}_total", over=_OVER, trouble=Trouble.EITHER, detect=False),
    *plain(_SUBSYSTEM, _RATE, _EVENTS, _LOSSES, name="{}_total", over=_OVER),
    *plain(_SUBSYSTEM, _RATE, _EVENTS, _BY_THE_WAY, name="{}_total", over=_OVER, detect=False),
    *_shares(EntityKind.HOST, "{}_total"),
)

EACH_CONTAINER: tuple[Feature, ...] = (
    *plain(_SUBSYSTEM, _RATE, _EVENTS, _WORK, over=_OVER, each=_CGROUP, trouble=Trouble.EITHER),
    *plain(_SUBSYSTEM, _RATE, _EVENTS, _LOSSES | _BY_THE_WAY, over=_OVER, each=_CGROUP),
    *_shares(_CGROUP, "{}"),
)
