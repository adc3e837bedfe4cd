"""Which CPUs a workload has to itself, and the interrupts there that could go elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.facts.own_cpus import own_cpus
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree

    from unveil.records.fact import FactTable

V2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
ALL = frozenset(range(8))
_SETS = st.frozensets(st.integers(0, 7))
_KEYS = st.sampled_from(["/a", "/a/b", "/a/b/c", "/ab", "/d", "/d/e"])


def cpus(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


@pytest.mark.parametrize(
    ("pinned", "own"),
    [
        ({"/job": cpus(2, 3), "/other": ALL}, {"/job": cpus(2, 3)}),
        ({"/a": cpus(0, 1), "/b": cpus(2, 3)}, {"/a": cpus(0, 1), "/b": cpus(2, 3)}),
        ({"/pool1": cpus(0, 1, 2), "/pool2": cpus(0, 1, 2), "/alone": cpus(7)}, {"/alone": cpus(7)}),
        ({"/job": cpus(2, 3), "/job/task": cpus(2), "/job/task/step": cpus(2)}, {"/job": cpus(2, 3)}),
        ({"/job": cpus(2, 3), "/jobs": cpus(4)}, {"/job": cpus(2, 3), "/jobs": cpus(4)}),
        ({"/a": cpus(1, 2), "/b": cpus(2, 3)}, {}),
        ({"/a": ALL, "/b": cpus()}, {}),
    ],
)
def test_what_is_held_to_some_cpus_and_shares_none_has_them_to_itself(
    pinned: dict[str, frozenset[int]], own: dict[str, frozenset[int]]
) -> None:
    assert own_cpus(pinned, ALL) == own


@given(st.dictionaries(_KEYS, _SETS))
def test_no_cpu_is_the_own_one_of_two_and_nobody_owns_all(pinned: dict[str, frozenset[int]]) -> None:
    own = own_cpus(pinned, ALL)
    assert sum(map(len, own.values())) == len(frozenset[int]().union(*own.values())) < 8 + 8 * (len(own) > 1)
    assert all(pinned[key] == held for key, held in own.items())


def pin(tree: Tree, key: str, held: str) -> None:
    tree.mounts(V2)
    tree.cgroup("sys/fs/cgroup", cgroup__controllers="cpuset cpu memory")
    tree.cgroup(f"sys/fs/cgroup{key}", cpuset__cpus=held, cpuset__cpus__effective=held)


def told(table: FactTable, key: str) -> list[object]:
    entity = Entity(EntityKind.CGROUP, key)
    names = ("cpu.cgroup_own_cpus", "network.cgroup_irqs", "network.cgroup_irq_places", "network.cgroup_irq_count")
    return [table.value(name, entity) for name in names]


def reason(table: FactTable, key: str) -> str | None:
    fact = table.find("network.cgroup_irq_count", Entity(EntityKind.CGROUP, key))
    assert fact is not None
    return fact.reason


def test_interrupts_on_its_cpus_have_a_place_elsewhere_next_to_their_nic(two_nodes: Tree) -> None:
    pin(two_nodes, "/job", "5,1")  # 50 comes to 5, of the NIC next to 4-7; 60 to 1, of the one next to 0-3
    assert told(two_nodes.facts(), "/job") == ["1,5", ("50", "60"), ("4", "0"), 2.0]


def test_those_that_another_workload_has_to_itself_are_no_place(two_nodes: Tree) -> None:
    for key, held in (("/job", "5"), ("/second", "4,6")):
        pin(two_nodes, key, held)
    table = two_nodes.facts()
    assert told(table, "/job") == ["5", (), (), 0.0]
    assert told(table, "/second") == ["4,6", (), (), 0.0], "61 comes to 4, and the kernel holds it there"


def test_an_interrupt_that_also_goes_elsewhere_is_not_counted(two_nodes: Tree) -> None:
    two_nodes.irq(50, "4-7", "4-5")
    pin(two_nodes, "/job", "5")
    assert told(two_nodes.facts(), "/job") == ["5", (), (), 0.0]


def test_who_has_no_cpus_to_itself_is_told_why(two_nodes: Tree) -> None:
    for key, held in (("/all", "0-2,4-6"), ("/one", "1-2"), ("/two", "2"), ("/machine.slice", "5")):
        pin(two_nodes, key, held)
    two_nodes.cgroup("sys/fs/cgroup/plain", cpu__max="max 100000")
    table = two_nodes.facts()
    assert reason(table, "/all") == "it may run on all CPUs"
    assert reason(table, "/one") == reason(table, "/two") == "other cgroups are held to the same CPUs"
    assert reason(table, "/machine.slice") == "it is a slice, a part of the host"
    assert reason(table, "/plain") == "it is not told which CPUs it may run on"


def test_a_cgroup_that_was_left_behind_holds_no_cpu(two_nodes: Tree) -> None:
    pin(two_nodes, "/job", "5")
    pin(two_nodes, "/left", "5")
    assert reason(two_nodes.facts(), "/job") == "other cgroups are held to the same CPUs"
    two_nodes.cgroup("sys/fs/cgroup/left", cgroup__procs="")
    table = two_nodes.facts()
    assert told(table, "/job")[0] == "5"
    cpus = table.find("cpu.cgroup_cpus", Entity(EntityKind.CGROUP, "/left"))
    assert cpus is not None
    assert cpus.reason == "nothing runs in it"
