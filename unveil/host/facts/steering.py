"""How the kernel hands received packets to CPUs (RPS) and CPUs to transmit queues (XPS), and masks to set for both.

Source: Documentation/networking/scaling.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.cpulist import parse_mask
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.host.facts.sheet import FactSheet

_MOST_QUEUES = 256


def cpu_mask(cpus: Iterable[int]) -> str:
    """Return CPUs as the kernel takes them in a mask: hexadecimal, in words of 32 bits with commas between."""
    mask = sum(1 << cpu for cpu in set(cpus))
    words: list[int] = []
    while mask or not words:
        words.append(mask & 0xFFFF_FFFF)
        mask >>= 32
    first, *rest = reversed(words)
    return ",".join((f"{first:x}", *(f"{word:08x}" for word in rest)))


def mask_cpus(text: str) -> int:
    """Return how many CPUs a mask of the kernel names.

    Raises:
        ValueError: the text is no mask.
    """
    return parse_mask(text).bit_count()


def dealt(cpus: Iterable[int], queues: int) -> tuple[str, ...]:
    """Return CPUs dealt out to queues, a mask for each; with fewer CPUs than queues, queues share them."""
    ordered = sorted(set(cpus))
    if not ordered:
        return ()
    if len(ordered) < queues:
        return tuple(cpu_mask((ordered[queue % len(ordered)],)) for queue in range(queues))
    return tuple(cpu_mask(ordered[queue::queues]) for queue in range(queues))


def tell_transmission(sheet: FactSheet, name: str, local: frozenset[int]) -> None:
    """Tell the transmit queues of an interface, and how many CPUs are told which of them to send through.

    The kernel has such a map only where there are several queues. Reading it takes the network's global lock.
    """
    entity, folder = Entity(EntityKind.NIC, name), f"sys/class/net/{name}/queues"
    queues = sorted(
        (queue for queue in sheet.names(folder) if queue.startswith("tx-") and queue[3:].isdecimal()),
        key=lambda queue: int(queue[3:]),
    )[:_MOST_QUEUES]
    if not queues:
        for fact in ("tx_queues", "tx_queue_names", "xps_cpus", "xps_masks"):
            sheet.miss(f"network.nic_{fact}", "the kernel lists no transmit queue", entity)
        return
    sheet.tell("network.nic_tx_queues", float(len(queues)), entity)
    sheet.tell("network.nic_tx_queue_names", tuple(queues), entity)
    if masks := dealt(local, len(queues)):
        sheet.tell("network.nic_xps_masks", masks, entity)
    else:
        sheet.miss("network.nic_xps_masks", "the CPUs next to it are not known", entity)
    told = 0
    for queue in queues:
        try:
            told |= parse_mask(sheet.text(f"{folder}/{queue}/xps_cpus") or "")
        except ValueError:
            sheet.miss("network.nic_xps_cpus", "this kernel has no map of CPUs to its queues", entity)
            return
    sheet.tell("network.nic_xps_cpus", float(told.bit_count()), entity)


def tell_steering(sheet: FactSheet, name: str, local: frozenset[int]) -> None:
    """Tell the receive queues of an interface, and over how many CPUs RPS spreads what they receive.

    A queue without RPS counts for the whole NIC: the CPU that takes its interrupt does the work.
    """
    entity, folder = Entity(EntityKind.NIC, name), f"sys/class/net/{name}/queues"
    queues = tuple(queue for queue in sheet.names(folder) if queue.startswith("rx-"))[:_MOST_QUEUES]
    if local:
        sheet.tell("network.nic_local_mask", cpu_mask(local), entity)
    else:
        sheet.miss("network.nic_local_mask", "the CPUs next to it are not known", entity)
    if not queues:
        for fact in ("network.nic_rx_queue_names", "network.nic_rps_cpus"):
            sheet.miss(fact, "the kernel lists no receive queue", entity)
        return
    sheet.tell("network.nic_rx_queue_names", queues, entity)
    spread = []
    for queue in queues:
        try:
            spread.append(mask_cpus(sheet.text(f"{folder}/{queue}/rps_cpus") or ""))
        except ValueError:
            sheet.miss("network.nic_rps_cpus", "this kernel does not steer packets", entity)
            return
    sheet.tell("network.nic_rps_cpus", float(min(spread)), entity)
