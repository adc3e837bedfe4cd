from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.settings import SYSCTLS, read_settings, sysctl_path
from unveil.host.facts.sheet import FactSheet
from unveil.host.root import HostRoot
from unveil.records.fact_catalogue import FACTS

if TYPE_CHECKING:
    from conftest import Tree


def test_huge_pages_are_told_by_what_is_chosen_and_kept_as_they_stand(tree: Tree) -> None:
    path = "sys/kernel/mm/transparent_hugepage/enabled"
    tree.write(path, "always [madvise] never\n")
    sheet = tree.sheet()
    read_settings(sheet)
    fact = sheet.table().find("memory.thp_enabled")
    assert fact is not None
    assert (fact.value, fact.setting) == ("madvise", f"file:/{path}")
    assert sheet.settings[f"file:/{path}"] == "always [madvise] never\n"


@pytest.mark.parametrize("fact", SYSCTLS)
def test_every_sysctl_has_a_catalogued_fact_and_an_address(tree: Tree, fact: str) -> None:
    tree.write(sysctl_path(SYSCTLS[fact]), "7\n")
    sheet = tree.sheet()
    read_settings(sheet)
    assert sheet.value(fact) == 7
    assert sheet.settings == {f"sysctl:{SYSCTLS[fact]}": "7\n"}
    assert FACTS[fact].type == "number"


def test_of_three_buffer_sizes_the_largest_is_the_fact_and_all_are_the_setting(tree: Tree) -> None:
    tree.write("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
    sheet = tree.sheet()
    read_settings(sheet)
    fact = sheet.table().find("network.tcp_receive_max")
    assert fact is not None
    assert (fact.value, fact.setting) == (6291456, "sysctl:net.ipv4.tcp_rmem")
    assert sheet.settings["sysctl:net.ipv4.tcp_rmem"] == "4096\t131072\t6291456\n"


def test_this_machine_tells_what_its_files_say() -> None:
    sheet = FactSheet(HostRoot())
    read_settings(sheet)
    assert sheet.value("memory.swappiness") == float(Path("/proc/sys/vm/swappiness").read_text())
    assert sheet.value("cpu.clocksource") in (sheet.value("cpu.clocksources") or ())  # type: ignore[operator]
