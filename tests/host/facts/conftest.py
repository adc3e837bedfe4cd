"""A tree that looks like a host, made of real files and links."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.reader import read_facts
from unveil.host.facts.sheet import FactSheet
from unveil.host.root import HostRoot
from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from unveil.records.fact import Fact, FactTable


class Tree:
    """Builds procfs and sysfs below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = HostRoot(folder)

    def write(self, path: str, text: str | bytes = "") -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())

    def link(self, path: str, target: str) -> None:
        """Link to a path of the tree, relatively, as sysfs does."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(self.folder / target, place.parent))

    def cpus(self, present: str, online: str) -> None:
        self.write("sys/devices/system/cpu/present", present + "\n")
        self.write("sys/devices/system/cpu/online", online + "\n")

    def node(self, node: int, cpus: str, distances: str, *, kilobytes: int = 16_000_000) -> None:
        folder = f"sys/devices/system/node/node{node}"
        self.write(f"{folder}/cpulist", cpus + "\n")
        self.write(f"{folder}/distance", distances + "\n")
        self.write(f"{folder}/meminfo", f"Node {node} MemTotal:       {kilobytes} kB\nNode {node} MemFree: 1 kB\n")

    def nodes(self, online: str) -> None:
        self.write("sys/devices/system/node/online", online + "\n")

    def pci(self, path: str, *, node: int, local: str, irqs: tuple[int, ...] = (), driver: str = "mlx5_core") -> str:
        """Make a PCI function and return its folder."""
        folder = f"sys/devices/{path}"
        self.write(f"{folder}/numa_node", f"{node}\n")
        self.write(f"{folder}/local_cpulist", f"{local}\n")
        self.link(f"{folder}/driver", f"sys/bus/pci/drivers/{driver}")
        for irq in irqs:
            self.write(f"{folder}/msi_irqs/{irq}", "msix\n")
        return folder

    def irq(
        self, irq: int, affinity: str, effective: str | None, *, action: str = "queue", managed: bool = False
    ) -> None:
        folder = f"proc/irq/{irq}"
        self.write(f"{folder}/smp_affinity_list", affinity + "\n")
        if managed:
            (self.folder / folder / "smp_affinity_list").chmod(0o444)
        if effective is not None:
            self.write(f"{folder}/effective_affinity_list", effective + "\n")
        self.write(f"sys/kernel/irq/{irq}/actions", action + "\n")

    def nic(self, name: str, device: str, **files: str) -> None:
        folder = f"{device}/net/{name}"
        for file, text in {"ifindex": "2", "mtu": "1500", "operstate": "up", "speed": "100000", **files}.items():
            self.write(f"{folder}/{file}", text + "\n")
        self.link(f"{folder}/device", device)
        self.link(f"sys/class/net/{name}", folder)

    def virtual_nic(self, name: str) -> None:
        self.write(f"sys/devices/virtual/net/{name}/ifindex", "9\n")
        self.link(f"sys/class/net/{name}", f"sys/devices/virtual/net/{name}")

    def mounts(self, *lines: str) -> None:
        self.write("proc/self/mountinfo", "".join(f"{line}\n" for line in lines))

    def cgroup(self, folder: str, **files: str) -> None:
        (self.folder / folder).mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            self.write(f"{folder}/{file.replace('__', '.')}", text + "\n")

    def facts(self, *gpu_facts: Fact) -> FactTable:
        return read_facts(self.root, gpu_facts=gpu_facts)

    def sheet(self) -> FactSheet:
        return FactSheet(self.root)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def two_nodes(tree: Tree) -> Tree:
    """Two nodes with four CPUs each (two of them offline), a NIC on each, one of them virtio below its PCI parent."""
    tree.write("proc/sys/kernel/osrelease", "6.12.0\n")
    tree.write("proc/2/comm", "kthreadd\n")
    tree.cpus("0-7", "0-2,4-6")
    tree.nodes("0-1")
    tree.node(0, "0-3", "10 21")
    tree.node(1, "4-7", "21 10")
    far = tree.pci("pci0000:40/0000:40:00.0/0000:41:00.0", node=1, local="4-7", irqs=(50, 51, 52))
    tree.nic("eth1", far)
    near = tree.pci("pci0000:00/0000:00:03.0", node=0, local="0-3", irqs=(60, 61), driver="virtio-pci")
    tree.link(f"{near}/virtio0/driver", "sys/bus/virtio/drivers/virtio_net")
    tree.nic("eth0", f"{near}/virtio0")
    tree.virtual_nic("lo")
    tree.irq(50, "4-7", "5")
    tree.irq(51, "0-7", "0")
    tree.irq(52, "0-3", "2", action="mlx5_async0@pci:0000:41:00.0")
    tree.irq(60, "0-7", "1", action="virtio0-input.0")
    tree.irq(61, "0-7", "4", action="", managed=True)
    return tree


@pytest.fixture
def fixtures() -> Path:
    """The captured trees of real machines, where somebody has them."""
    folder = os.environ.get("UNVEIL_FIXTURES")
    if not folder:
        pytest.skip("UNVEIL_FIXTURES names no folder of captured trees")
    return Path(folder)


def nic(name: str) -> Entity:
    return Entity(EntityKind.NIC, name)


__all__ = ["HOST", "Tree"]
