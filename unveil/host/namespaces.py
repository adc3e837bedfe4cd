"""Which of the cgroups that are followed have network namespaces of their own, and what these count.

Each namespace has its own ``snmp`` and ``netstat``, seen through any process in it: ``/proc/PID/net``. Their inode
numbers are those of the namespace's own entries in procfs, so that ``fstat`` on the open file tells whose counters it
holds: a PID that has become another process, or a process that went over to another namespace, is seen on the very
reading, and without the right to trace processes that ``/proc/PID/ns/net`` takes.

An open file below ``/proc/PID/net`` keeps its namespace alive after the container has ended, and with it the devices
in it. So each file is opened, read and closed.

Source: fs/proc/proc_net.c (``get_proc_task_net``, ``seq_open_net``), fs/proc/generic.c (``low_ino``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_names import identify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.host.cgroups import Cgroup, CgroupTrees
    from unveil.host.root import HostRoot

FILES = ("snmp", "netstat")
MOST_OF_ONE = 4
"""Namespaces of one cgroup that are read."""
AT_A_TIME = 8
"""Cgroups known already that are looked at again each time, in turn."""

_LOOKED_AT = 8  # processes of a cgroup, spread over the first thousand or so
_PIDS_BYTES = 8192
_COUNTERS_BYTES = 1 << 14
_CHILDREN = 8  # of a container without processes of its own (systemd runs in it), that are looked into
_DEEPEST = 2

Whose = tuple[int, ...]
"""Inode numbers of FILES."""
Texts = tuple[bytes, ...]
"""Of FILES."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A namespace, and a process that it is seen through."""

    whose: Whose
    pid: str


class Member:
    """A cgroup that may have namespaces of its own; the containers of a pod, which share one, are one together.

    Attributes:
        key: of the cgroup.
        unit: it is a container, a virtual machine, a job or a pod.
        folders: where processes are listed, below the root.
        places: its namespaces, as far as is known; sorted.
        others: namespaces that are the host's or another one's.
        hidden: it has processes, and none of them can be seen.
    """

    __slots__ = ("_before", "_root", "folders", "hidden", "key", "others", "places", "unit")

    def __init__(self, root: HostRoot, key: str) -> None:
        self._root = root
        self.key = key
        self.unit = False
        self.folders: list[str] = []
        self.places: tuple[Place, ...] = ()
        self.others: frozenset[Whose] = frozenset()
        self.hidden = False
        self._before: dict[Whose, Texts] = {}

    def find(self) -> None:
        """Look for its namespaces; those that are known stay, as of many processes others may be looked at now."""
        found = {
            place.whose: place.pid
            for place in self.places
            if place.whose not in self.others and _whose(self._root, f"proc/{place.pid}/net") == place.whose
        }
        listed = seen = len(found)
        for folder in self.folders:
            for pid in _spread(_pids(self._root, folder, _DEEPEST if self.unit else 0)):
                listed += 1
                whose = _whose(self._root, f"proc/{pid}/net")
                seen += whose is not None
                if whose is not None and whose not in self.others and len(found) < MOST_OF_ONE:
                    found.setdefault(whose, pid)
        self.hidden = bool(listed) and not seen
        self.places = tuple(sorted(Place(whose, pid) for whose, pid in found.items()))

    def read(self) -> tuple[Texts, ...]:
        """Return the texts of each of its places, which are found anew where one fails; empty where that fails too."""
        texts = self._read()
        if not texts:
            self.find()
            texts = self._read()
        return texts

    def _read(self) -> tuple[Texts, ...]:
        read = {place.whose: _texts(self._root, place, self._before.get(place.whose)) for place in self.places}
        self._before = {whose: texts for whose, texts in read.items() if texts is not None}
        return tuple(self._before.values()) if len(self._before) == len(read) else ()


class NetworkNamespaces:
    """The namespaces of a host's cgroups; one for each sampler.

    Attributes:
        hidden: how many containers, virtual machines, jobs and pods have processes that cannot be seen.
    """

    def __init__(self, root: HostRoot, cgroups: CgroupTrees) -> None:
        self.hidden = 0
        self._root = root
        self._cgroups = cgroups
        self._members: dict[str, Member] = {}
        self._turn = 0

    def look(self) -> tuple[Member, ...] | None:
        """Return the cgroups with namespaces of their own; each namespace belongs to one of them only.

        What was found before stands until it cannot be read, or its turn comes to be looked at again. Containers
        without any are looked at each time, as they begin in the namespace of whoever starts them.

        Returns:
            None where the host's own namespace is not known.
        """
        known = (_whose(self._root, folder) for folder in ("proc/1/net", "proc/net"))
        hosts = frozenset(whose for whose in known if whose is not None)
        if not hosts:
            return None
        new = self._follow()
        members = sorted(self._members.values(), key=lambda member: (not member.unit, member.key))
        turn = {members[(self._turn + step) % len(members)].key for step in range(min(AT_A_TIME, len(members)))}
        self._turn += AT_A_TIME
        taken = set(hosts)
        for member in members:
            member.others = frozenset(taken)
            if member.key in new or member.key in turn or (member.unit and not member.places):
                member.find()
            member.places = tuple(place for place in member.places if place.whose not in taken)
            taken.update(place.whose for place in member.places)
        for member in members:
            member.others = frozenset(taken.difference(place.whose for place in member.places))
        self.hidden = sum(member.hidden for member in members if member.unit)
        return tuple(member for member in members if member.places)

    def _follow(self) -> frozenset[str]:
        """Take in the cgroups that are followed now; return the keys of those that were not, or are others now."""
        folders: dict[str, list[str]] = {}
        units: set[str] = set()
        for mount, cgroup in _followed(self._cgroups):
            key = _owner(cgroup.key)
            folders.setdefault(key, []).append(mount + cgroup.path)
            if key != cgroup.key or identify(key).is_unit:
                units.add(key)
        new = {
            key for key, places in folders.items() if key not in self._members or self._members[key].folders != places
        }
        self._members = {key: self._members.get(key) or Member(self._root, key) for key in folders}
        for key, member in self._members.items():
            member.folders, member.unit = folders[key], key in units
        return frozenset(new)


def _followed(cgroups: CgroupTrees) -> list[tuple[str, Cgroup]]:
    """Return each cgroup that is followed, with the mount of the first hierarchy that has it."""
    found: dict[str, tuple[str, Cgroup]] = {}
    for hierarchy in (cgroups.cpu, cgroups.memory, cgroups.accounting, cgroups.unified):
        if hierarchy is not None:
            for cgroup in cgroups.followed(hierarchy):
                found.setdefault(cgroup.key, (hierarchy.mount, cgroup))
    return list(found.values())


def _owner(key: str) -> str:
    """Return whose a container's namespace is: its pod's, where it is in one."""
    parent = key.rpartition("/")[0]
    if identify(key).is_unit and parent and identify(parent).runtime == "kubernetes":
        return parent
    return key


def _pids(root: HostRoot, folder: str, deeper: int) -> list[str]:
    """Return processes of a cgroup, or of those below where it has none; 0 is one that cannot be seen."""
    try:
        text = root.head(f"{folder}/cgroup.procs", _PIDS_BYTES)
    except OSError:  # gone, or a threaded one, whose processes are listed above it
        return []
    pids = [line.decode("ascii") for line in text[: text.rfind(b"\n") + 1].split() if line.isdigit()]
    if pids or not deeper:
        return pids
    try:
        children = root.directories(folder)[:_CHILDREN]
    except OSError:
        return []
    return [pid for child in children for pid in _pids(root, f"{folder}/{child}", deeper - 1)]


def _spread(pids: Sequence[str]) -> Sequence[str]:
    return pids[:: -(-len(pids) // _LOOKED_AT) or 1]


def _whose(root: HostRoot, folder: str) -> Whose | None:
    """Return whose counters are in a folder, None where it cannot be seen."""
    try:
        return tuple(root.stat(f"{folder}/{name}").st_ino for name in FILES)
    except OSError:
        return None


def _texts(root: HostRoot, place: Place, before: Texts | None) -> Texts | None:
    """Return the counters of a place, None where its process is gone or in another namespace.

    Args:
        before: what they were. Where no segment came or went since, nothing happened to one either, and the long file
            of the two is not read: it is what costs.
    """
    texts: list[bytes] = []
    for name, inode in zip(FILES, place.whose, strict=True):
        try:
            descriptor = root.open(f"proc/{place.pid}/net/{name}")
            try:
                if os.fstat(descriptor).st_ino != inode:
                    return None
                texts.append(os.read(descriptor, _COUNTERS_BYTES))
                if before is not None and texts == [before[0]]:
                    return before
            finally:
                os.close(descriptor)
        except OSError:
            return None
    return tuple(texts)
