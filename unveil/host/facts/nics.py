"""NICs: which are devices of their own, where they are attached, and where their interrupts go.

Nothing that takes the network's global lock is read but once per device: ``speed`` (and, where a device has several
interfaces, ``phys_port_name``) make the reader wait for every configuration change on the host.

Source: Documentation/ABI/testing/sysfs-class-net, Documentation/networking/scaling.rst, switchdev.rst.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from posixpath import normpath
from typing import TYPE_CHECKING

from unveil.host.cpulist import format_cpulist
from unveil.host.facts.devices import Device, device_irqs, driver_of, find_device
from unveil.host.facts.ethtool import tell_driver, tell_moderation, tell_offloads
from unveil.host.facts.irqs import dealt, immovable, read_irqs, remote_share
from unveil.host.facts.pcie_path import translation
from unveil.host.facts.sheet import FactSheet, number
from unveil.host.facts.steering import tell_steering, tell_transmission
from unveil.host.root import HostRoot
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from unveil.host.facts.irqs import Irq
    from unveil.host.facts.topology import Topology

_NET = "sys/class/net"
MAX_NICS = 256  # containers bring hundreds of veths; devices come first

_INTERRUPTS = (
    "network.nic_irqs",
    "network.nic_irqs_movable",
    "network.nic_irq_places",
    "network.nic_irq_managed",
    "network.nic_irq_remote_share",
    "network.nic_irq_cpus",
)

# What mlx5, bnxt, ice and nfp call the port that stands for a virtual or sub-function: c1pf0vf3, pf0sf88.
_REPRESENTOR = re.compile(r"(?:c\d+)?pf\d+(?:vf|sf)\d+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """A NIC with a device behind it.

    Attributes:
        local: online CPUs next to it, empty when unknown, with *reason*.
        irqs: interrupts of its PCI function, in use or not, empty with *irqs_reason*.
        physical: a leaf: not stacked on, or standing for, another interface, whose traffic would count twice.
    """

    entity: Entity
    device: Device
    local: frozenset[int]
    reason: str
    irqs: tuple[int, ...]
    irqs_reason: str
    physical: bool


def nic_devices(sheet: FactSheet) -> dict[str, str | None]:
    """Return each interface with the folder of its device, None for a virtual one; devices first, at most MAX_NICS."""
    found: dict[str, str | None] = {}
    for name in sheet.names(_NET):
        try:
            path = normpath(f"{_NET}/{sheet.looks.see(HostRoot.readlink, f'{_NET}/{name}')}")
        except OSError:  # not a link: an interface of an old kernel, or a file such as bonding_masters
            if sheet.names(f"{_NET}/{name}"):
                found[name] = None
            continue
        own, net, _ = path.rpartition("/net/")
        found[name] = own if net and path.startswith("sys/devices/") and "/virtual/" not in path else None
    ordered = sorted(found.items(), key=lambda item: (item[1] is None, item[0]))
    return dict(ordered[:MAX_NICS])


def tell_virtual(sheet: FactSheet, names: Iterable[str]) -> None:
    """Tell of interfaces without a device that they have neither node nor interrupts, and what can be set of them."""
    for name in names:
        entity = Entity(EntityKind.NIC, name)
        sheet.tell("network.nic_physical", False, entity)
        _tell_queue_length(sheet, entity)
        _tell_legs(sheet, name, entity)
        _tell_offloads(sheet, entity)
        for fact in (
            "network.nic_node",
            "network.nic_local_cpus",
            "network.nic_irqs",
            "network.nic_irq_remote_share",
            "network.nic_driver",
        ):
            sheet.miss(fact, "a virtual interface has no device", entity)


def _tell_legs(sheet: FactSheet, name: str, entity: Entity) -> None:
    legs = sheet.text(f"{_NET}/{name}/bonding/slaves")
    if legs is None:
        sheet.miss("network.nic_legs_down", "it is no bond", entity)
        return
    states = [sheet.text(f"{_NET}/{leg}/operstate") for leg in legs.split()]
    sheet.tell("network.nic_legs_down", float(sum(state != "up" for state in states)), entity)


def tell_settings(sheet: FactSheet, nic: Nic) -> None:
    """Tell what a setting changes: lengths, how packets are steered, offloads, moderation and XPS.

    Of the last three what is on is left alone until the next full reading, as asking takes the network's global lock.
    """
    name = nic.entity.key
    mtu = f"{_NET}/{name}/mtu"
    sheet.read("network.nic_mtu", mtu, number, nic.entity, setting=f"file:/{mtu}")
    _tell_queue_length(sheet, nic.entity)
    tell_steering(sheet, name, nic.local)
    _tell_offloads(sheet, nic.entity)
    asked = FactSheet(sheet.root)
    tell_moderation(asked, name)
    sheet.take(asked, watch=asked.value("network.nic_rx_usecs", nic.entity) == 0)
    asked = FactSheet(sheet.root)
    tell_transmission(asked, name, nic.local)
    sheet.take(asked, watch=asked.value("network.nic_xps_cpus", nic.entity) == 0)


def _tell_queue_length(sheet: FactSheet, entity: Entity) -> None:
    length = f"{_NET}/{entity.key}/tx_queue_len"
    sheet.read("network.nic_tx_queue_length", length, number, entity, setting=f"file:/{length}")


def _tell_offloads(sheet: FactSheet, entity: Entity) -> None:
    asked = FactSheet(sheet.root)
    tell_offloads(asked, entity.key)
    sheet.take(asked, watch=not _offloads_are_on(asked, entity))


def _offloads_are_on(sheet: FactSheet, entity: Entity) -> bool:
    return all(sheet.value(fact, entity) is True for fact in ("network.nic_gro", "network.nic_tso"))


def find_nics(sheet: FactSheet, devices: Mapping[str, str], topology: Topology) -> tuple[Nic, ...]:
    """Find each NIC's node, CPUs and interrupts, and tell what does not change while the device is there."""
    nics = tuple(_find_nic(sheet, name, path, topology) for name, path in devices.items())
    speeds = [sheet.value("network.nic_speed", nic.entity) for nic in nics if nic.physical]
    if known := [speed for speed in speeds if isinstance(speed, float)]:
        sheet.tell("network.fastest_link", max(known))
    else:
        sheet.miss("network.fastest_link", "no NIC tells the speed of its link")
    return nics


def _find_nic(sheet: FactSheet, name: str, path: str, topology: Topology) -> Nic:
    entity = Entity(EntityKind.NIC, name)
    device = find_device(sheet, path)
    local, reason = _local_cpus(device, topology)
    irqs, irqs_reason = device_irqs(sheet, device.pci_path)
    own = sheet.names(f"{_NET}/{name}")
    physical = _is_physical(sheet, name, path, own)
    nic = Nic(
        entity=entity,
        device=device,
        local=local,
        reason=reason,
        irqs=irqs,
        irqs_reason=irqs_reason,
        physical=physical,
    )
    _tell_identity(sheet, nic, name)
    return nic


def _is_physical(sheet: FactSheet, name: str, path: str, own: tuple[str, ...]) -> bool:
    if any(entry.startswith("lower_") for entry in own) or "bonding" in own or "bridge" in own:
        return False  # e.g. hyper-v's netvsc above its own virtual function
    siblings = sheet.names(f"{path}/net")
    return len(siblings) < 2 or not _REPRESENTOR.fullmatch(sheet.text(f"{_NET}/{name}/phys_port_name") or "")


def _local_cpus(device: Device, topology: Topology) -> tuple[frozenset[int], str]:
    """Return the online CPUs next to a device, and why there are none.

    Without a node the kernel calls every CPU local, which says nothing, unless there is but one node with CPUs.
    """
    if device.node is None:
        with_cpus = [cpus for cpus in topology.cpus.values() if cpus]
        return (with_cpus[0], "") if len(with_cpus) == 1 else (frozenset(), device.reason)
    local = (device.local_cpus or frozenset()) & topology.online or topology.cpus.get(device.node, frozenset())
    if local:
        return local, ""
    nearest = topology.nearest_cpu_node(device.node)
    if nearest is None:
        return frozenset(), f"node {device.node} has no CPU and tells no distance to one that has"
    return topology.cpus[nearest], ""


def _tell_identity(sheet: FactSheet, nic: Nic, name: str) -> None:
    entity, device, folder = nic.entity, nic.device, f"{_NET}/{name}"
    sheet.tell("network.nic_physical", nic.physical, entity)
    if device.node is None:
        sheet.miss("network.nic_node", device.reason, entity)
    else:
        sheet.tell("network.nic_node", float(device.node), entity)
    if nic.local:
        sheet.tell("network.nic_local_cpus", format_cpulist(nic.local), entity)
    else:
        sheet.miss("network.nic_local_cpus", nic.reason, entity)
    driver = driver_of(sheet, device.path, device.pci_path)
    if driver:
        sheet.tell("network.nic_driver", driver, entity)
    else:
        sheet.miss("network.nic_driver", "no driver is bound to the device", entity)
    if device.pci and device.pci_path:
        sheet.tell("network.nic_pci", device.pci, entity)
        if kind := translation(sheet, device.pci_path):
            sheet.tell("network.nic_iommu", kind, entity)
        else:
            sheet.miss("network.nic_iommu", "the kernel does not tell the type of its IOMMU group", entity)
        for fact, file in (("network.nic_pcie_width", "current"), ("network.nic_pcie_width_max", "max")):
            sheet.read(fact, f"{device.pci_path}/{file}_link_width", _lanes, entity)
    else:
        for fact in ("network.nic_pci", "network.nic_iommu", "network.nic_pcie_width", "network.nic_pcie_width_max"):
            sheet.miss(fact, "there is no PCI function behind it", entity)
    queues = [queue for queue in sheet.names(f"{folder}/queues") if queue.startswith("rx-")]
    if queues:
        sheet.tell("network.nic_rx_queues", float(len(queues)), entity)
    else:
        sheet.miss("network.nic_rx_queues", "the kernel lists no receive queue", entity)
    _read_speed(sheet, folder, entity)
    tell_driver(sheet, name)
    now, fastest = (sheet.value(f"network.nic_speed{which}", entity) for which in ("", "_max"))
    if isinstance(now, float) and isinstance(fastest, float):
        sheet.tell("network.nic_speed_share", min(1.0, now / fastest), entity)
    else:
        sheet.miss("network.nic_speed_share", "the speed or the fastest possible one is not told", entity)


def _read_speed(sheet: FactSheet, folder: str, entity: Entity) -> None:
    state = sheet.read("network.nic_state", f"{folder}/operstate", str, entity)
    if state == "down":
        sheet.miss("network.nic_speed", "the link is down", entity)
        sheet.miss("network.nic_duplex", "the link is down", entity)
    else:
        sheet.read("network.nic_speed", f"{folder}/speed", _speed, entity)
        sheet.read("network.nic_duplex", f"{folder}/duplex", str, entity)


def _lanes(text: str) -> float:
    lanes = number(text)
    if not 0 < lanes <= 32:  # 0 and 255 stand for unknown
        raise ValueError(text)
    return lanes


def _speed(text: str) -> float:
    speed = number(text)
    if not 0 < speed < 1 << 31:  # -1, also printed unsigned, stands for unknown
        raise ValueError(text)
    return speed


def tell_irqs(sheet: FactSheet, nics: Sequence[Nic], others: Mapping[int, Irq], known: Mapping[int, str]) -> None:
    """Tell where the interrupts of NICs go.

    Args:
        others: interrupts of other devices, which may show what this kernel tells of any.
        known: ``handlers`` of the NICs' ones.
    """
    irqs = read_irqs(sheet, [(nic.entity, nic.irqs) for nic in nics], known=known)
    tell_interrupts(sheet, nics, {**others, **irqs})


def tell_interrupts(sheet: FactSheet, nics: Sequence[Nic], irqs: Mapping[int, Irq]) -> None:
    """Tell which interrupts each NIC has, which of them stay where they are, and how many are out of place."""
    held = immovable(sheet, irqs)
    for nic in nics:
        mine = [irqs[number] for number in nic.irqs if number in irqs]
        reason = nic.irqs_reason or "the host has more device interrupts than are looked at"
        if not mine:
            for fact in _INTERRUPTS:
                sheet.miss(fact, reason, nic.entity)
            continue
        used = [irq for irq in mine if irq.used]
        stuck = held or frozenset()
        sheet.tell("network.nic_irqs", tuple(str(irq.number) for irq in used), nic.entity)
        placed = frozenset[int]().union(*(irq.effective for irq in used if irq.effective))
        if placed:
            sheet.tell("network.nic_irq_cpus", float(len(placed)), nic.entity)
        else:
            sheet.miss("network.nic_irq_cpus", "no interrupt tells its CPUs", nic.entity)
        movable = tuple(str(irq.number) for irq in used if irq.number not in stuck)
        sheet.tell("network.nic_irqs_movable", movable, nic.entity)
        if nic.local:
            sheet.tell("network.nic_irq_places", tuple(dealt(sheet, movable, nic.local).values()), nic.entity)
        else:
            sheet.miss("network.nic_irq_places", nic.reason, nic.entity)
        if held is None:
            sheet.miss("network.nic_irq_managed", "a kernel before 6.12 tells it only in debugfs", nic.entity)
        else:
            managed = tuple(str(irq.number) for irq in used if irq.number in held)
            sheet.tell("network.nic_irq_managed", managed, nic.entity)
        share = remote_share(used, nic.local) if nic.local else None
        if share is not None:
            sheet.tell("network.nic_irq_remote_share", share, nic.entity)
        else:
            sheet.miss("network.nic_irq_remote_share", nic.reason or "no interrupt tells its CPUs", nic.entity)
