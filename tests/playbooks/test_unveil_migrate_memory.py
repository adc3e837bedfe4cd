from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

MAPS = """\
55d0c0000000 default file=/usr/bin/python3 mapped=10 N0=4 N1=6 kernelpagesize_kB=4
7f0000000000 default anon=1024 dirty=1024 active=0 N0=24 N1=1000 kernelpagesize_kB=4
7f0100000000 prefer:1 anon=8 dirty=8 N1=8 kernelpagesize_kB=2048
7ffc00000000 default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
"""


def test_pages_are_counted_by_node_and_huge_ones_as_what_they_hold(loaded: Callable[[str], ModuleType]) -> None:
    module = loaded("unveil_migrate_memory")
    pages = module.parse_numa_maps(MAPS)
    assert pages == {0: 27, 1: 1000 + 8 * 512}
    assert module.share_remote(pages, 1) == pytest.approx(27 / (27 + 5096))
    assert module.share_remote({}, 0) == 0.0
    assert module.total([pages, {2: 5}, {0: 1}]) == {0: 28, 1: 5096, 2: 5}


def test_a_mask_names_its_nodes_and_no_others(loaded: Callable[[str], ModuleType]) -> None:
    words = list(loaded("unveil_migrate_memory").nodemask([0, 3, 65]))
    assert words[0] == 0b1001
    assert words[1] == 0b10
    assert not any(words[2:])


def test_it_finds_what_would_move_and_moves_nothing_in_check_mode(module: Callable[..., Any], host_tree: Path) -> None:
    (host_tree / "sys/fs/cgroup/pod1/cgroup.procs").write_text("4242\n4243\n")
    (host_tree / "proc/4242").mkdir()
    (host_tree / "proc/4242/numa_maps").write_text(MAPS)
    answer = module("unveil_migrate_memory", check=True, cgroup="/pod1", node=1, tolerance=0.001, root=str(host_tree))
    assert answer["changed"] is True
    assert answer["pages_before"] == {"0": 27, "1": 5096}
    assert answer["diff"]["after"] == "{1: 5123}\n"
    home = module("unveil_migrate_memory", cgroup="/pod1", node=1, root=str(host_tree))
    assert (home["changed"], home["remote_pages"]) == (False, 27), "half a per cent is left alone"


def test_odd_requests_are_refused(module: Callable[..., Any], host_tree: Path) -> None:
    assert "no node 7" in module("unveil_migrate_memory", cgroup="/pod1", node=7, root=str(host_tree))["msg"]
    assert "no node -1" in module("unveil_migrate_memory", cgroup="/pod1", node=-1, root=str(host_tree))["msg"]
    assert "no cgroup" in module("unveil_migrate_memory", cgroup="/../x", node=1, root=str(host_tree))["msg"]


@pytest.mark.root
@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/self/numa_maps").exists(), reason="needs root and a kernel with NUMA"
)
def test_this_kernel_takes_the_call(loaded: Callable[[str], ModuleType]) -> None:
    module = loaded("unveil_migrate_memory")
    pages = module.pages_of("/", os.getpid())
    node = max(pages, key=pages.get)
    assert module.migrate(os.getpid(), [node], node) >= 0
    with pytest.raises(OSError, match="process"):
        module.migrate(2**22 - 1, [node], node)
