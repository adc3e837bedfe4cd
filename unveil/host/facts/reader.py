"""FactReader: all facts of a host, read anew in full or only where they can have changed.

A full reading looks at every device and process; a refresh reads the settings, the interrupts of NICs and the cgroups,
and turns into a full one by itself when the host changed its shape (CPUs, nodes, disks, NICs, GPUs) or after ten
minutes' worth of refreshes. On a large host a refresh reads some of the cgroups only, and how fast CPUs may run now and
then.
"""

from __future__ import annotations

from dataclasses import dataclass
from posixpath import normpath
from typing import TYPE_CHECKING

from unveil.host.facts.amd_gpus import amd_gpu_facts
from unveil.host.facts.boot import read_boot_parameters
from unveil.host.facts.cgroup_mounts import find_cgroup_mounts
from unveil.host.facts.cgroup_turns import CgroupTurns
from unveil.host.facts.cgroups import read_cgroups
from unveil.host.facts.cpu_speed import read_speed
from unveil.host.facts.daemons import read_daemons
from unveil.host.facts.devices import device_irqs, pci_address
from unveil.host.facts.disks import Disk, disk_names, find_disks, read_disks
from unveil.host.facts.file_systems import read_file_systems
from unveil.host.facts.home import find_home
from unveil.host.facts.irqs import read_irqs
from unveil.host.facts.machine_facts import MachineFacts
from unveil.host.facts.nics import Nic, find_nics, nic_devices, refresh_nics, tell_interrupts, tell_virtual
from unveil.host.facts.own_cpus import tell_own_cpus
from unveil.host.facts.pcie_path import redirecting_ports, translation
from unveil.host.facts.settings import read_settings
from unveil.host.facts.sheet import FactSheet
from unveil.host.facts.topology import Topology, read_identity, read_topology
from unveil.host.gpu_facts import power_limit_texts
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact import FactTable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from unveil.host.facts.cgroup_mounts import CgroupMounts
    from unveil.host.facts.irqs import Irq
    from unveil.host.root import HostRoot
    from unveil.records.fact import Fact

CPUS_AT_A_TIME = 32
"""CPUs whose governors and limits are worth a refresh; with twice as many they are read with every second one."""
FULL_EVERY = 60  # refreshes; at one each ten seconds that is ten minutes


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
    mounts: CgroupMounts
    irqs: Mapping[int, Irq]
    actions: Mapping[int, str]
    daemons: Mapping[str, str]
    gpu_paths: tuple[Fact, ...]


class FactReader:
    """Reads the facts of one host again and again.

    Not for several threads at once. Never raises for what the host does or does not serve: what cannot be read is an
    absent fact with a reason.
    """

    def __init__(self, root: HostRoot) -> None:
        self._root = root
        self._found: _Found | None = None
        self._refreshes = 0
        self._turns = CgroupTurns()
        self._machines = MachineFacts()
        self._speed_due = 0  # number of the refresh
        self._table = FactTable()

    def forget(self) -> None:
        """Have everything that may have changed read the next time: this host's settings have just been written."""
        self._turns.forget()
        self._speed_due = 0

    def read(self, gpu_facts: Sequence[Fact] = (), *, follow: Collection[str] = ()) -> FactTable:
        """Return the facts as they are now, at the price of a refresh whenever that will do.

        Args:
            gpu_facts: what the GPUs' own reader tells, e.g. ``gpu.node`` and ``gpu.pids``; becomes part of the table,
                with what sysfs tells of AMD's.
            follow: keys of the cgroups that are sampled; they get facts before any other.
        """
        sheet = FactSheet(self._root)
        devices = nic_devices(sheet)
        gpu_facts = (*gpu_facts, *amd_gpu_facts(self._root))
        shape = self._shape(sheet, devices, gpu_facts)
        found = self._found
        if found is None or found.shape != shape or self._refreshes >= FULL_EVERY:
            found = self._read_full(sheet, shape, gpu_facts)
        else:
            self._refreshes += 1
            self._refresh(sheet, found, devices)
        self._read_passing(sheet, found, devices, gpu_facts, follow)
        self._table = sheet.table()
        return self._table

    def _shape(self, sheet: FactSheet, devices: Mapping[str, str | None], gpu_facts: Sequence[Fact]) -> _Shape:
        return _Shape(
            online=sheet.text("sys/devices/system/cpu/online"),
            nodes=sheet.text("sys/devices/system/node/online"),
            disks=disk_names(sheet),
            nics=tuple((name, path) for name, path in devices.items() if path is not None),
            gpus=tuple(sorted({fact.entity.key for fact in gpu_facts})),
        )

    def _read_full(self, sheet: FactSheet, shape: _Shape, gpu_facts: Sequence[Fact]) -> _Found:
        read_identity(sheet)
        read_boot_parameters(sheet)
        topology = read_topology(sheet)
        nics = find_nics(sheet, dict(shape.nics), topology)
        disks = find_disks(sheet, shape.disks)
        owners = [(nic.entity, nic.irqs) for nic in nics]
        owners += _gpu_irqs(sheet, gpu_facts)
        owners += [(disk.entity, disk.irqs) for disk in disks]
        irqs = read_irqs(sheet, owners)
        tell_interrupts(sheet, nics, irqs)
        daemons = read_daemons(sheet)
        actions = {irq: sheet.value("cpu.irq_action", Entity(EntityKind.IRQ, str(irq))) for irq in irqs}
        found = _Found(
            shape=shape,
            topology=topology,
            nics=nics,
            disks=disks,
            mounts=find_cgroup_mounts(self._root),
            irqs=irqs,
            actions={irq: action for irq, action in actions.items() if isinstance(action, str)},
            daemons=daemons,
            gpu_paths=self._gpu_paths(gpu_facts),
        )
        self._refreshes, self._found = 0, found
        self._machines.forget()
        return found

    def _refresh(self, sheet: FactSheet, found: _Found, devices: Mapping[str, str | None]) -> None:
        kept = (fact for fact in self._table.facts if _stays(fact.entity, devices))
        settings = self._table.settings.items()
        sheet.adopt(kept, {at: text for at, text in settings if not at.startswith(("cgroup:", "nvml:"))})
        irqs = read_irqs(sheet, [(nic.entity, nic.irqs) for nic in found.nics], known=found.actions)
        tell_interrupts(sheet, found.nics, {**found.irqs, **irqs})
        refresh_nics(sheet, found.nics)
        read_daemons(sheet, found.daemons)

    def _read_passing(
        self,
        sheet: FactSheet,
        found: _Found,
        devices: Mapping[str, str | None],
        gpu_facts: Sequence[Fact],
        follow: Collection[str],
    ) -> None:
        """Read what may change at any time: settings and cgroups, and interfaces that come and go with containers."""
        sheet.adopt(gpu_facts, power_limit_texts(gpu_facts))
        sheet.adopt(found.gpu_paths)
        tell_virtual(sheet, tuple(name for name, path in devices.items() if path is None))
        read_settings(sheet)
        if self._refreshes >= self._speed_due or not self._refreshes:
            self._speed_due = self._refreshes + -(-len(found.topology.online) // CPUS_AT_A_TIME)
            read_speed(sheet, found.topology.online)
        read_file_systems(sheet)
        read_disks(sheet, found.disks)
        nodes = [nic.device.node for nic in found.nics if nic.physical]
        home = find_home(self._root, found.mounts, found.topology, gpu_facts=gpu_facts, nic_nodes=nodes)
        cgroups = read_cgroups(sheet, found.mounts, home, follow=follow, turns=self._turns)
        self._machines.tell(sheet, found.mounts, cgroups)
        tell_own_cpus(sheet, cgroups, (nic.entity for nic in found.nics), found.topology.online)

    def _gpu_paths(self, gpu_facts: Sequence[Fact]) -> tuple[Fact, ...]:
        """Return what lies between each GPU and memory: looked up once, as ports show their configuration slowly."""
        sheet = FactSheet(self._root)
        for fact in gpu_facts:
            address = pci_address(fact.value) if fact.name == "gpu.pci" and isinstance(fact.value, str) else None
            if address is not None:
                _tell_gpu_path(sheet, fact.entity, f"sys/bus/pci/devices/{address}")
        return sheet.facts()


def _stays(entity: Entity, devices: Mapping[str, str | None]) -> bool:
    """Tell whether an entity outlives a refresh: cgroups and GPUs are read anew, virtual interfaces come and go."""
    if entity.kind is EntityKind.NIC:
        return entity.key in devices
    return entity.kind not in (EntityKind.CGROUP, EntityKind.GPU)


def _gpu_irqs(sheet: FactSheet, gpu_facts: Sequence[Fact]) -> list[tuple[Entity, tuple[int, ...]]]:
    found = []
    for fact in gpu_facts:
        address = pci_address(fact.value) if fact.name == "gpu.pci" and isinstance(fact.value, str) else None
        if address is not None:
            found.append((fact.entity, device_irqs(sheet, f"sys/bus/pci/devices/{address}")[0]))
    return found


def _tell_gpu_path(sheet: FactSheet, gpu: Entity, link: str) -> None:
    try:
        path = normpath(f"{link.rpartition('/')[0]}/{sheet.root.readlink(link)}")
    except OSError:
        path = link
    kind, ports = translation(sheet, path), redirecting_ports(sheet, path)
    if kind is None:
        sheet.miss("gpu.iommu", "the kernel does not tell the type of its IOMMU group", gpu)
    else:
        sheet.tell("gpu.iommu", kind, gpu)
    if ports is None:
        sheet.miss("gpu.redirecting_ports", "reading the configuration of the ports above it takes more rights", gpu)
    else:
        sheet.tell("gpu.redirecting_ports", float(ports), gpu)


def read_facts(root: HostRoot, *, gpu_facts: Sequence[Fact] = (), follow: Collection[str] = ()) -> FactTable:
    """Return all facts of a host once; for reading again and again keep a ``FactReader``, which see."""
    return FactReader(root).read(gpu_facts, follow=follow)
