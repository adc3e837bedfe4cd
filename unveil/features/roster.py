"""Roster: which channels a window has, by metric and by entity. What a plan looks its columns up in."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from unveil.features.feature import Channels, Labels
    from unveil.records.fact import FactTable
    from unveil.records.sample import Layout

Place = tuple[int, int]  # block, column

# Interfaces that stand on others or lead into this host's own guests: their bytes are counted below already. Only
# asked where the facts do not tell; the name is then all there is.
_VIRTUAL_NIC = re.compile(
    r"(lo|veth|docker|br-|br\d|virbr|vnet|tap|tun|bond|team|vlan|vxlan|geneve|gre|erspan|sit|ip6tnl|ip6gre|tunl|ip_vti|"
    r"ip6_vti|dummy|ifb|nlmon|wg|cni|cali|cilium|lxc|lxdbr|flannel|kube-|ovs|podman|macv|ipvlan|teql)|.*[.:@]"
)
# Block devices on top of others, or without a medium.
_VIRTUAL_DISK = re.compile(r"(dm-|md\d|loop|ram|zram|nbd|sr\d|fd\d|drbd)")

PHYSICAL_NIC = "network.nic_physical"
KINDS: tuple[EntityKind, ...] = tuple(kind for kind in EntityKind if kind not in (EntityKind.HOST, EntityKind.IRQ))


class Roster:
    """The channels of the layouts of one window. A channel that is there twice counts once."""

    def __init__(self, layouts: Sequence[Layout], facts: FactTable) -> None:
        self.facts = facts
        self._channels: dict[str, list[tuple[dict[str, str], Place]]] = defaultdict(list)
        keys: dict[EntityKind, set[str]] = {kind: set() for kind in KINDS}
        seen = set()
        for block, layout in enumerate(layouts):
            for column, channel in enumerate(layout.channels):
                if channel in seen:
                    continue
                seen.add(channel)
                labels = dict(channel.labels)
                self._channels[channel.metric].append((labels, (block, column)))
                for kind, found in keys.items():
                    if kind in labels:
                        found.add(labels[kind])
        self._keys = {kind: tuple(sorted(found)) for kind, found in keys.items()}
        self._counted = {kind: frozenset(self._counted_keys(kind)) for kind in KINDS}
        self._candidates: dict[tuple[str, tuple[str, ...]], Mapping[str, Sequence[tuple[Labels, Place]]]] = {}
        self._found: dict[tuple[Channels, EntityKind], dict[str, list[Place]]] = {}

    def entities(self, kind: EntityKind) -> tuple[Entity, ...]:
        """Return every entity of a kind that some channel names, in a fixed order; the host is always there."""
        return (HOST,) if kind is EntityKind.HOST else tuple(Entity(kind, key) for key in self._keys[kind])

    def counted(self, kind: EntityKind) -> tuple[Entity, ...]:
        """Return those that stand for something of their own: no bridge, no bond, no LVM volume, no root cgroup."""
        return tuple(entity for entity in self.entities(kind) if entity.key in self._counted[kind])

    def places(self, channels: Channels, entity: Entity) -> list[Place] | None:
        """Return where the channels stand that a selection means for an entity.

        None when there are none, or nobody knows which they are; nothing, when they are known and none of them is
        such as was asked for (no interrupt of the NIC is far from it): the sum over them is zero.
        """
        if channels.pick is not None:
            picked = channels.pick.choose(self.facts, entity)
            if picked is None:
                return None
            groups = self._by_first_label(channels)
            candidates = [each for key in sorted(picked.keys) for each in groups.get(key, ())]
            return [place for labels, place in candidates if picked.fit(labels)] if candidates else None
        kind = EntityKind.HOST if channels.whole_for(entity.kind) else entity.kind
        found = self._found.get((channels, kind))
        if found is None:
            found = self._found[channels, kind] = self._grouped(channels, kind)
        return found.get(entity.key if kind is entity.kind else "")

    def _by_first_label(self, channels: Channels) -> Mapping[str, Sequence[tuple[Labels, Place]]]:
        name = (channels.metric, channels.over)
        if name not in self._candidates:
            groups: dict[str, list[tuple[Labels, Place]]] = defaultdict(list)
            for labels, place in self._eligible(channels):
                groups[labels[channels.over[0]]].append((labels, place))
            self._candidates[name] = groups
        return self._candidates[name]

    def _eligible(self, channels: Channels) -> Iterable[tuple[Labels, Place]]:
        for labels, place in self._channels.get(channels.metric, ()):
            if not channels.loose and len(labels) != len(channels.over) + len(channels.where):
                continue
            if all(label in labels for label in channels.over) and all(
                labels.get(label) == value for label, value in channels.where
            ):
                yield labels, place

    def _grouped(self, channels: Channels, kind: EntityKind) -> dict[str, list[Place]]:
        groups: dict[str, list[Place]] = defaultdict(list)
        for labels, place in self._eligible(channels):
            if kind is not EntityKind.HOST:
                groups[labels[kind]].append(place)
            elif all(
                labels[each] in self._counted[each] for each in (EntityKind.NIC, EntityKind.DISK) if each in labels
            ):
                groups[""].append(place)
        return groups

    def _counted_keys(self, kind: EntityKind) -> Iterable[str]:
        keys = self._keys[kind]
        if kind is EntityKind.NIC:
            physical = [key for key in keys if self._physical(key)]
            # Inside a container no interface has a device of its own; then the names decide.
            return physical or [key for key in keys if not _VIRTUAL_NIC.match(key)]
        if kind is EntityKind.DISK:
            return [key for key in keys if not _VIRTUAL_DISK.match(key)]
        if kind is EntityKind.CGROUP:
            return [key for key in keys if key != "/"]
        return keys

    def _physical(self, nic: str) -> bool:
        known = self.facts.value(PHYSICAL_NIC, Entity(EntityKind.NIC, nic))
        return known if isinstance(known, bool) else not _VIRTUAL_NIC.match(nic)
