"""Disks: whole ones, with the settings of their queues. Partitions, loop and RAM disks are left out.

Source: Documentation/ABI/stable/sysfs-block, Documentation/block/queue-sysfs.rst.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.facts.devices import Device, device_irqs, find_device
from unveil.host.facts.sheet import chosen, number
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from unveil.host.facts.sheet import FactSheet

_BLOCK = "sys/block"
_LEFT_OUT = ("loop", "ram", "fd", "sr")
MAX_DISKS = 256
_SECTOR = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk and the device behind it, None for a stacked one (dm, md, zram)."""

    entity: Entity
    folder: str
    device: Device | None
    irqs: tuple[int, ...]


def disk_names(sheet: FactSheet) -> tuple[str, ...]:
    """Return the disks as sysfs names them."""
    return tuple(name for name in sheet.names(_BLOCK) if not name.startswith(_LEFT_OUT))[:MAX_DISKS]


def find_disks(sheet: FactSheet, names: tuple[str, ...]) -> tuple[Disk, ...]:
    """Find each disk's device, node and interrupts, and tell what does not change."""
    return tuple(_find_disk(sheet, name) for name in names)


def _find_disk(sheet: FactSheet, name: str) -> Disk:
    # sysfs cannot have a slash in a name and writes "!"; /proc/diskstats, which names the channels, has the slash.
    entity = Entity(EntityKind.DISK, name.replace("!", "/"))
    device = _device(sheet, name)
    if device is None:
        sheet.miss("storage.node", "it is stacked on other devices or in memory", entity)
    elif device.node is None:
        sheet.miss("storage.node", device.reason, entity)
    else:
        sheet.tell("storage.node", float(device.node), entity)
    folder = f"{_BLOCK}/{name}"
    sheet.read("storage.rotational", f"{folder}/queue/rotational", lambda text: number(text) != 0, entity)
    sheet.read("storage.size", f"{folder}/size", lambda text: number(text) * _SECTOR, entity)
    pci = device.pci if device is not None else None
    if pci is None:
        sheet.miss("storage.pci", "there is no PCI function behind it", entity)
    else:
        sheet.tell("storage.pci", pci, entity)
    queues = [queue for queue in sheet.names(f"{folder}/mq") if queue.isdecimal()]
    if queues:
        sheet.tell("storage.hardware_queues", float(len(queues)), entity)
    else:
        sheet.miss("storage.hardware_queues", "the kernel lists no queue of the hardware", entity)
    irqs = device_irqs(sheet, device.pci_path)[0] if device is not None else ()
    return Disk(entity=entity, folder=folder, device=device, irqs=irqs)


def _device(sheet: FactSheet, name: str) -> Device | None:
    try:
        path = sheet.root.resolve(f"{_BLOCK}/{name}")
    except OSError:
        return None
    parent = path.rpartition("/")[0]
    if "/virtual/" in path or not path.startswith("sys/devices/"):
        return None
    return find_device(sheet, parent.removesuffix("/block"))


def read_disks(sheet: FactSheet, disks: tuple[Disk, ...]) -> None:
    """Read the settings of each disk's queue."""
    for disk in disks:
        queue = f"{disk.folder}/queue"
        for name, file, parse in (
            ("storage.scheduler", "scheduler", chosen),
            ("storage.read_ahead", "read_ahead_kb", number),
            ("storage.nr_requests", "nr_requests", number),
            ("storage.wbt_latency", "wbt_lat_usec", number),
            ("storage.merging", "nomerges", number),
            ("storage.completion_affinity", "rq_affinity", number),
            ("storage.largest_request", "max_sectors_kb", number),
        ):
            path = f"{queue}/{file}"
            sheet.read(name, path, parse, disk.entity, setting=f"file:/{path}")
        sheet.read("storage.write_cache", f"{queue}/write_cache", str, disk.entity)  # no setting: data depends on it
