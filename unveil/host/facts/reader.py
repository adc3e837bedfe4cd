"""FactReader: all facts of a host, read anew in full or only where something looks different.

A full reading looks at every device and process. A refresh looks at what may change at any time: settings, interrupts
of NICs, cgroups. It reads them, and makes facts anew only of what does not read as before; where all does, the table is
the very same. It turns into a full reading by itself when the host changed its shape (CPUs, nodes, disks, NICs, GPUs)
or after ten minutes' worth of refreshes. On a large host a refresh looks at some of the cgroups only, and at how fast
CPUs may run now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from posixpath import normpath
from typing import TYPE_CHECKING

from unveil.host.facts.amd_gpus import amd_gpu_facts
from unveil.host.facts.boot import read_boot_parameters
from unveil.host.facts.cgroup_facts import CgroupFacts
from unveil.host.facts.cgroup_mounts import find_cgroup_mounts
from unveil.host.facts.cpu_speed import read_speed
from unveil.host.facts.daemons import read_daemons
from unveil.host.facts.devices import device_irqs, pci_address
from unveil.host.facts.disks import disk_names, find_disks, read_disks
from unveil.host.facts.file_systems import read_file_systems
from unveil.host.facts.home import find_home
from unveil.host.facts.irqs import MAX_IRQS, handlers, read_irqs
from unveil.host.facts.machine_facts import MachineFacts
from unveil.host.facts.nics import Nic, find_nics, nic_devices, tell_irqs, tell_settings, tell_virtual
from unveil.host.facts.own_cpus import tell_own_cpus
from unveil.host.facts.part import Part
from unveil.host.facts.pcie_path import redirecting_ports, translation
from unveil.host.facts.settings import read_settings
from unveil.host.facts.sheet import FactSheet
from unveil.host.facts.topology import Topology, read_identity, read_topology
from unveil.host.gpu_facts import power_limit_texts
from unveil.records.fact import FactTable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from unveil.host.facts.cgroup_mounts import CgroupMounts
    from unveil.host.facts.looks import Looks
    from unveil.host.root import HostRoot
    from unveil.records.entity import Entity
    from unveil.records.fact import Fact

CPUS_AT_A_TIME = 32
"""CPUs whose governors and limits are worth a refresh; with twice as many they are looked at with every second one."""
FULL_EVERY = 60  # refreshes; at one each ten seconds that is ten minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """Which devices there are.

    Attributes:
        looks: what was looked at to know.
        virtual: interfaces without a device.
        amd: facts of GPUs that are read here.
    """

    looks: Looks
    online: str | None
    nodes: str | None
    disks: tuple[str, ...]
    nics: Mapping[str, str]
    virtual: tuple[str, ...]
    amd: tuple[Fact, ...]

    def shape(self, gpu_facts: Sequence[Fact]) -> tuple[object, ...]:
        """Return what must be as before for a refresh to do."""
        return self.online, self.nodes, self.disks, self.nics, {fact.entity.key for fact in gpu_facts}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What a full reading found and a refresh builds on.

    Attributes:
        facts: those that stay, with *settings*.
        parts: the others, but for cgroups and virtual interfaces.
        speed: of the CPUs, which has its own pace.
    """

    shape: tuple[object, ...]
    facts: tuple[Fact, ...]
    settings: dict[str, str]
    parts: tuple[Part, ...]
    speed: Part
    topology: Topology
    nics: tuple[Nic, ...]
    mounts: CgroupMounts

    @property
    def speed_every(self) -> int:
        """Return with which refresh the speed is looked at again."""
        return -(-len(self.topology.online) // CPUS_AT_A_TIME)


class FactReader:
    """Reads the facts of one host again and again.

    Not for several threads at once. Never raises for what the host does or does not serve: what cannot be read is an
    absent fact with a reason.
    """

    def __init__(self, root: HostRoot) -> None:
        self._root = root
        self._around: _Around | None = None
        self._virtual = Part(root, partial(tell_virtual, names=()))
        self._found: _Found | None = None
        self._refreshes = 0
        self._speed_due = 0  # number of the refresh
        self._cgroups = CgroupFacts(root)
        self._machines = MachineFacts()
        self._passing: tuple[tuple[Fact, ...], ...] = ()  # of GPUs and of virtual machines
        self._table = FactTable()

    def forget(self) -> None:
        """Have everything read the next time: this host's settings have just been written."""
        self._found = None
        self._cgroups = CgroupFacts(self._root)

    def read(self, gpu_facts: Sequence[Fact] = (), *, follow: Collection[str] = ()) -> FactTable:
        """Return the facts as they are now, the same object while nothing changed, at the price of a refresh if it can.

        Args:
            gpu_facts: what the GPUs' own reader tells, e.g. ``gpu.node`` and ``gpu.pids``; becomes part of the table,
                with what sysfs tells of AMD's.
            follow: keys of the cgroups that are sampled; they get facts before any other.
        """
        self._refreshes += 1
        found = None if self._refreshes > FULL_EVERY else self._found
        around, changed = self._look_around(afresh=found is None)
        gpu_facts = (*gpu_facts, *around.amd)
        if found is None or found.shape != around.shape(gpu_facts):
            found, changed = self._read_full(around, gpu_facts), True
        else:
            changed |= self._refresh(found)
        nodes = [nic.device.node for nic in found.nics if nic.physical]
        home = find_home(self._root, found.mounts, found.topology, gpu_facts=gpu_facts, nic_nodes=nodes)
        changed |= self._cgroups.read(found.mounts, home, follow)
        machines = FactSheet(self._root)
        self._machines.tell(machines, found.mounts, self._cgroups.keys)
        passing = gpu_facts, machines.facts()
        if changed or passing != self._passing:
            self._passing = passing
            self._table = self._written(found, gpu_facts, machines)
        return self._table

    def _look_around(self, *, afresh: bool) -> tuple[_Around, bool]:
        """Return which devices there are, and whether interfaces without a device changed."""
        around = self._around
        if around is not None and not afresh and around.looks.stand():
            return around, self._virtual.refresh()
        sheet = FactSheet(self._root)
        devices = nic_devices(sheet)
        virtual = tuple(name for name, path in devices.items() if path is None)
        sheet.names("sys/class/drm")
        self._around = _Around(
            looks=sheet.looks,
            online=sheet.text("sys/devices/system/cpu/online"),
            nodes=sheet.text("sys/devices/system/node/online"),
            disks=disk_names(sheet),
            nics={name: path for name, path in devices.items() if path is not None},
            virtual=virtual,
            amd=amd_gpu_facts(self._root),
        )
        if around is not None and not afresh and around.virtual == virtual:
            return self._around, self._virtual.refresh()
        self._virtual = Part(self._root, partial(tell_virtual, names=virtual))
        return self._around, True

    def _read_full(self, around: _Around, gpu_facts: Sequence[Fact]) -> _Found:
        root = self._root
        sheet = FactSheet(root)
        read_identity(sheet)
        read_boot_parameters(sheet)
        topology = read_topology(sheet)
        nics = find_nics(sheet, around.nics, topology)
        disks = find_disks(sheet, around.disks)
        mine = frozenset([irq for nic in nics for irq in nic.irqs][:MAX_IRQS])
        owners = [*_gpu_irqs(sheet, gpu_facts), *((disk.entity, disk.irqs) for disk in disks)]
        others = read_irqs(sheet, owners, besides=mine)
        daemons = read_daemons(sheet)
        _tell_gpu_paths(sheet, gpu_facts)
        tellers: list[Callable[[FactSheet], object]] = [
            partial(tell_irqs, nics=nics, others=others, known=handlers(root, mine)),
            *(partial(tell_settings, nic=nic) for nic in nics),
            partial(read_disks, disks=disks),
            read_settings,
            read_file_systems,
        ]
        if daemons:
            tellers.append(partial(read_daemons, known=daemons))
        self._found = _Found(
            shape=around.shape(gpu_facts),
            facts=sheet.facts(),
            settings=sheet.settings,
            parts=tuple(Part(root, tell) for tell in tellers),
            speed=Part(root, partial(read_speed, online=topology.online)),
            topology=topology,
            nics=nics,
            mounts=find_cgroup_mounts(root),
        )
        self._refreshes, self._speed_due = 0, self._found.speed_every
        self._machines.forget()
        return self._found

    def _refresh(self, found: _Found) -> bool:
        changed = [part.refresh() for part in found.parts]
        if self._refreshes >= self._speed_due:
            self._speed_due = self._refreshes + found.speed_every
            changed.append(found.speed.refresh())
        return any(changed)

    def _written(self, found: _Found, gpu_facts: Sequence[Fact], machines: FactSheet) -> FactTable:
        """Return everything that is known, in one table."""
        sheet = FactSheet(self._root)
        sheet.adopt(found.facts, found.settings)
        sheet.adopt(gpu_facts, power_limit_texts(gpu_facts))
        for part in (*found.parts, found.speed, self._virtual):
            sheet.take(part.sheet)
        self._cgroups.tell(sheet)
        sheet.take(machines)
        tell_own_cpus(sheet, self._cgroups.keys, (nic.entity for nic in found.nics), found.topology.online)
        return sheet.table()


def _gpu_irqs(sheet: FactSheet, gpu_facts: Sequence[Fact]) -> list[tuple[Entity, tuple[int, ...]]]:
    found = []
    for fact in gpu_facts:
        address = pci_address(fact.value) if fact.name == "gpu.pci" and isinstance(fact.value, str) else None
        if address is not None:
            found.append((fact.entity, device_irqs(sheet, f"sys/bus/pci/devices/{address}")[0]))
    return found


def _tell_gpu_paths(sheet: FactSheet, gpu_facts: Sequence[Fact]) -> None:
    """Tell what lies between each GPU and memory: looked up once, as ports show their configuration slowly."""
    for fact in gpu_facts:
        address = pci_address(fact.value) if fact.name == "gpu.pci" and isinstance(fact.value, str) else None
        if address is not None:
            _tell_gpu_path(sheet, fact.entity, f"sys/bus/pci/devices/{address}")


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
