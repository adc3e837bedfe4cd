"""Of many cgroups each is looked at in its turn, one that is new at once, and all of them after a change of our own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_facts import AT_A_TIME
from unveil.host.facts.reader import FactReader
from unveil.host.root import HostRoot
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    import pytest
    from conftest import Tree

    from unveil.records.fact import FactTable

MANY = 2 * AT_A_TIME + 4


def _grown(tree: Tree, count: int) -> FactReader:
    tree.mounts("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
    tree.cgroup("sys/fs/cgroup", cgroup__controllers="cpu")
    for number in range(count):
        tree.cgroup(f"sys/fs/cgroup/c{number:02}", cpu__max="100000 100000")
    return FactReader(tree.root)


def _quotas(table: FactTable) -> dict[str, object]:
    return {fact.entity.key: fact.value for fact in table.of("cpu.cgroup_quota")}


def _limit_all(tree: Tree, count: int) -> None:
    for number in range(count):
        tree.write(f"sys/fs/cgroup/c{number:02}/cpu.max", "50000 100000\n")


def test_of_many_each_is_read_in_its_turn_and_the_others_stand(two_nodes: Tree) -> None:
    reader = _grown(two_nodes, MANY)
    assert set(_quotas(reader.read()).values()) == {1.0}
    _limit_all(two_nodes, MANY)
    seen = [sum(value == 0.5 for value in _quotas(reader.read()).values()) for _ in range(3)]
    assert seen == [12, 24, 36]
    table = reader.read()
    assert len(_quotas(table)) == MANY
    assert table.settings["cgroup:/c00/cpu.max"] == "50000 100000\n"


def test_few_are_read_each_time(two_nodes: Tree) -> None:
    reader = _grown(two_nodes, AT_A_TIME)
    reader.read()
    _limit_all(two_nodes, AT_A_TIME)
    assert set(_quotas(reader.read()).values()) == {0.5}


def test_one_that_is_new_is_read_at_once_and_one_that_went_is_gone(two_nodes: Tree) -> None:
    reader = _grown(two_nodes, MANY)
    followed = [f"/c{number:02}" for number in range(MANY)]
    reader.read(follow=followed)
    two_nodes.cgroup("sys/fs/cgroup/new", cpu__max="70000 100000")
    (two_nodes.folder / "sys/fs/cgroup/c01/cpu.max").unlink()
    (two_nodes.folder / "sys/fs/cgroup/c01").rmdir()
    table = reader.read(follow=[*(key for key in followed if key != "/c01"), "/new"])
    assert table.value("cpu.cgroup_quota", Entity(EntityKind.CGROUP, "/new")) == 0.7
    assert table.find("cpu.cgroup_kind", Entity(EntityKind.CGROUP, "/c01")) is None
    assert "cgroup:/c01/cpu.max" not in table.settings
    assert table.value("cpu.cgroup_count") == MANY


def test_after_a_change_of_our_own_all_are_read(two_nodes: Tree) -> None:
    reader = _grown(two_nodes, MANY)
    reader.read()
    _limit_all(two_nodes, MANY)
    reader.forget()
    assert set(_quotas(reader.read()).values()) == {0.5}


def test_a_container_that_takes_the_place_of_another_is_told_with_the_next_reading(two_nodes: Tree) -> None:
    reader = _grown(two_nodes, 0)
    one, other = (f"/pod/docker-{letters * 32}.scope" for letters in ("ab", "cd"))
    two_nodes.cgroup(f"sys/fs/cgroup{one}", cpu__max="100000 100000")
    assert list(_quotas(reader.read())) == ["/pod", one]
    pod = two_nodes.folder / "sys/fs/cgroup/pod"
    before = pod.stat()
    (two_nodes.folder / f"sys/fs/cgroup{one}").rename(two_nodes.folder / f"sys/fs/cgroup{other}")
    os.utime(pod, ns=(before.st_atime_ns, before.st_mtime_ns))  # kernfs often keeps it
    assert list(_quotas(reader.read())) == ["/pod", other]


def test_the_same_cgroups_are_found_by_one_status_each(two_nodes: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = _grown(two_nodes, 3)
    reader.read()
    listed: list[str] = []
    genuine = HostRoot.directories
    monkeypatch.setattr(HostRoot, "directories", lambda root, path: listed.append(path) or genuine(root, path))
    reader.read()
    assert not listed
    two_nodes.cgroup("sys/fs/cgroup/c01/below", cpu__max="100000 100000")
    assert "/c01/below" in _quotas(reader.read())


def test_a_process_that_comes_to_an_empty_cgroup_takes_its_cpus(two_nodes: Tree) -> None:
    two_nodes.mounts("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
    two_nodes.cgroup("sys/fs/cgroup", cgroup__controllers="cpu cpuset")
    two_nodes.cgroup("sys/fs/cgroup/left", cpuset__cpus="1", cpuset__cpus__effective="1", cgroup__procs="")
    reader, left = FactReader(two_nodes.root), Entity(EntityKind.CGROUP, "/left")
    assert reader.read().value("cpu.cgroup_cpus", left) is None
    two_nodes.write("sys/fs/cgroup/left/cgroup.procs", "4711\n")
    assert reader.read().value("cpu.cgroup_cpus", left) == "1"


def test_a_cgroup_that_holds_others_is_a_slice_as_long_as_it_does(two_nodes: Tree) -> None:
    reader, above = _grown(two_nodes, 2), Entity(EntityKind.CGROUP, "/c01")
    assert reader.read().value("cpu.cgroup_kind", above) == "other"
    two_nodes.cgroup("sys/fs/cgroup/c01/below", cpu__max="100000 100000")
    table = reader.read()
    assert table.value("cpu.cgroup_kind", above) == "slice"
    assert table.value("cpu.cgroup_kind", Entity(EntityKind.CGROUP, "/c01/below")) == "other"
    (two_nodes.folder / "sys/fs/cgroup/c01/below/cpu.max").unlink()
    (two_nodes.folder / "sys/fs/cgroup/c01/below").rmdir()
    assert reader.read().value("cpu.cgroup_kind", above) == "other"
