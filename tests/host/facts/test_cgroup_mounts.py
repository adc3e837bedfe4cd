from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_mounts import find_cgroup_mounts
from unveil.host.root import HostRoot

if TYPE_CHECKING:
    from conftest import Tree

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
V1_CPU = "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct"
V1_MEMORY = "32 30 0:28 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory"
V1_SYSTEMD = "33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd"
UNIFIED = "34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"


def test_version_2_has_the_controllers_it_lists(tree: Tree) -> None:
    tree.mounts(V2)
    tree.cgroup("sys/fs/cgroup", cgroup__controllers="cpuset cpu io memory hugetlb pids")
    mounts = find_cgroup_mounts(tree.root)
    assert mounts.layout == "v2"
    assert mounts.version("cpu") == 2
    assert mounts.folder("cpuset", "/pod1") == "sys/fs/cgroup/pod1"


def test_version_1_has_one_mount_for_several_controllers(tree: Tree) -> None:
    tree.mounts(V1_CPU, V1_MEMORY, V1_SYSTEMD)
    for folder in ("cpu,cpuacct", "memory", "systemd"):
        tree.cgroup(f"sys/fs/cgroup/{folder}")
    mounts = find_cgroup_mounts(tree.root)
    assert mounts.layout == "v1"
    assert mounts.folder("cpu", "/a") == mounts.folder("cpuacct", "/a") == "sys/fs/cgroup/cpu,cpuacct/a"
    assert mounts.folder("cpuset", "/a") is None
    assert mounts.version("cpuset") is None


def test_in_a_hybrid_each_controller_is_where_it_is(tree: Tree) -> None:
    tree.mounts(UNIFIED, V1_CPU)
    tree.cgroup("sys/fs/cgroup/cpu,cpuacct")
    tree.cgroup("sys/fs/cgroup/unified", cgroup__controllers="cpu memory")
    mounts = find_cgroup_mounts(tree.root)
    assert mounts.layout == "hybrid"
    assert mounts.version("cpu") == 1
    assert mounts.version("memory") == 2
    assert mounts.unified is not None


def test_the_whole_hierarchy_is_preferred_to_a_part_of_it(tree: Tree) -> None:
    part = "40 23 0:26 /docker/x /mnt/part rw - cgroup2 cgroup2 rw"
    tree.mounts(part, V2)
    tree.cgroup("mnt/part", cgroup__controllers="cpu")
    tree.cgroup("sys/fs/cgroup", cgroup__controllers="cpu")
    assert find_cgroup_mounts(tree.root).folder("cpu", "") == "sys/fs/cgroup"


def test_blanks_in_a_mount_point_are_octal_and_a_mount_that_is_not_there_is_left_out(tree: Tree) -> None:
    tree.mounts(r"40 23 0:26 / /mnt/c\040g rw - cgroup cgroup rw,memory", V1_CPU, "damaged cgroup line", "")
    tree.cgroup("mnt/c g")
    mounts = find_cgroup_mounts(tree.root)
    assert mounts.folder("memory", "/a") == "mnt/c g/a"
    assert mounts.version("cpu") is None


def test_our_own_list_of_mounts_serves_a_host_that_is_mounted_below_us(tree: Tree) -> None:
    tree.mounts(f"40 23 0:26 / {tree.folder}/sys/fs/cgroup rw - cgroup2 cgroup2 rw")
    tree.cgroup("sys/fs/cgroup", cgroup__controllers="cpu")
    assert find_cgroup_mounts(tree.root).folder("cpu", "/a") == "sys/fs/cgroup/a"


def test_a_tree_without_mounts_has_them_where_everybody_has(tree: Tree) -> None:
    assert find_cgroup_mounts(tree.root).layout == "none"
    tree.cgroup("sys/fs/cgroup/cpu", cgroup__procs="")
    tree.cgroup("sys/fs/cgroup/unified", cgroup__controllers="")
    assert find_cgroup_mounts(tree.root).layout == "hybrid"


def test_this_machine_has_hierarchies_that_exist() -> None:
    root = HostRoot()
    mounts = find_cgroup_mounts(root)
    assert mounts.layout in {"v1", "v2", "hybrid", "none"}
    assert all(root.exists(hierarchy.mount) for hierarchy in mounts.by_controller.values())
