"""Which other entities belong to an entity: the node of a GPU or NIC, the home node of a cgroup.

A clause about another kind of entity than its fingerprint's (``entity: node`` in a fingerprint per GPU) is evaluated
on the companion, and the remediation finds it among the bindings of the match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.fact import FactTable

NODE_FACT: Mapping[EntityKind, str] = {
    EntityKind.CPU: "cpu.node",
    EntityKind.GPU: "gpu.node",
    EntityKind.NIC: "network.nic_node",
    EntityKind.DISK: "storage.node",
    EntityKind.CGROUP: "interconnect.cgroup_home_node",
}
"""The fact that names the node of an entity, by its kind."""


def companions(entity: Entity, facts: FactTable) -> dict[EntityKind, Entity]:
    """Return the entity itself, the host, and its node where a fact tells it, by kind."""
    found = {EntityKind.HOST: HOST, entity.kind: entity}
    name = NODE_FACT.get(entity.kind)
    node = None if name is None else facts.value(name, entity)
    if isinstance(node, float | int) and not isinstance(node, bool) and node >= 0:
        found[EntityKind.NODE] = Entity(EntityKind.NODE, f"{node:.0f}")
    return found


def bindings(entity: Entity, facts: FactTable) -> dict[str, str]:
    """Return what a match hands to a remediation: kind → key, of the entity and its companions; no key for the host."""
    return {str(kind): other.key for kind, other in companions(entity, facts).items() if kind is not EntityKind.HOST}
