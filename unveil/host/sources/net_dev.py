"""Traffic of each network interface: ``/proc/net/dev``.

One file for all of them: the single files in ``/sys/class/net/*/statistics`` hold the same and cost many times more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.net_dev import nic_names, parse_net_dev
from unveil.host.source import FAST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Reading, Text
    from unveil.host.root import HostRoot

_DIRECTIONS = {"rx": "received", "tx": "sent"}
_COUNTS = {
    "bytes": ("bytes", "bytes"),
    "packets": ("1", "packets"),
    "errors": ("1", "damaged packets"),
    "dropped": ("1", "packets dropped for want of room"),
}

METRICS = tuple(
    declare(
        f"network.{direction}_{count}", Kind.COUNTER, unit, f"{what}, {word}", labels=("nic",), source="/proc/net/dev"
    )
    for direction, word in _DIRECTIONS.items()
    for count, (unit, what) in _COUNTS.items()
)


def net_file(root: HostRoot, name: str) -> str:
    """Return the path of a file in ``/proc/net``, which shows the network namespace of whoever reads it.

    On another root than ``/`` the host's own is that of its first process.
    """
    first = f"proc/1/net/{name}"
    return first if not root.live and root.exists(first) else f"proc/net/{name}"


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root

    def index_of(nic: str) -> str:
        try:
            return root.read(f"sys/class/net/{nic}/ifindex").decode("ascii", "replace").strip()
        except (OSError, ValueError):
            return ""

    def parse(text: Text) -> Iterator[Reading]:
        return parse_net_dev(text, index_of)

    return (Feed(path=net_file(root, "dev"), parser=parse, whole=False, names=nic_names),)


SOURCE = Source(name="net_dev", pace=FAST, metrics=METRICS, feeds=_feeds)
