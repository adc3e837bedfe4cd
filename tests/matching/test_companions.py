"""Companions of an entity, and what a remediation is handed of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.matching.companions import NODE_FACT, bindings, companions
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


def test_a_node_is_its_own_companion_and_the_host_hands_on_nothing(build: SimpleNamespace) -> None:
    node = Entity(EntityKind.NODE, "0")
    assert companions(node, build.facts()) == {EntityKind.HOST: HOST, EntityKind.NODE: node}
    assert bindings(HOST, build.facts()) == {}
