"""Entity: the part of a host that a channel, feature, fact, match or episode is about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EntityKind(StrEnum):
    """What an entity is. The value is also the label that names it in channels and in `group_by`."""

    HOST = "host"
    CPU = "cpu"
    NODE = "node"
    GPU = "gpu"
    NIC = "nic"
    DISK = "disk"
    IRQ = "irq"
    CGROUP = "cgroup"


@dataclass(frozen=True, slots=True, order=True)
class Entity:
    """One instance: a kind and the key that names it for good.

    Keys are stable names, never positions: a GPU's UUID, a NIC's interface name, a CPU's or node's id, a
    cgroup's path below its hierarchy (``/kubepods/pod1``). The key of the host itself is empty.
    Keys of cgroups are chosen by tenants: hostile text.
    """

    kind: EntityKind
    key: str = ""

    def __str__(self) -> str:
        return str(self.kind) if self.kind is EntityKind.HOST else f"{self.kind}:{self.key}"


HOST = Entity(EntityKind.HOST)


def is_entity(text: str) -> bool:
    """Return whether a text names an entity: a known kind, with a key unless it is the host."""
    try:
        entity = parse_entity(text)
    except ValueError:
        return False
    return bool(entity.key) is (entity.kind is not EntityKind.HOST)


def parse_entity(text: str) -> Entity:
    """Return the entity that ``str(entity)`` wrote.

    Raises:
        ValueError: the text names no known kind.
    """
    kind, _, key = text.partition(":")
    return Entity(EntityKind(kind), key)
