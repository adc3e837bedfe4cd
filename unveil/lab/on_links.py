"""Faults on the links between the workload's containers: slow, lossy, without offloads, all on one CPU."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.lab.changes import ImpossibleError, command
from unveil.lab.place import LINKS, NAMESPACES, SIDES, namespace, outer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.lab.place import Place
    from unveil.lab.uses import Uses

LINK_SHARE = 0.7
LEAST_TRAFFIC = 64 << 10  # bytes a second
LOST_OF_1000 = 20
OFFLOADS = {
    "tx-tcp-segmentation": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "tcp-segmentation-offload": "tso",
}
TABLE = "unveil_lab"
LEFT_ALONE = ("vsock", "ttyS", "ACPI")  # consoles and the like: no part of the work
VIRTIO, NO_WORK = Path("/sys/bus/virtio/drivers"), ("virtio_console", "virtio_rng", "vmw_vsock_virtio_transport")


@contextmanager
def slow_link(place: Place, uses: Uses) -> Iterator[None]:
    """Limit each link to a share of the traffic that it carried, in the direction that it is read."""
    if max(uses.received.values()) < LEAST_TRAFFIC:
        raise ImpossibleError("the workload sends next to nothing")
    with place.changes.scope() as changes:
        for side in SIDES:
            rate = max(int(8 * LINK_SHARE * uses.received[side]), 1_000_000)
            shape = ("root", "tbf", "rate", f"{rate}bit", "burst", "256kb", "latency", "50ms")
            undo = ("tc", "qdisc", "del", "dev", outer(side), "root")
            changes.run("tc", "qdisc", "add", "dev", outer(side), *shape, undo=undo, of=LINKS / outer(side))
        yield


@contextmanager
def packet_loss(place: Place, uses: Uses) -> Iterator[None]:
    """Drop some packets, at random, of all that the containers send."""
    if max(uses.received.values()) < LEAST_TRAFFIC:
        raise ImpossibleError("the workload sends next to nothing")
    with place.changes.scope() as changes:
        # Adding it first makes that work, too, where it is not there: killed too early, or deleted by somebody.
        gone = ("nft", f"add table netdev {TABLE}; delete table netdev {TABLE}")
        changes.run("nft", "add", "table", "netdev", TABLE, undo=gone)
        for side in SIDES:
            hook = f"{{ type filter hook ingress device {outer(side)} priority 0; }}"
            command("nft", "add", "chain", "netdev", TABLE, side, hook)
            lost = f"numgen random mod 1000 < {LOST_OF_1000} counter drop"
            command("nft", "add", "rule", "netdev", TABLE, side, *lost.split())
        yield


@contextmanager
def offloads_off(place: Place, uses: Uses) -> Iterator[None]:
    """Turn segmentation and receive offloads off at all ends; those that were off stay as they were."""
    if max(uses.received.values()) < LEAST_TRAFFIC:
        raise ImpossibleError("the workload sends next to nothing")
    with place.changes.scope() as changes:
        for side in SIDES:
            for before in ((), ("ip", "netns", "exec", namespace(side))):
                device = "eth0" if before else outer(side)
                features = json.loads(command(*before, "ethtool", "--json", "-k", device))[0]
                for long, short in OFFLOADS.items():
                    if features.get(long, {}).get("active") and not features[long].get("fixed"):
                        words = (*before, "ethtool", "-K", device, short)
                        of = NAMESPACES / namespace(side) if before else LINKS / device
                        changes.run(*words, "off", undo=(*words, "on"), of=of)
        yield


@contextmanager
def interrupts_on_one_cpu(place: Place, _uses: Uses) -> Iterator[None]:
    """Have CPU 0 take every interrupt that can be moved, and every packet of the containers."""
    with place.changes.scope() as changes:
        for side in SIDES:
            for path in sorted((LINKS / outer(side) / "queues").glob("rx-*/rps_cpus")):
                changes.write(path, "1")
            inside = ("ip", "netns", "exec", namespace(side), "sh", "-c")
            each, end = "for f in /sys/class/net/eth0/queues/rx-*/rps_cpus; do echo", "> $f; done"
            undo = (*inside, f"{each} 0 {end}")  # what a new link has
            changes.run(*inside, f"{each} 1 {end}", undo=undo, of=NAMESPACES / namespace(side))
        for path in movable_interrupts():
            try:
                changes.write(path, "1")
            except ImpossibleError:
                continue  # the kernel places this one itself
        yield


def movable_interrupts(text: str | None = None, virtio: Path = VIRTIO) -> list[Path]:
    """Return where devices' interrupts may run; of what is no part of the work, nothing.

    Args:
        text: of /proc/interrupts; the host's own when None.
        virtio: folder of the drivers of virtio devices, each with those it drives.
    """
    alone = (*LEFT_ALONE, *(f"{device.name}-" for driver in NO_WORK for device in (virtio / driver).glob("virtio*")))
    lines = (Path("/proc/interrupts").read_text() if text is None else text).splitlines()
    found = []
    for line in lines:
        number, _, rest = line.partition(":")
        if number.strip().isdigit() and not any(name in rest for name in alone):
            found.append(Path(f"/proc/irq/{number.strip()}/smp_affinity"))
    return found
