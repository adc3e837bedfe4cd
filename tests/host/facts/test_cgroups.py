from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError
from unveil.host.facts.cgroup_walk import MAX_CGROUPS
from unveil.host.facts.reader import read_facts
from unveil.host.root import HostRoot
from unveil.records.codec import encode
from unveil.records.entity import Entity, EntityKind
from unveil.remediation.setting import parse_address

if TYPE_CHECKING:
    from conftest import Tree

    from unveil.records.fact import Fact, FactTable

A, B = "a1" * 32, "b2" * 32
V2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
POD = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12345678_90ab.slice"
CRI = f"{POD}/cri-containerd-{A}.scope"


def _cgroup(key: str) -> Entity:
    return Entity(EntityKind.CGROUP, key)


def _fact(table: FactTable, name: str, key: str) -> Fact:
    fact = table.find(name, _cgroup(key))
    assert fact is not None
    return fact


def _v2(tree: Tree) -> None:
    tree.mounts(V2)
    tree.cgroup("sys/fs/cgroup", cgroup__controllers="cpuset cpu memory")


def test_a_kubernetes_container_in_version_2(tree: Tree) -> None:
    _v2(tree)
    tree.cgroup(
        f"sys/fs/cgroup{CRI}",
        cpu__max="150000 100000",
        cpu__weight="39",
        memory__max="1073741824",
        cpuset__mems="",
        cpuset__mems__effective="0-1",
        cpuset__cpus="2-5",
        cpuset__cpus__effective="2-4",
    )
    tree.cgroup(f"sys/fs/cgroup{CRI}/inner/deeper")
    table = tree.facts()
    assert table.value("cpu.cgroup_kind", _cgroup(CRI)) == "container"
    assert table.value("cpu.cgroup_runtime", _cgroup(CRI)) == "containerd"
    assert _fact(table, "cpu.cgroup_quota", CRI).value == 1.5
    assert _fact(table, "cpu.cgroup_quota", CRI).setting == f"cgroup:{CRI}/cpu.max"
    assert table.settings[f"cgroup:{CRI}/cpu.max"] == "150000 100000\n"
    assert table.value("cpu.cgroup_weight", _cgroup(CRI)) == 39
    assert table.value("memory.cgroup_limit", _cgroup(CRI)) == 1 << 30
    assert _fact(table, "interconnect.cgroup_mems", CRI).value == "0-1"
    assert _fact(table, "interconnect.cgroup_mems", CRI).setting == f"cgroup:{CRI}/cpuset.mems"
    assert table.settings[f"cgroup:{CRI}/cpuset.mems"] == "\n"
    assert table.value("cpu.cgroup_cpus", _cgroup(CRI)) == "2-4"
    assert table.find("cpu.cgroup_kind", _cgroup(f"{CRI}/inner")) is None  # the container's own affair
    assert table.value("cpu.cgroup_count") == 4


def test_no_limit_is_an_answer_with_a_setting(tree: Tree) -> None:
    _v2(tree)
    tree.cgroup("sys/fs/cgroup/pod1", cpu__max="max 100000", memory__max="max")
    table = tree.facts()
    quota = _fact(table, "cpu.cgroup_quota", "/pod1")
    assert (quota.value, quota.reason, quota.setting) == (None, "unlimited", "cgroup:/pod1/cpu.max")
    assert _fact(table, "memory.cgroup_limit", "/pod1").reason == "unlimited"
    assert _fact(table, "interconnect.cgroup_mems", "/pod1").reason == "the cpuset controller is not enabled for it"


def test_version_1_has_other_files_and_the_same_facts(tree: Tree) -> None:
    tree.mounts(
        "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
        "32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
        "33 30 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset",
    )
    key = f"/docker/{A}"
    files = {"cpu__cfs_quota_us": "50000", "cpu__cfs_period_us": "100000", "cpu__shares": "1024"}
    tree.cgroup(f"sys/fs/cgroup/cpu,cpuacct{key}", **files)
    tree.cgroup(f"sys/fs/cgroup/cpu,cpuacct/docker/{B}", **{**files, "cpu__cfs_quota_us": "-1"})
    tree.cgroup(f"sys/fs/cgroup/memory{key}", memory__limit_in_bytes="9223372036854771712")
    tree.cgroup(f"sys/fs/cgroup/cpuset{key}", cpuset__mems="0", cpuset__cpus="0-3", cpuset__effective_mems="0")
    table = tree.facts()
    assert _fact(table, "cpu.cgroup_quota", key).value == 0.5
    assert _fact(table, "cpu.cgroup_quota", key).setting == f"cgroup:{key}/cpu.cfs_quota_us"
    assert _fact(table, "cpu.cgroup_quota", f"/docker/{B}").reason == "unlimited"
    assert table.settings[f"cgroup:/docker/{B}/cpu.cfs_quota_us"] == "-1\n"
    assert _fact(table, "memory.cgroup_limit", key).reason == "unlimited"
    assert _fact(table, "interconnect.cgroup_mems", key).value == "0"
    assert _fact(table, "memory.cgroup_limit", f"/docker/{B}").reason == "the memory controller is not enabled for it"


def test_a_hybrid_takes_each_controller_from_its_tree(tree: Tree) -> None:
    tree.mounts(
        "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
        "34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    )
    tree.cgroup("sys/fs/cgroup/unified", cgroup__controllers="memory")
    tree.cgroup("sys/fs/cgroup/unified/a.service", memory__max="4096")
    tree.cgroup("sys/fs/cgroup/cpu/a.service", cpu__cfs_quota_us="200000", cpu__cfs_period_us="100000")
    table = tree.facts()
    assert table.value("cpu.cgroup_quota", _cgroup("/a.service")) == 2
    assert table.value("memory.cgroup_limit", _cgroup("/a.service")) == 4096
    assert _fact(table, "cpu.cgroup_cpus", "/a.service").reason == "the host has no cpuset controller"


@pytest.mark.parametrize("content", ["", "max", "banana 100000", "100 0", "-5 100000", "100000", "\xff"])
def test_a_damaged_quota_is_absent_and_no_exception(tree: Tree, content: str) -> None:
    _v2(tree)
    tree.cgroup("sys/fs/cgroup/pod1", cpu__max=content)
    assert tree.facts().value("cpu.cgroup_quota", _cgroup("/pod1")) is None


@pytest.mark.parametrize(
    "name", [b"a b", b"{{ 7*7 }}", b"\xff\xfe", "naïve".encode(), b"..x", b"-rf", b"'; true", b"\\x2d", b"a\tb"]
)
def test_names_that_tenants_choose_are_only_text(tree: Tree, name: bytes) -> None:
    _v2(tree)
    folder = os.fsencode(tree.folder / "sys/fs/cgroup") + b"/" + name
    Path(os.fsdecode(folder)).mkdir()
    Path(os.fsdecode(folder), "cpu.max").write_bytes(b"50000 100000\n")
    table = tree.facts()
    (entity,) = table.entities(EntityKind.CGROUP)
    assert table.value("cpu.cgroup_quota", entity) == 0.5
    entity.key.encode()  # storable: no lone surrogates
    assert encode(table.facts)


def test_a_name_that_is_no_utf8_and_one_that_is_its_text_are_two_cgroups(tree: Tree) -> None:
    _v2(tree)
    for name, quota in ((b"a\xff", 50000), (b"a\\xff", 100000), (b"\\\\a\xff", 200000)):
        folder = Path(os.fsdecode(os.fsencode(tree.folder / "sys/fs/cgroup") + b"/" + name))
        folder.mkdir()
        (folder / "cpu.max").write_text(f"{quota} 100000\n")
    table = tree.facts()
    quotas = {entity.key: table.value("cpu.cgroup_quota", entity) for entity in table.entities(EntityKind.CGROUP)}
    assert quotas == {"//a\\xff": 0.5, "/a\\xff": 1.0, "//\\\\\\\\a\\xff": 2.0}
    with pytest.raises(BadInputError):
        parse_address("cgroup://a\\xff/cpu.max")  # it would name the sibling on disk


def test_there_are_at_most_64_and_units_come_first(tree: Tree) -> None:
    _v2(tree)
    for number in range(100):
        tree.cgroup(f"sys/fs/cgroup/system.slice/s{number:03}.service")
    for number in range(40):
        tree.cgroup(f"sys/fs/cgroup/system.slice/docker-{number:064x}.scope")
    table = tree.facts()
    entities = table.entities(EntityKind.CGROUP)
    kinds = [table.value("cpu.cgroup_kind", entity) for entity in entities]
    assert len(entities) == MAX_CGROUPS
    assert kinds.count("container") == 40
    assert table.value("cpu.cgroup_count") == 141


def test_cgroups_that_are_sampled_always_get_facts(tree: Tree) -> None:
    _v2(tree)
    for number in range(100):
        tree.cgroup(f"sys/fs/cgroup/s{number:03}.service", cpu__max="50000 100000")
    tree.cgroup(f"sys/fs/cgroup/docker/{A}/inside", cpu__max="100000 100000")
    follow = ["/s099.service", f"/docker/{A}/inside", "/gone"]
    table = read_facts(tree.root, follow=follow)
    assert table.value("cpu.cgroup_quota", _cgroup("/s099.service")) == 0.5
    assert table.value("cpu.cgroup_quota", _cgroup(f"/docker/{A}/inside")) == 1
    assert table.value("cpu.cgroup_quota", _cgroup("/gone")) is None


def test_this_machines_own_cgroup_is_read() -> None:
    table = read_facts(HostRoot())
    for entity in table.entities(EntityKind.CGROUP):
        assert table.value("cpu.cgroup_kind", entity) in {"container", "vm", "service", "slice", "job", "other"}


def test_a_limit_of_io_is_told_where_it_is_on_one_disk(tree: Tree) -> None:
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpu memory io\n")
    tree.write("sys/fs/cgroup/cgroup.stat", "nr_descendants 4\nnr_dying_descendants 2301\n")
    one, two, free = (Entity(EntityKind.CGROUP, f"/{name}.service") for name in ("one", "two", "free"))
    line = "254:0 rbps=1048576 wbps=max riops=max wiops=200"
    for cgroup, text in ((one, f"{line}\n"), (two, f"{line}\n254:16 rbps=1 wbps=1 riops=1 wiops=1\n"), (free, "")):
        folder = f"sys/fs/cgroup{cgroup.key}"
        tree.write(f"{folder}/cgroup.procs", "")
        tree.write(f"{folder}/io.max", text)
        tree.write(f"{folder}/cpu.max.burst", "5000\n")
        tree.write(f"{folder}/memory.high", "1073741824\n" if cgroup is one else "max\n")
    facts = tree.facts()
    fact = facts.find("storage.cgroup_read_limit", one)
    assert fact is not None
    assert (fact.value, fact.setting) == (1048576, "cgroup:/one.service/io.max")
    assert facts.settings["cgroup:/one.service/io.max"] == f"{line}\n"
    assert facts.value("storage.cgroup_io_device", one) == "254:0"
    assert facts.value("storage.cgroup_writes_limit", one) == 200
    assert facts.find("storage.cgroup_write_limit", one).reason == "unlimited"  # type: ignore[union-attr]
    assert facts.find("storage.cgroup_read_limit", two).reason == "it is limited on several disks"  # type: ignore[union-attr]
    assert facts.find("storage.cgroup_read_limit", free).reason == "unlimited"  # type: ignore[union-attr]
    assert (facts.value("memory.cgroup_high", one), facts.value("memory.cgroup_high", free)) == (1 << 30, None)
    assert facts.value("cpu.cgroup_burst", one) == 5000
    assert facts.value("memory.dying_cgroups") == 2300, "to the nearest hundred"
    tree.write("sys/fs/cgroup/cgroup.stat", "nr_dying_descendants many\n")
    tree.write("sys/fs/cgroup/one.service/io.max", " \n")
    facts = tree.facts()
    assert facts.value("memory.dying_cgroups") is None
    assert facts.find("storage.cgroup_read_limit", one).reason == "unlimited"  # type: ignore[union-attr]
