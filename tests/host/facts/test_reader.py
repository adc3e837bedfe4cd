from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.reader import FULL_EVERY, FactReader, read_facts
from unveil.host.root import HostRoot
from unveil.records.codec import encode
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact import Fact
from unveil.records.fact_catalogue import FACTS

if TYPE_CHECKING:
    from conftest import Tree

    from unveil.records.fact import FactTable

TYPES = {"text": str, "number": float, "boolean": bool, "list": tuple}


def check(table: FactTable) -> None:
    """Hold every fact of a table against the catalogue."""
    for fact in table.facts:
        kind = FACTS[fact.name]
        assert fact.entity.kind is kind.per, fact
        assert (fact.value is None) is (fact.reason is not None), fact
        assert fact.value is None or type(fact.value) is TYPES[kind.type], fact
    for address, text in table.settings.items():
        assert address.startswith(("file:/", "sysctl:", "irq:", "cgroup:/", "nvml:", "ethtool:"))
        assert isinstance(text, str)
    assert encode(table.facts)


def test_this_machine_keeps_to_the_catalogue() -> None:
    table = read_facts(HostRoot())
    check(table)
    assert table.value("cpu.online_count") == os.cpu_count()
    assert table.value("cpu.kernel") == os.uname().release
    assert {entity.key for entity in table.entities(EntityKind.NIC)} == {
        path.name for path in Path("/sys/class/net").iterdir() if path.is_dir()
    }


def test_raw_settings_are_the_exact_content_of_the_files() -> None:
    table = read_facts(HostRoot())
    for address, path in (
        ("file:/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("sysctl:vm.dirty_bytes", "/proc/sys/vm/dirty_bytes"),
    ):
        assert table.settings[address] == Path(path).read_text()


def test_settings_of_a_fact_and_their_content_go_together(two_nodes: Tree) -> None:
    table = two_nodes.facts()
    addresses = {fact.setting for fact in table.facts if fact.setting is not None}
    assert addresses <= set(table.settings)
    assert table.settings["irq:50/smp_affinity_list"] == "4-7\n"
    check(table)


def test_an_empty_tree_has_only_absent_facts(tree: Tree) -> None:
    table = tree.facts()
    check(table)
    told = {fact.name for fact in table.facts if fact.value is not None}
    assert told <= {"cpu.offline"}
    assert table.find("memory.thp_enabled").reason == (  # type: ignore[union-attr]
        "this kernel has no /sys/kernel/mm/transparent_hugepage/enabled"
    )


def test_gpu_facts_become_part_of_the_table(two_nodes: Tree) -> None:
    gpu = Entity(EntityKind.GPU, "GPU-1")
    pci = two_nodes.pci("pci0000:80/0000:81:00.0", node=1, local="4-7", irqs=(90,))
    two_nodes.link("sys/bus/pci/devices/0000:81:00.0", pci)
    two_nodes.irq(90, "4-7", "4", action="nvidia")
    facts = (
        Fact(name="gpu.power_limit", entity=gpu, value=350.0, setting="nvml:GPU-1/power_limit"),
        Fact(name="gpu.pci", entity=gpu, value="00000000:81:00.0"),
    )
    table = two_nodes.facts(*facts)
    assert table.value("gpu.power_limit", gpu) == 350
    assert table.settings["nvml:GPU-1/power_limit"] == "350\n"
    assert table.value("cpu.irq_device", Entity(EntityKind.IRQ, "90")) == "gpu:GPU-1"


def test_a_refresh_sees_settings_affinities_and_cgroups_that_changed(two_nodes: Tree) -> None:
    two_nodes.mounts("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
    two_nodes.cgroup("sys/fs/cgroup", cgroup__controllers="cpu")
    two_nodes.cgroup("sys/fs/cgroup/old", cpu__max="max 100000")
    two_nodes.write("proc/sys/vm/swappiness", "60\n")
    reader = FactReader(two_nodes.root)
    first = reader.read()
    (two_nodes.folder / "sys/fs/cgroup/old/cpu.max").unlink()
    (two_nodes.folder / "sys/fs/cgroup/old").rmdir()
    two_nodes.cgroup("sys/fs/cgroup/new", cpu__max="50000 100000")
    two_nodes.write("proc/sys/vm/swappiness", "10\n")
    two_nodes.irq(50, "0", "0")
    second = reader.read()
    check(second)
    assert (first.value("memory.swappiness"), second.value("memory.swappiness")) == (60, 10)
    assert second.settings["sysctl:vm.swappiness"] == "10\n"
    assert second.settings["irq:50/smp_affinity_list"] == "0\n"
    assert second.value("network.nic_irq_remote_share", Entity(EntityKind.NIC, "eth1")) == 1
    assert second.find("cpu.cgroup_kind", Entity(EntityKind.CGROUP, "/old")) is None
    assert "cgroup:/old/cpu.max" not in second.settings
    assert second.value("cpu.cgroup_quota", Entity(EntityKind.CGROUP, "/new")) == 0.5


def test_what_lies_between_a_gpu_and_memory_is_told_and_kept_by_a_refresh(two_nodes: Tree) -> None:
    gpu = Entity(EntityKind.GPU, "GPU-1")
    port = "sys/devices/pci0000:40/0000:40:01.0/0000:41:10.0"
    two_nodes.write(f"{port}/config", bytes(4096))
    two_nodes.write("sys/devices/pci0000:40/0000:40:01.0/config", bytes(4096))
    two_nodes.write(f"{port}/0000:42:00.0/vendor", "0x10de\n")
    two_nodes.link("sys/bus/pci/devices/0000:42:00.0", f"{port}/0000:42:00.0")
    reader = FactReader(two_nodes.root)
    told = (Fact(name="gpu.pci", entity=gpu, value="0000:42:00.0"),)
    for table in (reader.read(told), reader.read(told)):
        assert table.value("gpu.iommu", gpu) == "none"
        assert table.value("gpu.redirecting_ports", gpu) == 0
    assert reader.read().find("gpu.iommu", gpu) is None


def test_a_refresh_says_the_same_as_a_full_reading(two_nodes: Tree) -> None:
    reader = FactReader(two_nodes.root)
    first, second = reader.read(), reader.read()
    assert set(first.facts) == set(second.facts)
    assert first.settings == second.settings


def test_a_changed_host_is_read_in_full(two_nodes: Tree) -> None:
    reader = FactReader(two_nodes.root)
    reader.read()
    two_nodes.cpus("0-7", "0-7")
    device = two_nodes.pci("pci0000:00/0000:00:05.0", node=0, local="0-3")
    two_nodes.nic("eth7", device)
    two_nodes.virtual_nic("veth1")
    table = reader.read()
    assert table.value("cpu.online_count") == 8
    assert table.value("network.nic_node", Entity(EntityKind.NIC, "eth7")) == 0


def test_a_veth_that_went_is_forgotten_without_a_full_reading(two_nodes: Tree) -> None:
    two_nodes.virtual_nic("veth1")
    reader = FactReader(two_nodes.root)
    assert Entity(EntityKind.NIC, "veth1") in reader.read().entities(EntityKind.NIC)
    (two_nodes.folder / "sys/class/net/veth1").unlink()
    assert Entity(EntityKind.NIC, "veth1") not in reader.read().entities(EntityKind.NIC)


def test_now_and_then_everything_is_read_again(two_nodes: Tree) -> None:
    reader = FactReader(two_nodes.root)
    reader.read()
    two_nodes.write("proc/sys/kernel/osrelease", "6.99\n")
    seen = [reader.read().value("cpu.kernel") for _ in range(FULL_EVERY + 1)]
    assert seen == ["6.12.0"] * FULL_EVERY + ["6.99"]


# Captured trees: (CPUs, online, nodes, with CPUs, with memory), by hwloc's and ghw's names of them.
HWLOC = {
    "128arm-2pa2n8cluster4co": (128, 128, 4, 4, 4),
    "16amd64-8n2c": (16, 16, 8, 8, 8),
    "256ia64-64n2s2c": (256, 256, 64, 64, 64),
    "64amd64-4s2n4ca2co": (64, 64, 8, 8, 8),
    "fakeheterocpunuma": (24, 24, 6, 5, 6),
    "fakeheteromemtiers": (6, 6, 7, 3, 7),
    "memorysidecaches": (80, 80, 4, 4, 4),
    "fakememinitiators-1np2c+1npp+gi": (8, 8, 11, 4, 6),
}


# What no fact is read from; it is most of the files.
PASSED_OVER = ("/cache/", "/topology/", "/cpuidle/", "/crash_notes", "/thermal_throttle/", "/hugepages/", "/microcode/")


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack a captured tree, links out of it left out, and return the folder that holds its sys."""

    def keep(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        if any(part in f"{member.name}/" for part in PASSED_OVER):
            return None
        try:
            return tarfile.data_filter(member, path)
        except tarfile.FilterError:
            return None

    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter=keep)
    return next((path.parent for depth in ("", "*/", "*/*/") for path in sorted(folder.glob(f"{depth}sys"))), folder)


def _inner(fixtures: Path, tmp_path: Path, origin: str) -> Path:
    with tarfile.open(fixtures / f"{origin}.tar.gz") as tar:
        tar.extractall(tmp_path / origin, filter="data")
    return tmp_path / origin


@pytest.mark.slow
def test_every_tree_of_hwloc_is_read_with_the_right_counts(fixtures: Path, tmp_path: Path) -> None:
    archives = sorted(_inner(fixtures, tmp_path, "hwloc").rglob("*.tar.bz2"))
    assert len(archives) > 20
    seen = {}
    for archive in archives:
        name = archive.name.removesuffix(".tar.bz2")
        folder = tmp_path / "trees" / name
        table = read_facts(HostRoot(_unpack(archive, folder)))
        check(table)
        seen[name] = (
            table.value("cpu.count"),
            table.value("cpu.online_count"),
            table.value("interconnect.node_count"),
            len(table.value("interconnect.cpu_nodes") or ()),  # type: ignore[arg-type]
            len(table.value("interconnect.memory_nodes") or ()),  # type: ignore[arg-type]
        )
        if name == "32intel64-2p8co2t+8ve":
            eth = Entity(EntityKind.NIC, "enp96s0f0")
            assert table.value("network.nic_node", eth) == 0
            assert len(table.value("network.nic_irqs", eth) or ()) == 99  # type: ignore[arg-type]
        if name.startswith("40intel64-2g2n4c"):  # this platform says -1 and calls all 40 CPUs local
            assert table.value("network.nic_local_cpus", Entity(EntityKind.NIC, "eth0")) is None
        if name == "2pa-pcidomain32bits":
            assert table.value("network.nic_irqs", Entity(EntityKind.NIC, "ens3")) is not None
        shutil.rmtree(folder)
    assert {name: seen[name] for name in HWLOC} == HWLOC


@pytest.mark.slow
def test_every_snapshot_of_ghw_is_read_offline_cpus_included(fixtures: Path, tmp_path: Path) -> None:
    archives = sorted((_inner(fixtures, tmp_path, "ghw")).rglob("*.tar.gz"))
    assert len(archives) >= 8
    for archive in archives:
        name = archive.name.removesuffix(".tar.gz")
        table = read_facts(HostRoot(_unpack(archive, tmp_path / "trees" / name)))
        check(table)
        if name == "linux-amd64-offlineCPUs":
            assert (table.value("cpu.count"), table.value("cpu.online_count")) == (4, 2)
            assert table.value("cpu.offline") == "2-3"


@pytest.mark.parametrize(
    ("origin", "place"),
    [
        ("prometheus-procfs", "prometheus-procfs/fixtures"),
        ("prometheus-node_exporter", "prometheus-node_exporter/collector/fixtures"),
        ("dynolog", "dynolog/testing/root"),
    ],
)
def test_other_captured_trees_are_read(fixtures: Path, tmp_path: Path, origin: str, place: str) -> None:
    _unpack(fixtures / f"{origin}.tar.gz", tmp_path)
    table = read_facts(HostRoot(tmp_path / place))
    check(table)
    assert table.value("cpu.count") is not None
