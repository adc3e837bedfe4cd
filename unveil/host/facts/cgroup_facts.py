"""Facts of many cgroups: which of them have any, whose turn it is to be looked at, and where each is at home.

Each time some of them are looked at; of the others what was read before stands. Found anew they are when all have had
their turn, or others are followed than before.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_walk import MAX_CGROUPS, cgroup_key, choose_cgroups, find_cgroups
from unveil.host.facts.cgroups import tell_cgroup, tell_dying
from unveil.host.facts.home import Home
from unveil.host.facts.looks import Looks
from unveil.host.facts.part import Part
from unveil.host.facts.sheet import FactSheet
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Collection

    from unveil.host.facts.cgroup_mounts import CgroupMounts
    from unveil.host.root import HostRoot

AT_A_TIME = 16
"""Cgroups that are looked at each time: with one reading in ten seconds, each of 64 has its turn every forty."""


class CgroupFacts:
    """What was read of the cgroups of one host.

    Attributes:
        keys: of those that have facts, at most ``MAX_CGROUPS`` (or as many as are followed, when that is more).
    """

    def __init__(self, root: HostRoot) -> None:
        self.keys: tuple[str, ...] = ()
        self._root = root
        self._mounts: CgroupMounts | None = None
        self._walk = Looks(root)
        self._there: dict[str, str] = {}  # key → path, of all
        self._holders: frozenset[str] = frozenset()  # keys of those that hold others
        self._preferred: frozenset[str] = frozenset()
        self._parts: dict[str, Part] = {}  # of those that have facts
        self._turn = 0
        self._rounds = 1  # readings in which each has its turn
        self._host = FactSheet(root)
        self._home = Home()

    def read(self, mounts: CgroupMounts, home: Home, follow: Collection[str]) -> bool:
        """Read those whose turn it is, and those that are new; True when something else is told than before.

        Args:
            follow: keys of the cgroups whose metrics are sampled: facts and metrics are of use only together.
        """
        preferred = frozenset((*home.users, *follow))
        if self._turn % self._rounds == 0 or preferred != self._preferred or mounts is not self._mounts:
            self._find(mounts, preferred, follow)
        mine = frozenset(self.keys[self._turn % self._rounds :: self._rounds])
        self._turn += 1
        before, self._parts = self._parts, {}
        changed = before.keys() != frozenset(self.keys)
        for key in self.keys:
            if (part := before.get(key)) is None:
                path, holds = self._there.get(key, key), key in self._holders
                told = partial(tell_cgroup, mounts=mounts, path=path, key=key, holds=holds)
                part = Part(self._root, told)
            elif key in mine:
                changed |= part.refresh()
            self._parts[key] = part
        host = self._tell_host(mounts)
        changed |= home != self._home or not host.says_the_same(self._host)
        self._home, self._host = home, host
        return changed

    def tell(self, sheet: FactSheet) -> None:
        """Write down what was read of each, and where it is at home."""
        sheet.take(self._host)
        for key, part in self._parts.items():
            sheet.take(part.sheet)
            _tell_home(sheet, Entity(EntityKind.CGROUP, key), self._home)

    def _find(self, mounts: CgroupMounts, preferred: frozenset[str], follow: Collection[str]) -> None:
        """Find all cgroups, and choose those that have facts."""
        if mounts != self._mounts:
            self._parts = {}
        same = mounts == self._mounts and self._walk.stand()
        if not same:
            self._walk = Looks(self._root)
            self._there = {cgroup_key(path): path for path in find_cgroups(self._walk, mounts)}
            before, self._holders = self._holders, frozenset(_above(path) for path in self._there.values())
            self._parts = {key: part for key, part in self._parts.items() if key not in before ^ self._holders}
        if not same or preferred != self._preferred:
            limit = max(MAX_CGROUPS, len(follow))
            there = {*self._there, *follow} if mounts.by_controller else set[str]()
            self.keys = choose_cgroups(there, prefer=preferred, limit=limit)
            self._rounds = max(1, -(-len(self.keys) // AT_A_TIME))
        self._mounts, self._preferred = mounts, preferred

    def _tell_host(self, mounts: CgroupMounts) -> FactSheet:
        sheet = FactSheet(self._root)
        if mounts.by_controller:
            sheet.tell("cpu.cgroup_count", float(len(self._there)))
            tell_dying(sheet, mounts)
        else:
            sheet.miss("cpu.cgroup_count", "no cgroup hierarchy with cpu, memory or cpuset is mounted")
        return sheet


def _above(path: str) -> str:
    """Return the key of the cgroup that holds another one; empty for the root."""
    return cgroup_key(path.rpartition("/")[0])


def _tell_home(sheet: FactSheet, entity: Entity, home: Home) -> None:
    node, reason = home.of(entity.key)
    if node is None:
        sheet.miss("interconnect.cgroup_home_node", reason, entity)
    else:
        sheet.tell("interconnect.cgroup_home_node", float(node), entity)
    if gpus := home.gpus.get(entity.key):
        sheet.tell("gpu.cgroup_gpus", tuple(sorted(gpus)), entity)
