from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.daemons import DAEMONS, read_daemons, sees_others
from unveil.host.facts.sheet import FactSheet
from unveil.host.root import HostRoot

if TYPE_CHECKING:
    from conftest import Tree


def _process(tree: Tree, pid: int, name: str) -> None:
    tree.write(f"proc/{pid}/comm", name + "\n")


def test_daemons_are_known_by_the_names_of_their_processes(tree: Tree) -> None:
    for pid, name in (
        (2, "kthreadd"),
        (700, "irqbalance"),
        (701, "tuned"),
        (702, "power-profiles-"),
        (9, "irqbalance2"),
    ):
        _process(tree, pid, name)
    sheet = tree.sheet()
    found = read_daemons(sheet)
    assert sheet.value("cpu.managers") == ("irqbalance", "power-profiles-daemon", "tuned")
    (tree.folder / "proc/701/comm").unlink()
    sheet = tree.sheet()
    assert read_daemons(sheet, found) == {"700": "irqbalance", "702": "power-profiles-daemon"}
    assert sheet.value("cpu.managers") == ("irqbalance", "power-profiles-daemon")


def test_none_running_is_an_answer_only_where_all_processes_are_seen(tree: Tree) -> None:
    _process(tree, 1, "systemd")
    sheet = tree.sheet()
    read_daemons(sheet)
    assert sheet.value("cpu.managers") is None
    _process(tree, 2, "kthreadd")
    sheet = tree.sheet()
    read_daemons(sheet)
    assert sheet.value("cpu.managers") == ()
    assert sees_others(sheet)


def test_a_process_name_may_be_any_bytes(tree: Tree) -> None:
    tree.write("proc/2/comm", b"kthreadd\n")
    tree.write("proc/8/comm", b"caf\xc3\n")
    sheet = tree.sheet()
    assert read_daemons(sheet) == {}


@pytest.mark.parametrize("comm", DAEMONS)
def test_names_are_as_long_as_the_kernel_keeps_them(comm: str) -> None:
    assert len(comm.encode()) <= 15


def test_this_machine_is_looked_at() -> None:
    read_daemons(FactSheet(HostRoot()))
