"""What goes wrong below a NIC's packets: links lost, packets missed by the ring, damaged on the wire.

Only files that no lock of the network's configuration guards are read (``speed`` and ``duplex`` are, and are facts);
only of interfaces with a device, as containers bring hundreds without.

Source: Documentation/ABI/testing/sysfs-class-net and sysfs-class-net-statistics.
"""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

MOST_NICS = 32

_NET = "sys/class/net"
_FILES = {
    "carrier_changes": ("carrier_changes", "times the link came or went"),
    "statistics/rx_missed_errors": ("rx_missed", "packets lost as the receive ring was full"),
    "statistics/rx_crc_errors": ("rx_crc_errors", "packets received that were damaged on the wire"),
    "statistics/rx_over_errors": ("rx_overruns", "packets lost as the NIC's own buffer was full"),
    "statistics/tx_carrier_errors": ("tx_carrier_errors", "packets not sent for want of a link"),
}

METRICS = tuple(
    declare(f"network.{name}", Kind.COUNTER, "1", meaning, labels=("nic",), source=f"/{_NET}/*/{file}")
    for file, (name, meaning) in _FILES.items()
)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    names = root.names(_NET)
    nics = [nic for nic in names if root.exists(f"{_NET}/{nic}/device")]
    if len(nics) > MOST_NICS:  # virtual functions must not push physical ones out
        nics.sort(key=lambda nic: root.exists(f"{_NET}/{nic}/device/physfn"))
    if not nics:
        raise SourceAbsentError("no interface has a device of its own")
    feeds = []
    for nic in nics[:MOST_NICS]:
        try:
            index = root.read(f"{_NET}/{nic}/ifindex").decode("ascii", "replace").strip()
        except OSError:
            continue
        for file, (name, _) in _FILES.items():
            parser = partial(parse_number, metric=f"network.{name}", labels=(("nic", nic),), identity=index)
            feeds.append(Feed(path=f"{_NET}/{nic}/{file}", parser=parser, identity=index, kept=False))
    return tuple(feeds)


SOURCE = Source(name="nic_faults", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
