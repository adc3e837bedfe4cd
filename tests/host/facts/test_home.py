from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.records.entity import Entity, EntityKind
from unveil.records.fact import Fact

if TYPE_CHECKING:
    from conftest import Tree

A = "a1" * 32
KEY = f"/docker/{A}"


def _gpu(number: int, node: float | None, *pids: str) -> tuple[Fact, Fact]:
    entity = Entity(EntityKind.GPU, f"GPU-{number}")
    return (
        Fact(name="gpu.node", entity=entity, value=node, reason=None if node is not None else "unknown"),
        Fact(name="gpu.pids", entity=entity, value=pids),
    )


def _home(tree: Tree, *gpu_facts: Fact, key: str = KEY) -> tuple[object, str | None]:
    fact = tree.facts(*gpu_facts).find("interconnect.cgroup_home_node", Entity(EntityKind.CGROUP, key))
    assert fact is not None
    return fact.value, fact.reason


def _containers(tree: Tree) -> None:
    tree.mounts("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
    tree.cgroup("sys/fs/cgroup", cgroup__controllers="cpu memory")
    tree.cgroup(f"sys/fs/cgroup{KEY}")
    tree.cgroup("sys/fs/cgroup/idle")
    tree.write("proc/300/cgroup", f"0::{KEY}/init.scope\n")


def test_it_is_the_node_of_the_gpu_that_a_process_inside_uses(two_nodes: Tree) -> None:
    _containers(two_nodes)
    assert _home(two_nodes, *_gpu(0, 1.0, "300")) == (1.0, None)
    value, reason = _home(two_nodes, *_gpu(0, 1.0, "300"), key="/idle")
    assert (value, reason) == (None, "it uses no GPU, and the host's devices are on nodes 0, 1")
    used = two_nodes.facts(*_gpu(0, 1.0, "300"))
    assert used.value("gpu.cgroup_gpus", Entity(EntityKind.CGROUP, KEY)) == ("GPU-0",)
    assert used.find("gpu.cgroup_gpus", Entity(EntityKind.CGROUP, "/idle")) is None


def test_gpus_on_two_nodes_give_no_home(two_nodes: Tree) -> None:
    _containers(two_nodes)
    gpus = (*_gpu(0, 0.0, "300"), *_gpu(1, 1.0, "300"))
    assert _home(two_nodes, *gpus) == (None, "its GPUs are on different nodes: 0, 1")


def test_a_gpu_without_a_node_gives_no_home(two_nodes: Tree) -> None:
    _containers(two_nodes)
    assert _home(two_nodes, *_gpu(0, None, "300")) == (None, "a GPU it uses does not tell its node")


def test_processes_that_are_gone_or_not_numbers_are_passed_over(two_nodes: Tree) -> None:
    _containers(two_nodes)
    assert _home(two_nodes, *_gpu(0, 1.0, "301", "x", "../300"))[0] is None


def test_in_another_pid_namespace_the_numbers_mean_nothing(two_nodes: Tree) -> None:
    _containers(two_nodes)
    two_nodes.write("proc/2/comm", "bash\n")
    value, reason = _home(two_nodes, *_gpu(0, 1.0, "300"))
    assert value is None
    assert reason is not None
    assert "does not show the host's processes" in reason


def test_a_gpu_on_a_node_of_memory_belongs_to_the_nearest_cpus(two_nodes: Tree) -> None:
    _containers(two_nodes)
    two_nodes.nodes("0-2")
    two_nodes.node(0, "0-3", "10 21 80")
    two_nodes.node(1, "4-7", "21 10 40")
    two_nodes.node(2, "", "80 40 10")
    assert _home(two_nodes, *_gpu(0, 2.0, "300")) == (1.0, None)


def test_where_all_devices_are_on_one_node_everything_belongs_there(two_nodes: Tree) -> None:
    _containers(two_nodes)
    two_nodes.write("sys/devices/pci0000:00/0000:00:03.0/numa_node", "1\n")
    assert _home(two_nodes, key="/idle") == (1.0, None)
    assert _home(two_nodes, *_gpu(0, 1.0), key="/idle") == (1.0, None)


def test_one_nic_without_a_node_is_enough_to_know_nothing(two_nodes: Tree) -> None:
    _containers(two_nodes)
    two_nodes.write("sys/devices/pci0000:00/0000:00:03.0/numa_node", "-1\n")
    value, reason = _home(two_nodes, key="/idle")
    assert (value, reason) == (None, "it uses no GPU, and a NIC or GPU of the host does not tell its node")


def test_with_a_single_node_of_memory_there_is_no_other_home(tree: Tree) -> None:
    _containers(tree)
    tree.cpus("0", "0")
    tree.nodes("0")
    tree.node(0, "0", "10")
    assert _home(tree) == (0.0, None)


def test_in_version_1_the_memory_hierarchy_tells_the_cgroup(two_nodes: Tree) -> None:
    two_nodes.mounts("32 30 0:28 /part /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory")
    two_nodes.cgroup(f"sys/fs/cgroup/memory{KEY}")
    two_nodes.write("proc/300/cgroup", f"4:memory:/part{KEY}\n2:cpu,cpuacct:/elsewhere\n0::/\n")
    assert _home(two_nodes, *_gpu(0, 0.0, "300")) == (0.0, None)
