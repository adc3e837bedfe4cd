"""What stands behind a NIC, disk or GPU in sysfs: its PCI function, its node, its interrupts.

A virtio NIC is a child of the PCI function that has the node and the interrupts, a sub-function of an smart NIC hangs
below its parent, a USB NIC below its controller: so everything is looked for from the device upwards.

Source: Documentation/ABI/testing/sysfs-bus-pci, Documentation/PCI/sysfs-pci.rst.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.cpulist import parse_cpulist
from unveil.host.facts.sheet import number, why

if TYPE_CHECKING:
    from unveil.host.facts.sheet import FactSheet

# Domains have up to eight digits: NVML always writes eight, hosts with VMD or hyper-v number beyond four.
_PCI = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])")
_IRQ = re.compile(r"[0-9]{1,9}")

UNKNOWN_NODE = "the platform does not say which node it is on (numa_node is -1)"


def pci_address(text: str) -> str | None:
    """Return a PCI address as sysfs writes it, whoever wrote it: ``00000000:19:00.0`` → ``0000:19:00.0``."""
    parts = _PCI.fullmatch(text.strip())
    if parts is None:
        return None
    domain, bus, device, function = (int(part, 16) for part in parts.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A place in the tree of devices.

    Attributes:
        path: folder of the device, relative to the root: ``sys/devices/pci0000:00/0000:00:03.0/virtio2``.
        pci_path: folder of the PCI function that it is or that it hangs below; None for another bus.
        node: NUMA node, None when unknown, with *reason*.
        local_cpus: CPUs that the platform calls local, None when it does not tell.
    """

    path: str
    pci_path: str | None
    node: int | None
    reason: str
    local_cpus: frozenset[int] | None

    @property
    def pci(self) -> str | None:
        """Return the address of the PCI function."""
        return None if self.pci_path is None else pci_address(self.pci_path.rpartition("/")[2])


def find_device(sheet: FactSheet, path: str) -> Device:
    """Look at a device, from its folder upwards."""
    node, reason, local = None, "no device above it tells a node", None
    for folder in _upwards(path):
        text = sheet.text(f"{folder}/numa_node")
        if text is None:
            continue
        try:
            node = int(number(text))
            reason = "" if node >= 0 else UNKNOWN_NODE
        except ValueError:
            reason = f"/{folder}/numa_node reads {text[:20]!r}"
        local = _local_cpus(sheet, folder)
        break
    known = node is not None and node >= 0
    pci = next((folder for folder in _upwards(path) if pci_address(folder.rpartition("/")[2])), None)
    return Device(path=path, pci_path=pci, node=node if known else None, reason=reason, local_cpus=local)


def _upwards(path: str) -> tuple[str, ...]:
    """Return a device's folder and those above it, up to its bus."""
    parts = path.split("/")
    return tuple("/".join(parts[:length]) for length in range(len(parts), 2, -1))


def _local_cpus(sheet: FactSheet, folder: str) -> frozenset[int] | None:
    text = sheet.text(f"{folder}/local_cpulist")
    try:
        return None if text is None else parse_cpulist(text)
    except ValueError:
        return None


def device_irqs(sheet: FactSheet, pci_path: str | None) -> tuple[tuple[int, ...], str]:
    """Return the interrupts of a PCI function, ascending, and why there are none.

    Names of interrupts say nothing reliable about their device (``mlx5_comp0@pci:0000:19:00.0`` has no interface in
    it), so they are taken from the device: its MSI vectors or else its one line.
    """
    if pci_path is None:
        return (), "there is no PCI function behind it"
    try:
        vectors = sheet.root.list(f"{pci_path}/msi_irqs")
    except FileNotFoundError:
        vectors = ()
    except OSError as error:
        return (), why(error, f"{pci_path}/msi_irqs")
    if not vectors:
        line = sheet.text(f"{pci_path}/irq") or "0"
        vectors = (line,) if line != "0" else ()
    irqs = tuple(sorted(int(name) for name in vectors if _IRQ.fullmatch(name)))
    return irqs, "" if irqs else "the PCI function has no interrupt"


def driver_of(sheet: FactSheet, *folders: str | None) -> str | None:
    """Return the name of the driver bound to the first of the folders that has one."""
    for folder in folders:
        if folder is None:
            continue
        try:
            return sheet.root.readlink(f"{folder}/driver").rpartition("/")[2]
        except OSError:
            continue
    return None
