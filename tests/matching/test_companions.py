"""Companions of an entity, and what a remediation is handed of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.matching.companions import GPUS_FACT, NODE_FACT, REACHABLE, bindings, companions
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact_catalogue import FACTS

if TYPE_CHECKING:
    from types import SimpleNamespace


@pytest.mark.parametrize("kind", list(NODE_FACT))
def test_the_node_of_an_entity_comes_from_its_fact(kind: EntityKind, build: SimpleNamespace) -> None:
    entity = Entity(kind, "x")
    table = build.facts({(NODE_FACT[kind], entity): 1.0})
    assert companions(entity, table)[EntityKind.NODE] == Entity(EntityKind.NODE, "1")
    assert bindings(entity, table) == {str(kind): "x", "node": "1"}


@pytest.mark.parametrize("kind", list(NODE_FACT))
def test_every_fact_that_names_a_node_is_in_the_catalogue(kind: EntityKind) -> None:
    assert FACTS[NODE_FACT[kind]].per is kind
    assert FACTS[NODE_FACT[kind]].type == "number"


@pytest.mark.parametrize("value", [None, -1.0, True, "1"])
def test_an_entity_without_a_known_node_has_none(value: float | str | None, build: SimpleNamespace) -> None:
    nic = Entity(EntityKind.NIC, "eth0")
    assert bindings(nic, build.facts({("network.nic_node", nic): value})) == {"nic": "eth0"}


GPU, OTHER_GPU = Entity(EntityKind.GPU, "GPU-a"), Entity(EntityKind.GPU, "GPU-b")
NICS = tuple(Entity(EntityKind.NIC, f"ib{number}") for number in range(3))
POD = Entity(EntityKind.CGROUP, "/pod1")
BOARD = {
    ("gpu.pci", GPU): "0000:18:00.0", ("gpu.node", GPU): 0.0,
    ("gpu.pci", OTHER_GPU): "0000:2a:00.0", ("gpu.node", OTHER_GPU): 0.0,
    ("network.nic_pci", NICS[0]): "0000:1b:00.0", ("network.nic_node", NICS[0]): 0.0,
    ("network.nic_pci", NICS[1]): "0000:29:00.0", ("network.nic_node", NICS[1]): 0.0,
    ("network.nic_pci", NICS[2]): "0000:19:00.0", ("network.nic_node", NICS[2]): 1.0,
    (GPUS_FACT, POD): ("GPU-a",),
}  # fmt: skip


def test_the_nic_of_a_gpu_is_the_nearest_one_on_its_node(build: SimpleNamespace) -> None:
    table = build.facts(BOARD)
    assert bindings(GPU, table) == {"gpu": "GPU-a", "node": "0", "nic": "ib0", "cgroup": "/pod1"}
    assert bindings(OTHER_GPU, table) == {"gpu": "GPU-b", "node": "0", "nic": "ib1"}
    assert bindings(NICS[0], table) == {"nic": "ib0", "node": "0", "gpu": "GPU-a"}
    assert bindings(NICS[2], table) == {"nic": "ib2", "node": "1"}


def test_a_cgroup_belongs_to_the_gpu_it_uses_and_to_that_gpus_nic(build: SimpleNamespace) -> None:
    assert bindings(POD, build.facts(BOARD)) == {"cgroup": "/pod1", "gpu": "GPU-a", "nic": "ib0"}
    both = build.facts(BOARD | {(GPUS_FACT, POD): ("GPU-a", "GPU-b")})
    assert bindings(POD, both) == {"cgroup": "/pod1"}


def test_of_two_equally_near_nics_or_two_users_none_is_guessed(build: SimpleNamespace) -> None:
    near = BOARD | {
        ("network.nic_pci", NICS[1]): "0000:15:00.0",
        (GPUS_FACT, Entity(EntityKind.CGROUP, "/b")): ("GPU-a",),
    }
    assert bindings(GPU, build.facts(near)) == {"gpu": "GPU-a", "node": "0"}


@pytest.mark.parametrize(("device", "bound"), [("nic:ib0", {"nic": "ib0", "node": "0"}), ("odd:x", {}), ("", {})])
def test_an_interrupt_belongs_to_its_device(device: str, bound: dict[str, str], build: SimpleNamespace) -> None:
    irq = Entity(EntityKind.IRQ, "24")
    assert bindings(irq, build.facts(BOARD | {("cpu.irq_device", irq): device})) == {"irq": "24", **bound}


def test_every_companion_can_be_reached_and_no_other(build: SimpleNamespace) -> None:
    irq = Entity(EntityKind.IRQ, "24")
    table = build.facts(BOARD | {("cpu.irq_device", irq): "nic:ib0"})
    for entity in (GPU, OTHER_GPU, *NICS, POD, irq):
        found = set(companions(entity, table)) - {EntityKind.HOST, entity.kind}
        assert found <= REACHABLE[entity.kind]


def test_a_node_is_its_own_companion_and_the_host_hands_on_nothing(build: SimpleNamespace) -> None:
    node = Entity(EntityKind.NODE, "0")
    assert companions(node, build.facts()) == {EntityKind.HOST: HOST, EntityKind.NODE: node}
    assert bindings(HOST, build.facts()) == {}
