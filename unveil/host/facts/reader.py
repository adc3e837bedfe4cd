"""FactReader: all facts of a host, read anew in full or only where they can have changed.

A full reading looks at every device and process; a refresh reads the settings, the interrupts of NICs and the cgroups,
and turns into a full one by itself when the host changed its shape (CPUs, nodes, disks, NICs, GPUs) or after ten
minutes' worth of refreshes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.cgroup_tree import find_cgroup_tree
from unveil.host.facts.cgroups import read_cgroups
from unveil.host.facts.daemons import read_daemons
from unveil.host.facts.devices import device_irqs, find_device, pci_address
from unveil.host.facts.disks import Disk, disk_names, find_disks, read_disks
from unveil.host.facts.home import find_home
from unveil.host.facts.irqs import read_irqs
from unveil.host.facts.nics import Nic, find_nics, nic_devices, tell_interrupts, tell_virtual
from unveil.host.facts.settings import read_settings
from unveil.host.facts.sheet import FactSheet
from unveil.host.facts.topology import Topology, read_governors, read_identity, read_topology
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact import FactTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unveil.host.cgroup_tree import CgroupTree
    from unveil.host.root import HostRoot
    from unveil.records.fact import Fact

FULL_EVERY = 20  # refreshes; at one each 30 s that is ten minutes

# What a refresh reads again as a whole: a cgroup that is gone must not live on in the table.
_PASSING = (EntityKind.CGROUP, EntityKind.GPU)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What must be as before for a refresh to do."""

    online: str | None
    nodes: str | None
    disks: tuple[str, ...]
    nics: tuple[tuple[str, str], ...]
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What a full reading found and a refresh builds on."""

    shape: _Shape
    topology: Topology
    nics: tuple[Nic, ...]
    disks: tuple[Disk, ...]
    tree: CgroupTree
    actions: Mapping[int, str]
    daemons: Mapping[str, str]


class FactReader:
    """Reads the facts of one host again and again.

    Not for several threads at once. Never raises for what the host does or does not serve: what cannot be read is an
    absent fact with a reason.
    """

    def __init__(self, root: HostRoot) -> None:
        self._root = root
        self._found: _Found | None = None
        self._refreshes = 0
        self._table = FactTable()

    def read(self, gpu_facts: Sequence[Fact] = ()) -> FactTable:
        """Return the facts as they are now, at the price of a refresh whenever that will do."""
        sheet = FactSheet(self._root)
        devices = nic_devices(sheet)
        shape = self._shape(sheet, devices, gpu_facts)
        found = self._found
        if found is None or found.shape != shape or self._refreshes >= FULL_EVERY:
            return self._read_full(sheet, shape, devices, gpu_facts)
        self._refreshes += 1
        return self._refresh(sheet, found, devices, gpu_facts)

    def read_full(self, gpu_facts: Sequence[Fact] = ()) -> FactTable:
        """Return the facts, every one of them read."""
        sheet = FactSheet(self._root)
        devices = nic_devices(sheet)
        return self._read_full(sheet, self._shape(sheet, devices, gpu_facts), devices, gpu_facts)

    def _shape(self, sheet: FactSheet, devices: Mapping[str, str | None], gpu_facts: Sequence[Fact]) -> _Shape:
        return _Shape(
            online=sheet.text("sys/devices/system/cpu/online"),
            nodes=sheet.text("sys/devices/system/node/online"),
            disks=disk_names(sheet),
            nics=tuple((name, path) for name, path in devices.items() if path is not None),
            gpus=tuple(sorted({fact.entity.key for fact in gpu_facts})),
        )

    def _read_full(
        self, sheet: FactSheet, shape: _Shape, devices: Mapping[str, str | None], gpu_facts: Sequence[Fact]
    ) -> FactTable:
        read_identity(sheet)
        topology = read_topology(sheet)
        read_governors(sheet, topology)
        nics = find_nics(sheet, dict(shape.nics), topology)
        disks = find_disks(sheet, shape.disks)
        gpus = _complete_gpus(sheet, gpu_facts)
        owners = [(nic.entity, nic.irqs) for nic in nics]
        owners += [(entity, irqs) for entity, irqs in gpus.items()]
        owners += [(disk.entity, disk.irqs) for disk in disks]
        irqs = read_irqs(sheet, owners)
        tell_interrupts(sheet, nics, irqs)
        daemons = read_daemons(sheet)
        actions = {irq: sheet.value("cpu.irq_action", Entity(EntityKind.IRQ, str(irq))) for irq in irqs}
        tree = find_cgroup_tree(self._root)
        found = _Found(
            shape=shape,
            topology=topology,
            nics=nics,
            disks=disks,
            tree=tree,
            actions={irq: action for irq, action in actions.items() if isinstance(action, str)},
            daemons=daemons,
        )
        self._read_passing(sheet, found, devices)
        self._refreshes, self._found, self._table = 0, found, sheet.table()
        return self._table

    def _refresh(
        self, sheet: FactSheet, found: _Found, devices: Mapping[str, str | None], gpu_facts: Sequence[Fact]
    ) -> FactTable:
        kept = (fact for fact in self._table.facts if fact.entity.kind not in _PASSING)
        settings = {
            address: text for address, text in self._table.settings.items() if not address.startswith("cgroup:")
        }
        sheet.adopt(kept, settings)
        _complete_gpus(sheet, gpu_facts, irqs=False)
        irqs = read_irqs(sheet, [(nic.entity, nic.irqs) for nic in found.nics], known=found.actions)
        tell_interrupts(sheet, found.nics, irqs)
        read_daemons(sheet, found.daemons)
        self._read_passing(sheet, found, devices)
        self._table = sheet.table()
        return self._table

    def _read_passing(self, sheet: FactSheet, found: _Found, devices: Mapping[str, str | None]) -> None:
        """Read what may change at any time: settings and cgroups, and interfaces that come and go with containers."""
        tell_virtual(sheet, tuple(name for name, path in devices.items() if path is None))
        read_settings(sheet)
        read_disks(sheet, found.disks)
        gpu_facts = [fact for fact in sheet.facts() if fact.entity.kind is EntityKind.GPU]
        nodes = [nic.device.node for nic in found.nics if nic.physical]
        home = find_home(self._root, found.tree, found.topology, gpu_facts=gpu_facts, nic_nodes=nodes)
        read_cgroups(sheet, found.tree, home)


def _complete_gpus(sheet: FactSheet, gpu_facts: Sequence[Fact], *, irqs: bool = True) -> dict[Entity, tuple[int, ...]]:
    """Take over the facts of GPUs, fill in a node that their driver does not tell, and return their interrupts."""
    sheet.adopt(gpu_facts)
    found: dict[Entity, tuple[int, ...]] = {}
    for fact in gpu_facts:
        if fact.setting is not None and isinstance(fact.value, float | int | str):
            sheet.settings[fact.setting] = f"{fact.value:g}" if isinstance(fact.value, float) else str(fact.value)
        address = pci_address(fact.value) if fact.name == "gpu.pci" and isinstance(fact.value, str) else None
        if address is None:
            continue
        try:
            device = find_device(sheet, sheet.root.resolve(f"sys/bus/pci/devices/{address}"))
        except OSError:
            continue
        if sheet.value("gpu.node", fact.entity) is None and device.node is not None:
            sheet.tell("gpu.node", float(device.node), fact.entity)
        elif sheet.value("gpu.node", fact.entity) is None:
            sheet.miss("gpu.node", device.reason, fact.entity)
        if irqs:
            found[fact.entity] = device_irqs(sheet, device.pci_path)[0]
    return found


def read_facts(root: HostRoot, *, gpu_facts: Sequence[Fact] = ()) -> FactTable:
    """Return all facts of a host once; for reading again and again keep a ``FactReader``.

    Args:
        gpu_facts: what the GPUs' own reader tells (``gpu.name``, ``gpu.node``, ``gpu.pids``, …); it is part of the
            table, and places the cgroups that use GPUs.
    """
    return FactReader(root).read_full(gpu_facts)
