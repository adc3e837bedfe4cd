from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.host.capabilities import host_capabilities
from unveil.host.facts.reader import read_facts
from unveil.host.root import HostRoot
from unveil.records.fact import FactTable

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.host.capabilities import Capability


def _found(root: HostRoot, table: FactTable | None = None) -> dict[str, Capability]:
    return {each.name: each for each in host_capabilities(root, table or FactTable())}


def test_this_machine_is_tried_without_being_changed() -> None:
    root = HostRoot()
    before = root.read("sys/kernel/mm/transparent_hugepage/enabled")
    found = _found(root, read_facts(root))
    assert found["root"].there is (os.geteuid() == 0)
    assert found["collapse"].there is not None
    assert found["collapse"].there or found["collapse"].hint
    assert found["pid namespace"].there is (root.readlink("proc/self/ns/pid") == "pid:[4026531836]")
    assert root.read("sys/kernel/mm/transparent_hugepage/enabled") == before


def test_hidden_processes_are_told_with_the_option_that_hides_them(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw,hidepid=2\n")
    found = _found(HostRoot(tmp_path))
    assert found["processes"].there is False
    assert "hidepid=2" in found["processes"].detail
    (tmp_path / "proc/2").mkdir()
    (tmp_path / "proc/2/comm").write_text("kthreadd\n")
    assert _found(HostRoot(tmp_path))["processes"].there is True


def test_another_pid_namespace_is_told(tmp_path: Path) -> None:
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532001]")
    found = _found(HostRoot(tmp_path))["pid namespace"]
    assert found.there is False
    assert "4026532001" in found.detail


def test_an_empty_tree_can_do_nothing_and_says_so(tmp_path: Path) -> None:
    found = _found(HostRoot(tmp_path))
    assert found["settings"].there is None
    assert found["collapse"].there is None
    assert found["cgroups"].there is False
    assert found["nvidia driver"].there is False


def test_the_driver_is_told_by_its_version(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version: NVIDIA 570.1\nGCC version: 13\n")
    assert _found(HostRoot(tmp_path))["nvidia driver"].detail == "NVRM version: NVIDIA 570.1"
