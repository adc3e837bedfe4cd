from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.reader import FULL_EVERY, FactReader, read_facts
from unveil.host.facts.settings import SYSCTLS, sysctl_path
from unveil.host.facts.sheet import FactSheet
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


def test_while_nothing_changes_the_table_is_the_very_same_and_no_fact_is_made(
    two_nodes: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    furnish(two_nodes)
    told = (Fact(name="gpu.power_limit", entity=Entity(EntityKind.GPU, "GPU-1"), value=350.0),)
    reader = FactReader(two_nodes.root)
    first = reader.read(told, follow=("/a",))
    monkeypatch.setattr(FactSheet, "read", lambda *_args, **_named: pytest.fail("a file is made a fact of"))
    for _ in range(3):
        assert reader.read(told, follow=["/a"]) is first


def furnish(tree: Tree) -> None:
    """Give a host what can be set on one."""
    tree.mounts("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "31 23 0:45 / /nfs rw - nfs4 server:/export rw")
    tree.write("proc/1/mountinfo", "31 23 0:45 / /nfs rw - nfs4 server:/export rw\n")
    tree.cgroup("sys/fs/cgroup", cgroup__controllers="cpu cpuset memory io")
    tree.cgroup(
        "sys/fs/cgroup/a", cpu__weight="100", cpu__max__burst="0", cpu__max="max 100000", memory__max="max",
        memory__high="max", io__max="8:0 rbps=1000 wbps=max riops=max wiops=max", cpuset__cpus="1", cpuset__mems="0",
        cpuset__cpus__effective="1", cpuset__mems__effective="0", cgroup__procs="4711",
    )  # fmt: skip
    for path in (*(sysctl_path(name) for name in SYSCTLS.values()), "sys/class/bdi/0:45/read_ahead_kb"):
        tree.write(path, "8\n")
    tree.write("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
    for name in ("enabled", "defrag", "shmem_enabled"):
        tree.write(f"sys/kernel/mm/transparent_hugepage/{name}", "[always] madvise never\n")
    for name in ("defrag", "scan_sleep_millisecs", "pages_to_scan"):
        tree.write(f"sys/kernel/mm/transparent_hugepage/khugepaged/{name}", "8\n")
    tree.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
    for name in ("read_ahead_kb", "nr_requests", "wbt_lat_usec", "nomerges", "rq_affinity", "max_sectors_kb"):
        tree.write(f"sys/block/sda/queue/{name}", "8\n")
    tree.write("sys/block/sda/queue/scheduler", "[none] mq-deadline\n")
    for cpu in (0, 1, 2, 4, 5, 6):
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", "powersave\n")
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us", "0\n")
    tree.write("sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "power\n")
    (tree.folder / "proc/irq/61/smp_affinity_list").chmod(0o644)
    tree.write("sys/devices/virtual/net/lo/tx_queue_len", "1000\n")
    tree.write("sys/devices/pci0000:40/0000:40:00.0/0000:41:00.0/net/eth1/queues/rx-0/rps_cpus", "0\n")


def path_of(address: str) -> str:
    """Return the file of a setting."""
    kind, _, rest = address.partition(":")
    if kind == "sysctl":
        return sysctl_path(rest)
    return {"file": rest[1:], "irq": f"proc/irq/{rest}", "cgroup": f"sys/fs/cgroup{rest}"}[kind]


def other(text: str) -> str:
    """Return what a setting may read instead."""
    if "[" in text:
        return "never [other]\n"
    shifted = text.translate(str.maketrans("012345678", "123456789"))
    return "other\n" if shifted == text else shifted


def test_each_setting_that_somebody_changes_is_evidence_with_the_next_reading(two_nodes: Tree) -> None:
    furnish(two_nodes)
    reader = FactReader(two_nodes.root)
    settings = reader.read().settings
    assert len(settings) > 60
    for address in sorted(settings):
        two_nodes.write(path_of(address), other(settings[address]))
        table, fresh = reader.read(), read_facts(two_nodes.root)
        check(table)
        assert table.settings[address] == other(settings[address]), address
        assert table.settings == fresh.settings, address
        assert set(table.facts) == set(fresh.facts), address


def test_a_file_system_that_is_mounted_and_a_daemon_that_ends_are_seen(two_nodes: Tree) -> None:
    two_nodes.write("proc/1/mountinfo", "22 1 254:0 / / rw - ext4 /dev/vda rw\n")
    for file, text in (("comm", "irqbalance\n"), ("status", "Uid:\t0 0 0 0\nNSpid:\t700\n"), ("cgroup", "0::/\n")):
        two_nodes.write(f"proc/700/{file}", text)
    reader = FactReader(two_nodes.root)
    table = reader.read()
    assert (table.value("storage.discarding"), table.value("cpu.managers")) == (0, ("irqbalance",))
    two_nodes.write("proc/1/mountinfo", "22 1 254:0 / / rw - ext4 /dev/vda rw,discard\n")
    (two_nodes.folder / "proc/700/comm").unlink()
    table = reader.read()
    assert (table.value("storage.discarding"), table.value("cpu.managers")) == (1, ())


def test_after_a_change_of_our_own_what_is_seldom_read_is_read_too(two_nodes: Tree) -> None:
    reader, eth1 = FactReader(two_nodes.root), Entity(EntityKind.NIC, "eth1")
    assert reader.read().value("network.nic_state", eth1) == "up"
    two_nodes.write("sys/devices/pci0000:40/0000:40:00.0/0000:41:00.0/net/eth1/operstate", "down\n")
    assert reader.read().value("network.nic_state", eth1) == "up"
    reader.forget()
    assert reader.read().value("network.nic_state", eth1) == "down"


def test_an_interrupt_that_is_put_to_use_is_seen(two_nodes: Tree) -> None:
    reader, eth0 = FactReader(two_nodes.root), Entity(EntityKind.NIC, "eth0")
    assert reader.read().value("network.nic_irqs", eth0) == ("60",)
    two_nodes.write("sys/kernel/irq/61/actions", "virtio0-output.0\n")
    assert reader.read().value("network.nic_irqs", eth0) == ("60", "61")


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
