"""How received packets are spread over CPUs by the kernel (RPS), and what a mask for that would be.

Source: Documentation/networking/scaling.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    return int(text.replace(",", ""), 16).bit_count()


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
