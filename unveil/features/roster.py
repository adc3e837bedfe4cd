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
Own = tuple[tuple[EntityKind, frozenset[str]], ...]  # devices that stand for something of their own
Pairs = tuple[tuple[str, str], ...]  # the labels of a channel
SPAN = 1 << 24  # more columns than any block has

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
_DEVICES = frozenset((EntityKind.NIC, EntityKind.DISK))


class Shelf:
    """The channels of one block's layout by metric. Where things come and go mostly one block changes at a time, and
    the others keep what was found out about theirs.
    """

    __slots__ = ("_groups", "channels", "keys")

    def __init__(self, block: int, layout: Layout) -> None:
        self.channels: dict[str, dict[Pairs, int]] = {}  # metric → labels → code
        self.keys: dict[str, set[str]] = {kind: set() for kind in KINDS}
        self._groups: dict[tuple[object, ...], Mapping[str, list[int]]] = {}
        for code, channel in enumerate(layout.channels, start=block * SPAN):
            self.channels.setdefault(channel.metric, {}).setdefault(channel.labels, code)
            for label, key in channel.labels:
                if label in self.keys:
                    self.keys[label].add(key)

    def groups(self, channels: Channels, kind: EntityKind, own: Own) -> Mapping[str, list[int]]:
        """Return the codes of a selection by key of an entity; those of the host have the empty one.

        Args:
            own: the devices that alone count.
        """
        selection = (channels.metric, channels.over, channels.where, channels.loose, kind, own)
        found = self._groups.get(selection)
        if found is None:
            found = self._groups[selection] = _grouped(channels, self.channels[channels.metric], kind, own)
        return found


class Roster:
    """The channels of the layouts of one window. A channel that is there twice counts once."""

    def __init__(
        self, layouts: Sequence[Layout], facts: FactTable, shelves: dict[tuple[int, Layout], Shelf] | None = None
    ) -> None:
        """Look through the layouts.

        Args:
            shelves: those of an earlier roster, which are used again; afterwards those of this one.
        """
        self.facts = facts
        known = {} if shelves is None else shelves
        mine = {each: known.get(each) or Shelf(*each) for each in enumerate(layouts)}
        known.clear()
        known.update(mine)
        self._homes: dict[str, list[Shelf]] = {}
        for shelf in mine.values():
            for metric in shelf.channels:
                self._homes.setdefault(metric, []).append(shelf)
        keys = {kind: set[str]().union(*(shelf.keys[kind] for shelf in mine.values())) for kind in KINDS}
        self._keys = {kind: tuple(sorted(found)) for kind, found in keys.items()}
        self._entities = {kind: tuple(Entity(kind, key) for key in found) for kind, found in self._keys.items()}
        self._entities[EntityKind.HOST] = (HOST,)
        own = {kind: frozenset(self._counted_keys(kind)) for kind in KINDS}
        self._own: Own = tuple((kind, own[kind]) for kind in sorted(_DEVICES))
        self._counted = {
            kind: tuple(entity for entity in self._entities[kind] if entity.key in own[kind]) for kind in KINDS
        }
        self._counted[EntityKind.HOST] = ()
        self._candidates: dict[tuple[str, tuple[str, ...]], Mapping[str, Sequence[tuple[Labels, int]]]] = {}
        self._found: dict[tuple[Channels, EntityKind], Mapping[str, list[int]]] = {}

    def entities(self, kind: EntityKind) -> tuple[Entity, ...]:
        """Return every entity of a kind that some channel names, in a fixed order; the host is always there."""
        return self._entities.get(kind, ())

    def counted(self, kind: EntityKind) -> tuple[Entity, ...]:
        """Return those that stand for something of their own: no bridge, no bond, no LVM volume, no root cgroup."""
        return self._counted.get(kind, ())

    def places(self, channels: Channels, entity: Entity) -> list[Place] | None:
        """Return where the channels stand that a selection means for an entity, as `codes` does."""
        found = self.codes(channels, entity)
        return None if found is None else [divmod(code, SPAN) for code in found]

    def codes(self, channels: Channels, entity: Entity) -> list[int] | None:
        """Return where the channels stand that a selection means for an entity: each as ``SPAN * block + column``.

        None when there are none, or nobody knows which they are; nothing, when they are known and none of them is
        such as was asked for (no interrupt of the NIC is far from it): the sum over them is zero.
        """
        if channels.pick is not None:
            picked = channels.pick.choose(self.facts, entity)
            if picked is None:
                return None
            groups = self._by_first_label(channels)
            candidates = [each for key in sorted(picked.keys) for each in groups.get(key, ())]
            return [code for labels, code in candidates if picked.fit(labels)] if candidates else None
        kind = EntityKind.HOST if channels.whole_for(entity.kind) else entity.kind
        return self.groups(channels, kind).get(entity.key if kind is entity.kind else "")

    def groups(self, channels: Channels, kind: EntityKind) -> Mapping[str, list[int]]:
        """Return the codes of a selection that facts have no say in, by key of the entities of a kind."""
        homes = self._homes.get(channels.metric, ())
        all_count = kind is not EntityKind.HOST or channels.every or _DEVICES.isdisjoint(channels.over)
        own = () if all_count else self._own
        if len(homes) == 1:
            return homes[0].groups(channels, kind, own)
        found = self._found.get((channels, kind))
        if found is None:
            found = self._found[channels, kind] = _grouped(channels, self._channels(channels.metric), kind, own)
        return found

    def _by_first_label(self, channels: Channels) -> Mapping[str, Sequence[tuple[Labels, int]]]:
        name = (channels.metric, channels.over)
        if name not in self._candidates:
            groups: dict[str, list[tuple[Labels, int]]] = defaultdict(list)
            for labels, code in _eligible(channels, self._channels(channels.metric)):
                groups[labels[channels.over[0]]].append((labels, code))
            self._candidates[name] = groups
        return self._candidates[name]

    def _channels(self, metric: str) -> Mapping[Pairs, int]:
        homes = self._homes.get(metric, ())
        if len(homes) == 1:
            return homes[0].channels[metric]
        once: dict[Pairs, int] = {}
        for shelf in homes:
            for labels, code in shelf.channels[metric].items():
                once.setdefault(labels, code)
        return once

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


def _eligible(channels: Channels, there: Mapping[Pairs, int]) -> Iterable[tuple[Labels, int]]:
    labelled = len(channels.over) + len(channels.where)
    for pairs, code in there.items():
        if not channels.loose and len(pairs) != labelled:
            continue
        labels = dict(pairs)
        if all(label in labels for label in channels.over) and all(
            labels.get(label) == value for label, value in channels.where
        ):
            yield labels, code


def _grouped(channels: Channels, there: Mapping[Pairs, int], kind: EntityKind, own: Own) -> Mapping[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for labels, code in _eligible(channels, there):
        if all(labels[device] in keys for device, keys in own if device in labels):
            groups["" if kind is EntityKind.HOST else labels[kind]].append(code)
    return groups
