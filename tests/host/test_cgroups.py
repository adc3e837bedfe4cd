from __future__ import annotations

import os
from pathlib import Path

import pytest

from unveil.host.cgroups import DEEPEST, CgroupTree, CgroupTrees
from unveil.host.facts.cgroup_walk import MAX_CGROUPS
from unveil.host.root import HostRoot

SECOND = 1_000_000_000


@pytest.fixture
def tree(tmp_path: Path) -> CgroupTree:
    (tmp_path / "cg").mkdir()
    return CgroupTree(HostRoot(tmp_path), "cg")


def folder(tree: CgroupTree, path: str = "") -> Path:
    return Path(tree.root.path, tree.mount + path)


def make(tree: CgroupTree, path: str, use: int | None = None) -> None:
    folder(tree, path).mkdir(parents=True, exist_ok=True)
    if use is not None:
        (folder(tree, path) / "memory.current").write_text(f"{use}\n")


def keys(tree: CgroupTree, now_s: float) -> list[str]:
    tree.walk(int(now_s * SECOND))
    return [cgroup.key for cgroup in tree.chosen]


def test_cgroups_are_found_with_their_parents_and_without_the_root(tree: CgroupTree) -> None:
    make(tree, "/kubepods/pod1")
    make(tree, "/system.slice/ssh.service")
    assert keys(tree, 0) == ["/kubepods", "/kubepods/pod1", "/system.slice", "/system.slice/ssh.service"]


def test_one_that_comes_and_one_that_goes_are_noticed_at_the_next_walk(tree: CgroupTree) -> None:
    make(tree, "/a/b")
    assert keys(tree, 0) == ["/a", "/a/b"]
    make(tree, "/a/c")
    assert keys(tree, 2) == ["/a", "/a/b", "/a/c"]
    folder(tree, "/a/b").rmdir()
    assert keys(tree, 4) == ["/a", "/a/c"]


def test_one_that_takes_the_place_of_another_is_noticed_though_the_parent_looks_the_same(tree: CgroupTree) -> None:
    make(tree, "/a/old")
    keys(tree, 0)
    parent = folder(tree, "/a")
    before = parent.stat()
    (parent / "old").rmdir()
    (parent / "new").mkdir()
    os.utime(parent, ns=(before.st_atime_ns, before.st_mtime_ns))  # kernfs often keeps it
    assert keys(tree, 2) == ["/a", "/a/new"]


def test_a_container_that_takes_the_place_of_another_is_noticed_within_four_walks(tree: CgroupTree) -> None:
    one, other = (f"/pods/docker-{letters * 32}.scope" for letters in ("ab", "cd"))
    make(tree, one)
    assert keys(tree, 0) == ["/pods", one]
    parent = folder(tree, "/pods")
    before = parent.stat()
    folder(tree, one).rename(folder(tree, other))
    os.utime(parent, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ["/pods", other] in [keys(tree, 2 * walk) for walk in range(1, 5)]
    folder(tree, other).rename(folder(tree, one))  # this time the parent's times tell
    assert keys(tree, 10) == ["/pods", one]


def test_a_cgroup_made_again_under_its_name_has_another_inode(tree: CgroupTree) -> None:
    make(tree, "/a")
    keys(tree, 0)
    before = tree.chosen[0]
    folder(tree, "/a").rename(Path(tree.root.path, "kept"))  # so that its inode is not given away again
    make(tree, "/a")
    keys(tree, 2)
    assert tree.chosen[0].key == before.key
    assert tree.chosen[0].inode != before.inode


def test_what_is_inside_a_container_is_its_own_affair(tree: CgroupTree) -> None:
    container = f"/system.slice/docker-{'ab' * 32}.scope"
    make(tree, f"{container}/init/deeper")
    assert keys(tree, 0) == ["/system.slice", container]


def test_depth_is_bounded(tree: CgroupTree) -> None:
    make(tree, "/x" * 12)
    assert max(key.count("/") for key in keys(tree, 0)) == DEEPEST


def test_of_too_many_the_ones_that_use_most_are_followed_with_their_parents(tree: CgroupTree) -> None:
    for number in range(200):
        make(tree, f"/p/c{number:03}", use=number)
    for walk in range(30):
        chosen = keys(tree, 60 + 10 * walk)
    assert len(chosen) == MAX_CGROUPS
    assert "/p" in chosen
    assert set(chosen) - {"/p"} == {f"/p/c{number:03}" for number in range(200 - MAX_CGROUPS + 1, 200)}


def test_a_new_one_is_followed_at_once_even_among_too_many(tree: CgroupTree) -> None:
    for number in range(100):
        make(tree, f"/p/c{number:03}", use=1000)
    keys(tree, 0)
    keys(tree, 100)
    make(tree, "/p/new", use=0)
    assert "/p/new" in keys(tree, 102)


def test_while_none_comes_or_goes_a_walk_is_one_status_for_each(
    tree: CgroupTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = f"/pods/docker-{'ab' * 32}.scope"
    make(tree, container)
    make(tree, "/a/b")
    keys(tree, 0)
    asked: list[str] = []
    for name in ("stat", "directories"):
        genuine = getattr(HostRoot, name)
        monkeypatch.setattr(HostRoot, name, lambda root, path, ask=genuine: asked.append(path) or ask(root, path))
    before = tree.chosen
    for walk in range(1, 5):
        assert not tree.walk(2 * walk * SECOND)
    assert tree.chosen is before
    assert sorted(set(asked)) == ["cg", "cg/a", "cg/a/b", "cg/pods", f"cg{container}"]
    assert asked.count("cg/a") == 4
    assert asked.count(f"cg{container}") == 1, "it can have no children: now and then"


def test_among_too_many_the_weights_are_looked_at_though_none_comes_or_goes(tree: CgroupTree) -> None:
    for number in range(100):
        make(tree, f"/p/c{number:03}", use=1000)
    for walk in range(10):
        keys(tree, 70 * walk)
    chosen = keys(tree, 701)
    heavy = next(path for number in range(100) if (path := f"/p/c{number:03}") not in chosen)
    make(tree, heavy, use=10_000)
    assert heavy in {key for walk in range(11, 20) for key in keys(tree, 70 * walk)}


def test_a_mount_that_is_not_there_gives_no_cgroup(tmp_path: Path) -> None:
    tree = CgroupTree(HostRoot(tmp_path), "nowhere")
    assert keys(tree, 0) == []


def test_each_controller_is_looked_up_by_itself(procfs) -> None:
    procfs.write("sys/fs/cgroup/unified/cgroup.controllers", "")
    procfs.remove("sys/fs/cgroup/cgroup.controllers")
    procfs.write("sys/fs/cgroup/memory/tasks", "")
    procfs.write("sys/fs/cgroup/memory/pod/memory.stat", "")
    procfs.write("sys/fs/cgroup/unified/service/cpu.stat", "")
    trees = CgroupTrees(procfs.root)
    trees.walk(0)
    assert trees.memory is not None
    assert trees.cpu is not None
    assert (trees.memory.version, trees.cpu.version) == (1, 2)
    assert trees.keys() == ("/pod", "/service")
    assert [cgroup.key for cgroup in trees.followed(trees.cpu)] == ["/service"]


def test_this_machine_is_walked_cheaply() -> None:
    trees = CgroupTrees(HostRoot("/"))
    trees.walk(0)
    before = trees.keys()
    trees.walk(2 * SECOND)
    assert set(trees.keys()) & set(before) or not before


def test_trees_say_when_others_are_followed_and_rest_as_long_as_a_walk_was_dear(procfs) -> None:
    procfs.cgroup_v2("/pod1")
    trees = CgroupTrees(procfs.root)
    for second in range(4):
        trees.walk(second * SECOND)
    assert trees.changes == 1
    procfs.cgroup_v2("/pod2")
    now = 4 * SECOND
    while trees.changes == 1:  # what a walk of three folders costs is never an hour's worth
        now += SECOND
        assert now < 3600 * SECOND
        trees.walk(now)
    assert trees.keys() == ("/pod1", "/pod2")
    trees.walk(now)
    procfs.cgroup_v2("/pod3")
    trees.walk(now)
    assert trees.keys() == ("/pod1", "/pod2"), "no second walk at once"
