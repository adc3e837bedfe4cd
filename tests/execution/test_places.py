from __future__ import annotations

from pathlib import Path

import pytest

from unveil.errors import RefusedError, SourceAbsentError
from unveil.execution.places import Places, parse_mountinfo
from unveil.remediation.setting import parse_address

HYBRID = """\
23 1 0:21 / / rw - ext4 /dev/vda rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
41 31 0:38 / /sys/fs/cgroup/my\\040unified rw,relatime - cgroup2 cgroup2 rw
bad line
"""


def resolve(root: Path, address: str) -> str:
    return Places(root).path(parse_address(address))


def test_hierarchies_come_from_mountinfo_whatever_else_is_in_it() -> None:
    found = parse_mountinfo(HYBRID)
    assert [(sorted(each.controllers), each.mount_point, each.unified) for each in found] == [
        (["cpu", "cpuacct", "rw"], "/sys/fs/cgroup/cpu,cpuacct", False),
        (["cpuset", "rw"], "/sys/fs/cgroup/cpuset", False),
        ([], "/sys/fs/cgroup/my unified", True),
    ]


def test_a_controller_is_found_where_it_is_mounted(tmp_path: Path) -> None:
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/mountinfo").write_text(HYBRID)
    at = tmp_path / "sys/fs/cgroup"
    assert resolve(tmp_path, "cgroup:/pod1/cpu.cfs_quota_us") == f"{at}/cpu,cpuacct/pod1/cpu.cfs_quota_us"
    assert resolve(tmp_path, "cgroup:/pod1/cpuset.mems") == f"{at}/cpuset/pod1/cpuset.mems"
    assert resolve(tmp_path, "cgroup:/pod1/memory.high") == f"{at}/my unified/pod1/memory.high"


def test_without_mountinfo_the_usual_places_are_looked_at(tmp_path: Path, tree: Path) -> None:
    assert resolve(tree, "cgroup:/pod1/cpu.max") == f"{tree}/sys/fs/cgroup/pod1/cpu.max"
    (tree / "sys/fs/cgroup/cpu").mkdir()
    assert resolve(tree, "cgroup:/pod1/cpu.cfs_quota_us") == f"{tree}/sys/fs/cgroup/cpu/pod1/cpu.cfs_quota_us"
    with pytest.raises(SourceAbsentError):
        resolve(tmp_path / "nothing", "cgroup:/pod1/cpu.max")


def test_a_hierarchy_that_shows_only_a_part_is_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "proc/1").mkdir(parents=True)
    line = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    (tmp_path / "proc/1/mountinfo").write_text(line)
    with pytest.raises(RefusedError, match="only the cgroups below"):
        resolve(tmp_path, "cgroup:/pod1/cpu.cfs_quota_us")


def test_links_within_are_followed_and_links_out_are_refused(tree: Path) -> None:
    (tree / "sys/devices/x").mkdir(parents=True)
    (tree / "sys/class").mkdir()
    (tree / "sys/class/x").symlink_to("../devices/x")
    assert resolve(tree, "file:/sys/class/x/value") == f"{tree}/sys/devices/x/value"
    for target in ("/etc", "../../../..", "/sys", "../../etc"):
        link = tree / "sys/class/out"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        with pytest.raises(RefusedError, match="leads out"):
            resolve(tree, "file:/sys/class/out/passwd")


def test_a_root_whose_own_places_are_links_to_the_live_host_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "sys").symlink_to("/sys")
    with pytest.raises(RefusedError, match="leads out"):
        resolve(root, "file:/sys/kernel/mm/transparent_hugepage/enabled")


def test_the_live_host_is_found() -> None:
    assert resolve(Path("/"), "sysctl:vm.swappiness") == "/proc/sys/vm/swappiness"
