"""Traffic and faults of RDMA ports, which bypass the kernel's own counters: ``/sys/class/infiniband``.

Every file is its own value: on some firmware a single one answers EINVAL, or reads ``N/A (no PMA)``, and the others
stand (traps 26, 27). Data is counted in words of four bytes. Each read is a command to the adapter, so they are read
seldom. A port that has a network interface (RoCE, IP over InfiniBand) carries its name, too.

Source: Documentation/ABI/stable/sysfs-class-infiniband; vendors' lists of hw_counters.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from unveil.host.root import HostRoot

MOST_PORTS = 16

_FOLDER = "sys/class/infiniband"
_WORD = 4.0

# File → metric below network., unit, scale, what it is. Several files of one metric are other vendors' names for it.
_FILES = {
    "counters/port_rcv_data": ("rdma_rx_bytes", "bytes", _WORD, "bytes received"),
    "counters/port_xmit_data": ("rdma_tx_bytes", "bytes", _WORD, "bytes sent"),
    "counters/port_rcv_packets": ("rdma_rx_packets", "1", 1.0, "packets received"),
    "counters/port_xmit_packets": ("rdma_tx_packets", "1", 1.0, "packets sent"),
    "counters/port_xmit_wait": ("rdma_tx_wait", "1", 1.0, "ticks in which a packet waited for credit of the other end"),
    "counters/port_xmit_discards": ("rdma_tx_discards", "1", 1.0, "packets dropped that should have been sent"),
    "counters/port_rcv_errors": ("rdma_rx_errors", "1", 1.0, "packets received in error"),
    "counters/symbol_error": ("rdma_symbol_errors", "1", 1.0, "symbols damaged on the wire"),
    "counters/link_downed": ("rdma_link_downed", "1", 1.0, "times the link went down"),
    "counters/link_error_recovery": ("rdma_link_recoveries", "1", 1.0, "times the link had to recover"),
    "counters/local_link_integrity_errors": ("rdma_link_errors", "1", 1.0, "times errors of the wire passed the limit"),
    "counters/excessive_buffer_overrun_errors": ("rdma_buffer_overruns", "1", 1.0, "times a buffer kept overrunning"),
    "hw_counters/out_of_sequence": ("rdma_out_of_sequence", "1", 1.0, "packets that came out of sequence"),
    "hw_counters/packet_seq_err": ("rdma_nak_sequence", "1", 1.0, "packets that the other end missed"),
    "hw_counters/local_ack_timeout_err": ("rdma_ack_timeouts", "1", 1.0, "acknowledgements that never came"),
    "hw_counters/rnr_nak_retry_err": ("rdma_not_ready", "1", 1.0, "sends given up as the receiver was never ready"),
    "hw_counters/out_of_buffer": ("rdma_out_of_buffer", "1", 1.0, "packets dropped for want of a receive request"),
    "hw_counters/np_cnp_sent": ("rdma_congestion_told", "1", 1.0, "notices of congestion sent"),
    "hw_counters/rp_cnp_handled": ("rdma_congestion_heard", "1", 1.0, "notices of congestion that slowed sending"),
    "hw_counters/np_ecn_marked_roce_packets": ("rdma_congestion_marks", "1", 1.0, "packets with a mark of congestion"),
    "hw_counters/roce_adp_retrans": ("rdma_adaptive_retrans", "1", 1.0, "packets sent again by the adapter itself"),
}

METRICS = tuple(
    declare(
        f"network.{name}",
        Kind.COUNTER,
        unit,
        f"{meaning}, over RDMA",
        labels=("port", "nic"),
        source=f"/{_FOLDER}/*/ports/*/{file}",
    )
    for file, (name, unit, _, meaning) in _FILES.items()
)


def _labels(root: HostRoot, adapter: str, port: str) -> tuple[tuple[str, str], ...]:
    """Return the labels of a port, the name of its interface among them where there is just one."""
    nics = root.names(f"{_FOLDER}/{adapter}/device/net")
    named = (("port", f"{adapter}/{port}"),)
    return (*named, ("nic", nics[0])) if len(nics) == 1 else named


def _ports(root: HostRoot) -> list[tuple[str, str]]:
    found = []
    for adapter in root.names(_FOLDER):
        found += [(adapter, port) for port in root.names(f"{_FOLDER}/{adapter}/ports") if port.isdecimal()]
    return found[:MOST_PORTS]


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    feeds = []
    for adapter, port in _ports(root):
        folder, labels = f"{_FOLDER}/{adapter}/ports/{port}", _labels(root, adapter, port)
        for file, (name, _, scale, _) in _FILES.items():
            if root.exists(f"{folder}/{file}"):
                parser = partial(parse_number, metric=f"network.{name}", labels=labels, scale=scale)
                identity = " ".join(value for _, value in labels)  # its interface may be renamed
                feeds.append(Feed(path=f"{folder}/{file}", parser=parser, kept=False, identity=identity))
    if not feeds:
        raise SourceAbsentError("this host has no RDMA adapter")
    return tuple(feeds)


SOURCE = Source(name="rdma", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
