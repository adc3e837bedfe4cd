from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.host.facts.topology import parse_cpumask, read_identity, read_topology
from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree


def _node(node: int) -> Entity:
    return Entity(EntityKind.NODE, str(node))


def test_offline_cpus_are_counted_and_belong_to_no_node(two_nodes: Tree) -> None:
    table = two_nodes.facts()
    assert table.value("cpu.count") == 8
    assert table.value("cpu.online_count") == 6
    assert table.value("cpu.offline") == "3,7"
    assert table.value("interconnect.node_cpus", _node(0)) == "0-2"
    assert table.value("cpu.node", Entity(EntityKind.CPU, "5")) == 1
    assert table.find("cpu.node", Entity(EntityKind.CPU, "3")) is None
    assert table.value("interconnect.node_memory", _node(1)) == 16_000_000 * 1024
    assert table.value("interconnect.node_distances", _node(0)) == ("10", "21")


def test_node_ids_may_be_sparse_and_nodes_may_be_memory_only(tree: Tree) -> None:
    tree.cpus("0-3", "0-3")
    tree.nodes("0,4,17-18")
    tree.node(0, "0-1", "10 20 40 80")
    tree.node(4, "2-3", "20 10 80 40")
    tree.node(17, "", "40 80 10 99")
    tree.node(18, "", "80 40 99 10", kilobytes=0)
    table = tree.facts()
    assert table.value("interconnect.node_count") == 4
    assert table.value("interconnect.cpu_nodes") == ("0", "4")
    assert table.value("interconnect.memory_nodes") == ("0", "4", "17")
    assert table.value("interconnect.node_nearest_cpus", _node(17)) == "0-1"
    assert table.value("interconnect.node_nearest_cpus", _node(18)) == "2-3"
    assert table.value("interconnect.node_cpus", _node(17)) == ""


def test_a_node_of_memory_that_tells_no_distance_has_no_nearest_cpus(tree: Tree) -> None:
    tree.cpus("0", "0")
    tree.nodes("0-1")
    tree.node(0, "0", "10 20")
    tree.node(1, "", "10")
    fact = tree.facts().find("interconnect.node_nearest_cpus", _node(1))
    assert fact is not None
    assert fact.value is None
    assert fact.reason == "node 1 has no CPU and tells no distance"


def test_a_kernel_without_numa_says_so(tree: Tree) -> None:
    tree.cpus("0-1", "0-1")
    fact = tree.facts().find("interconnect.node_count")
    assert fact is not None
    assert fact.reason == "this kernel has no /sys/devices/system/node"


def test_without_lists_the_directories_tell(tree: Tree) -> None:
    for cpu, online in ((0, None), (1, "1"), (2, "0")):
        tree.write(f"sys/devices/system/cpu/cpu{cpu}/topology/core_id", "0\n")
        if online:
            tree.write(f"sys/devices/system/cpu/cpu{cpu}/online", online + "\n")
    tree.write("sys/devices/system/node/node3/cpumap", "00000000,00000003\n")
    sheet = tree.sheet()
    topology = read_topology(sheet)
    assert topology.online == {0, 1}
    assert topology.cpus == {3: frozenset({0, 1})}


def test_damaged_files_give_absent_facts_and_no_exception(tree: Tree) -> None:
    tree.cpus("0-banana", "nonsense")
    tree.nodes("0")
    tree.write("sys/devices/system/node/node0/cpulist", b"\xff\xfe\n")
    tree.write("sys/devices/system/node/node0/distance", "near\n")
    table = tree.facts()
    assert table.value("cpu.count") is None
    assert table.value("interconnect.node_distances", _node(0)) is None


@pytest.mark.parametrize(("text", "cpus"), [("", set()), ("f", {0, 1, 2, 3}), ("1,00000001", {0, 32}), ("2,0", {33})])
def test_masks_are_words_of_32_bits(text: str, cpus: set[int]) -> None:
    assert parse_cpumask(text) == cpus


@pytest.mark.parametrize("text", ["1_0", "+f", "0xf", "-1", "f f", "١", ",f", "mask"])
def test_other_texts_are_no_masks(text: str) -> None:
    with pytest.raises(ValueError, match="is no mask"):
        parse_cpumask(text)


@pytest.mark.parametrize(
    ("flags", "product", "expected"),
    [
        ("fpu sse hypervisor", "Standard PC (Q35)", "unknown"),
        ("fpu sse", "PowerEdge", "none"),
        ("hypervisor", "KVM", "kvm"),
    ],
)
def test_the_hypervisor_is_told_by_flag_and_product(tree: Tree, flags: str, product: str, expected: str) -> None:
    tree.write("proc/cpuinfo", f"processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: {flags}\n\n")
    tree.write("sys/class/dmi/id/product_name", product + "\n")
    sheet = tree.sheet()
    read_identity(sheet)
    expected = "unknown" if flags == "hypervisor" and expected != "kvm" else expected
    assert sheet.value("cpu.model", HOST) == "Some CPU"
    assert sheet.value("cpu.hypervisor", HOST) == expected
