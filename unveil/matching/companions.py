"""Which other entities belong to an entity: the node of a GPU or NIC, the home node of a cgroup, the NIC of a GPU.

A clause about another kind of entity than its fingerprint's (``entity: node`` in a fingerprint per GPU) is evaluated
on the companion, and the remediation finds it among the bindings of the match. Where a host does not tell which one it
is, or two are equally near, there is no companion: nothing is guessed.

======  ==========================  ==============================================================================
of a    there can be                which
======  ==========================  ==============================================================================
cpu     node                        `cpu.node`
disk    node                        `storage.node`
nic     node, gpu                   `network.nic_node`; the GPU that this NIC is the nearest of
gpu     node, nic, cgroup           `gpu.node`; the nearest NIC; the only cgroup whose processes use it
cgroup  node, gpu, nic              its home node; the only GPU its processes use, and that GPU's NIC
irq     node, nic, gpu, disk        the device that raises it, and that device's node
======  ==========================  ==============================================================================
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.records.entity import HOST, Entity, EntityKind, parse_entity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.fact import FactTable, FactValue

NODE_FACT: Mapping[EntityKind, str] = {
    EntityKind.CPU: "cpu.node",
    EntityKind.GPU: "gpu.node",
    EntityKind.NIC: "network.nic_node",
    EntityKind.DISK: "storage.node",
    EntityKind.CGROUP: "interconnect.cgroup_home_node",
}
"""The fact that names the node of an entity, by its kind."""

GPUS_FACT = "gpu.cgroup_gpus"
"""The fact that lists the GPUs that the processes of a cgroup use."""

REACHABLE: Mapping[EntityKind, frozenset[EntityKind]] = {
    EntityKind.HOST: frozenset(),
    EntityKind.NODE: frozenset(),
    EntityKind.CPU: frozenset({EntityKind.NODE}),
    EntityKind.DISK: frozenset({EntityKind.NODE}),
    EntityKind.NIC: frozenset({EntityKind.NODE, EntityKind.GPU}),
    EntityKind.GPU: frozenset({EntityKind.NODE, EntityKind.NIC, EntityKind.CGROUP}),
    EntityKind.CGROUP: frozenset({EntityKind.NODE, EntityKind.GPU, EntityKind.NIC}),
    EntityKind.IRQ: frozenset({EntityKind.NODE, EntityKind.NIC, EntityKind.GPU, EntityKind.DISK}),
}
"""What kinds of companion an entity of a kind can have, the host left out, which belongs to all."""

_PCI = re.compile(r"(?P<domain>[0-9a-f]{4,8}):(?P<bus>[0-9a-f]{2}):", re.IGNORECASE)


def companions(entity: Entity, facts: FactTable) -> dict[EntityKind, Entity]:
    """Return the entity itself, the host, and whatever facts tell to belong to it, by kind."""
    found = {EntityKind.HOST: HOST, entity.kind: entity}
    if entity.kind is EntityKind.IRQ and (device := _device(entity, facts)) is not None:
        found[device.kind] = device
        _add(found, _node(device, facts))
        return found
    _add(found, _node(entity, facts))
    match entity.kind:
        case EntityKind.GPU:
            _add(found, _nic_of(entity, facts))
            _add(found, _cgroup_of(entity, facts))
        case EntityKind.NIC:
            served = [gpu for gpu in _of_fact("gpu.pci", facts) if _nic_of(gpu, facts) == entity]
            _add(found, served[0] if len(served) == 1 else None)
        case EntityKind.CGROUP:
            gpu = _gpu_of(entity, facts)
            _add(found, gpu)
            _add(found, None if gpu is None else _nic_of(gpu, facts))
    return found


def bindings(entity: Entity, facts: FactTable) -> dict[str, str]:
    """Return what a match hands to a remediation: kind → key, of the entity and its companions; no key for the host."""
    return {str(kind): other.key for kind, other in companions(entity, facts).items() if kind is not EntityKind.HOST}


def _add(found: dict[EntityKind, Entity], other: Entity | None) -> None:
    if other is not None:
        found.setdefault(other.kind, other)


def _node(entity: Entity, facts: FactTable) -> Entity | None:
    name = NODE_FACT.get(entity.kind)
    node = None if name is None else facts.value(name, entity)
    if isinstance(node, float | int) and not isinstance(node, bool) and node >= 0:
        return Entity(EntityKind.NODE, f"{node:.0f}")
    return None


def _device(irq: Entity, facts: FactTable) -> Entity | None:
    """Return the device that raises an interrupt."""
    told = facts.value("cpu.irq_device", irq)
    if not isinstance(told, str):
        return None
    try:
        device = parse_entity(told)
    except ValueError:
        return None
    return device if device.kind in REACHABLE[EntityKind.IRQ] else None


def _gpu_of(cgroup: Entity, facts: FactTable) -> Entity | None:
    """Return the GPU of a cgroup that uses just one."""
    listed = facts.value(GPUS_FACT, cgroup)
    return Entity(EntityKind.GPU, listed[0]) if isinstance(listed, tuple) and len(listed) == 1 else None


def _cgroup_of(gpu: Entity, facts: FactTable) -> Entity | None:
    """Return the cgroup of a GPU that just one uses."""
    users = [fact.entity for fact in facts.of(GPUS_FACT) if isinstance(fact.value, tuple) and gpu.key in fact.value]
    return users[0] if len(users) == 1 else None


def _nic_of(gpu: Entity, facts: FactTable) -> Entity | None:
    """Return the NIC whose bus number is nearest to the GPU's on the same domain and node, if just one is.

    Boards put each GPU and the NIC that serves it behind one PCIe switch, and firmware numbers the buses behind a
    switch one after another (PCI Express Base Specification, configuration of bridges: secondary to subordinate bus).
    """
    here = _bus(facts.value("gpu.pci", gpu))
    node = facts.value("gpu.node", gpu)
    if here is None:
        return None
    distances: dict[Entity, int] = {}
    for nic in _of_fact("network.nic_pci", facts):
        there = _bus(facts.value("network.nic_pci", nic))
        if there is None or there[0] != here[0] or facts.value("network.nic_node", nic) != node:
            continue
        distances[nic] = abs(there[1] - here[1])
    nearest = [nic for nic, distance in distances.items() if distance == min(distances.values())]
    return nearest[0] if len(nearest) == 1 else None


def _of_fact(name: str, facts: FactTable) -> list[Entity]:
    return [fact.entity for fact in facts.of(name) if fact.value is not None]


def _bus(address: FactValue | None) -> tuple[int, int] | None:
    """Return domain and bus of a PCI address such as ``0000:18:00.0``."""
    found = _PCI.match(address) if isinstance(address, str) else None
    return None if found is None else (int(found["domain"], 16), int(found["bus"], 16))
