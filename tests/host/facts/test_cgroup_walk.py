from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.cgroup_mounts import CgroupMounts, Hierarchy, find_cgroup_mounts
from unveil.host.facts.cgroup_walk import cgroup_key, cgroup_of, choose_cgroups, find_cgroups
from unveil.host.facts.looks import Looks
from unveil.host.root import HostRoot

if TYPE_CHECKING:
    from conftest import Tree

A = "a1" * 32
V2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"


def _v2(tree: Tree) -> None:
    tree.mounts(V2)
    tree.cgroup("sys/fs/cgroup", cgroup__controllers="cpuset cpu memory")


def test_the_walk_stops_at_units_and_survives_a_deep_tree(tree: Tree) -> None:
    _v2(tree)
    tree.cgroup("sys/fs/cgroup/" + "/".join(["d"] * 60))
    tree.cgroup("sys/fs/cgroup/slurm/uid_0/job_7/step_0/task_0")
    found = find_cgroups(Looks(tree.root), find_cgroup_mounts(tree.root))
    assert "/slurm/uid_0/job_7" in found
    assert "/slurm/uid_0/job_7/step_0" not in found
    assert max(path.count("/") for path in found) == 12


def test_choosing_does_not_depend_on_the_order() -> None:
    keys = [f"/k{number}" for number in range(90)]
    assert choose_cgroups(keys, prefer=["/k89"]) == choose_cgroups(reversed(keys), prefer=["/k89"])
    assert "/k89" in choose_cgroups(keys, prefer=["/k89"])
    assert cgroup_key("/a\udcff") == "//a\\xff"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"0::/docker/{A}/init.scope", f"/docker/{A}"),
        ("0::/a/b", "/a/b"),
        ("0::/", None),
        ("4:memory:/elsewhere", None),
        ("", None),
        ("damaged", None),
    ],
)
def test_a_process_belongs_to_the_unit_it_runs_in(tree: Tree, text: str, key: str | None) -> None:
    _v2(tree)
    tree.write("proc/300/cgroup", text + "\n")
    assert cgroup_of(tree.root, find_cgroup_mounts(tree.root), "300") == key


def test_a_process_that_is_gone_belongs_nowhere(tree: Tree) -> None:
    _v2(tree)
    assert cgroup_of(tree.root, find_cgroup_mounts(tree.root), "1") is None


def test_a_mount_of_a_part_of_the_hierarchy_shortens_the_paths(tree: Tree) -> None:
    part = Hierarchy(mount="sys/fs/cgroup", top="/part", version=1, controllers=frozenset({"cpu"}))
    mounts = CgroupMounts(by_controller={"cpu": part})
    tree.write("proc/300/cgroup", "3:cpu,cpuacct:/part/a.service\n")
    tree.write("proc/301/cgroup", "3:cpu,cpuacct:/partial/a.service\n")
    assert cgroup_of(tree.root, mounts, "300") == "/a.service"
    assert cgroup_of(tree.root, mounts, "301") == "/partial/a.service"


def test_this_machine_is_walked() -> None:
    root = HostRoot()
    paths = find_cgroups(Looks(root), find_cgroup_mounts(root))
    assert all(path.startswith("/") for path in paths)
