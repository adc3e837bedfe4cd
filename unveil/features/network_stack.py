"""The network below and beside the packets: input queues, sockets, tracked connections, faults of NICs, RDMA."""

from __future__ import annotations

from unveil.features.families import gauges, plain, ratio
from unveil.features.feature import Channels, Feature, Formula, Stat, Trouble, feature
from unveil.records.entity import EntityKind

_RATE = (Stat.RATE,)
_EITHER = Trouble.EITHER
_NIC = (EntityKind.NIC,)
_EVENTS, _SUBSYSTEM = "1/s", "network"

_FAULTS = {
    "carrier_changes": "times a link came or went",
    "rx_missed": "packets lost as the receive ring was full",
}
_FAULTS_BY_THE_WAY = {
    "rx_crc_errors": "packets received that were damaged on the wire",
    "rx_overruns": "packets lost as the NIC's own buffer was full",
    "tx_carrier_errors": "packets not sent for want of a link",
}
_RDMA = {
    "tx_wait": "ticks in which a packet waited for credit of the other end",
    "out_of_sequence": "packets that came out of sequence",
    "congestion_heard": "notices of congestion that slowed sending",
}
_RDMA_BYTES = {"rx_bytes": "bytes received", "tx_bytes": "bytes sent"}
_RDMA_BY_THE_WAY = {
    "rx_packets": "packets received",
    "tx_packets": "packets sent",
    "tx_discards": "packets dropped that should have been sent",
    "rx_errors": "packets received in error",
    "symbol_errors": "symbols damaged on the wire",
    "link_downed": "times a link went down",
    "link_recoveries": "times a link had to recover",
    "link_errors": "times errors of the wire passed the limit",
    "buffer_overruns": "times a buffer kept overrunning",
    "nak_sequence": "packets that the other end missed",
    "ack_timeouts": "acknowledgements that never came",
    "not_ready": "sends given up as the receiver was never ready",
    "out_of_buffer": "packets dropped for want of a receive request",
    "congestion_told": "notices of congestion sent",
    "congestion_marks": "packets with a mark of congestion",
    "adaptive_retrans": "packets sent again by the adapter itself",
}


def _rdma(name: str, meaning: str, *, nic: bool, trouble: Trouble = Trouble.UP, detect: bool | None = None) -> Feature:
    """Return the rate of an RDMA counter, over all ports, or over those of each NIC."""
    over = _NIC if nic else ("port",)
    channels = Channels(metric=f"network.rdma_{name}", stat=Stat.RATE, over=over, loose=True)
    each = EntityKind.NIC if nic else EntityKind.HOST
    whole = "" if nic else "_total"
    return feature(
        f"network.rdma_{name}{whole}.rate",
        f"{meaning}, over RDMA",
        Formula(numerator=(channels,), each=each),
        unit="bytes/s" if name.endswith("_bytes") else "1/s",
        trouble=trouble,
        detect=detect,
    )


HOST_STACK: tuple[Feature, ...] = (
    *plain(
        _SUBSYSTEM,
        _RATE,
        _EVENTS,
        {
            "softnet_dropped": "packets dropped as the input queue of a CPU was full",
            "softnet_squeezed": "softirq rounds that ended with packets left over",
            "conntrack_dropped": "packets dropped as the table of connections was full",
        },
    ),
    *plain(
        _SUBSYSTEM,
        _RATE,
        _EVENTS,
        {
            "softnet_processed": "packets taken in by all CPUs",
            "softnet_rps": "times a CPU was woken to take another one's packets",
            "softnet_flow_limit": "packets dropped as their flow had more than its part",
            "conntrack_evicted": "connections forgotten early to make room",
            "conntrack_insert_failed": "connections that could not be entered into the table",
            "conntrack_restarts": "searches in the table of connections that began anew",
        },
        trouble=_EITHER,
        detect=False,
    ),
    *plain(_SUBSYSTEM, _RATE, _EVENTS, _FAULTS, name="{}_total", over=_NIC),
    *plain(_SUBSYSTEM, _RATE, _EVENTS, _FAULTS_BY_THE_WAY, name="{}_total", over=_NIC, detect=False),
    *(_rdma(name, meaning, nic=False, trouble=_EITHER) for name, meaning in _RDMA_BYTES.items()),
    *(_rdma(name, meaning, nic=False) for name, meaning in _RDMA.items()),
    *(_rdma(name, meaning, nic=False, detect=False) for name, meaning in _RDMA_BY_THE_WAY.items()),
    *plain(
        _SUBSYSTEM,
        (Stat.LAST,),
        "sockets",
        {
            "sockets": "sockets of all kinds",
            "tcp_sockets": "TCP sockets of IPv4 in use",
            "tcp_orphans": "TCP sockets that no program holds",
            "tcp_time_wait": "TCP connections that wait for late segments",
            "tcp_allocated": "TCP sockets that take memory",
            "udp_sockets": "UDP sockets of IPv4 in use",
        },
        trouble=_EITHER,
        detect=False,
    ),
    *plain(
        _SUBSYSTEM,
        (Stat.LAST,),
        "bytes",
        {
            "udp_memory": "memory of UDP's buffers",
            "fragment_memory": "memory of packets that wait for their other parts",
        },
        trouble=_EITHER,
        detect=False,
    ),
    ratio(
        "network.tcp_memory_share.last",
        "memory of TCP's buffers against what they may have",
        gauges("network", "tcp_memory", Stat.LAST),
        gauges("network", "tcp_memory_limit", Stat.LAST),
        unit="1",
        detect=False,
        log=False,
    ),
    ratio(
        "network.conntrack_share.last",
        "connections that are tracked against how many can be",
        gauges("network", "conntrack_entries", Stat.LAST),
        gauges("network", "conntrack_limit", Stat.LAST),
        unit="1",
        detect=False,
        log=False,
    ),
)

NIC_STACK: tuple[Feature, ...] = (
    *plain(_SUBSYSTEM, _RATE, _EVENTS, _FAULTS | _FAULTS_BY_THE_WAY, over=_NIC, each=EntityKind.NIC),
    *(_rdma(name, meaning, nic=True, trouble=_EITHER) for name, meaning in _RDMA_BYTES.items()),
    *(_rdma(name, meaning, nic=True) for name, meaning in _RDMA.items()),
)
