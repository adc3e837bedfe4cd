"""Where a workload runs, as far as it needs no kernel's leave: tests/lab/test_lab.py builds a whole one."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

import pytest

from unveil.errors import UnreadableError
from unveil.host.facts.cgroup_names import identify
from unveil.lab.place import CGROUP, NEIGHBOUR, SIDES, Place, _empty, address, container, namespace, outer, place


def test_the_two_sides_have_names_and_addresses_of_their_own() -> None:
    for told in (namespace, outer, address):
        assert len({told(side) for side in SIDES}) == 2
    assert all(len(outer(side)) <= 15 for side in SIDES), "the kernel's longest name of an interface"
    first, second = (ipaddress.ip_interface(f"{address(side)}/24").network for side in SIDES)
    assert first == second
    assert first.is_private


def test_a_controller_has_its_own_tree_or_the_one_tree() -> None:
    old = Place(folders={"cpu": Path("/c"), "memory": Path("/m")}, scratch=Path("/s"))
    assert (old.folder("cpu", "a"), old.folder("blkio", "a")) == (Path("/c") / container("a"), None)
    new = Place(folders={"": Path("/u")}, scratch=Path("/s"))
    assert new.folder("cpu", "b") == new.folder("blkio", "b") == Path("/u") / container("b")


def test_a_host_sees_containers() -> None:
    names = {container(who) for who in (*SIDES, NEIGHBOUR)}
    assert len(names) == 3
    assert {identify(f"/{CGROUP}/{name}").kind for name in names} == {"container"}


def test_who_is_in_a_cgroup_is_killed_and_one_that_stays_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []

    def kill(number: int, _signal: int) -> None:
        killed.append(number)
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)
    assert _empty(tmp_path / "absent") == []
    (tmp_path / "cgroup.procs").write_text("0\n1234567\n")  # 0: one that another PID namespace numbers
    assert _empty(tmp_path, tries=1) == [f"{tmp_path} cannot be emptied"]
    assert killed == [1234567]


@pytest.mark.parametrize(("user", "path", "says"), [(1000, os.environ["PATH"], "needs root"), (0, "", "needs `ip`")])
def test_what_is_lacking_is_said_before_anything_is_changed(
    user: int, path: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setenv("PATH", path)
    with pytest.raises(UnreadableError, match=says), place(tmp_path / "scratch"):
        raise AssertionError("it was built")
    assert not (tmp_path / "scratch").exists()
