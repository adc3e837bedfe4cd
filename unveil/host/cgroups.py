"""Which cgroups are followed: found again every two seconds, so the walk must be cheap.

A directory is listed only when its status changed (the kernel counts the children in the link count), else it costs
one ``stat``. What is inside a container, a virtual machine or a job is its own affair and not looked at.

Source: fs/kernfs/inode.c for the link count; Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from time import thread_time_ns
from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_mounts import find_cgroup_mounts
from unveil.host.facts.cgroup_names import identify
from unveil.host.facts.cgroup_walk import MAX_CGROUPS, cgroup_key
from unveil.host.facts.sheet import number, plain

if TYPE_CHECKING:
    import os

    from unveil.host.facts.cgroup_mounts import Hierarchy
    from unveil.host.root import HostRoot

DEEPEST = 6
"""user.slice / user / session / slice / scope of a rootless container is the deepest that is common."""
MOST_WALKED = 512
"""Cgroups of one tree that are looked at in one walk."""

_YOUNG_NS = 30_000_000_000
_RANKED_NS = 60_000_000_000  # how often the weights are looked at while no cgroup comes or goes
_WEIGHED_AT_A_TIME = 32
_HEAVIER = 1.5  # than one that is followed must be what takes its place: to follow others costs new plans everywhere
_THOROUGH = 4  # walks, of which one looks at what can have no children, too
_COSTS = 3  # walks whose cost is remembered
_TIMES_ITS_COST = 2000  # half a thousandth of a core: five hundred containers are looked at every few seconds
_USE_FILES = ("memory.current", "memory.usage_in_bytes", "cpuacct.usage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cgroup:
    """One cgroup.

    Attributes:
        key: its path below the hierarchy, as text that can be stored anywhere: ``/kubepods/pod1``.
        path: the same path as it stands on disk.
        inode: tells it from an earlier one of the same path.
    """

    key: str
    path: str
    inode: int


@dataclass(slots=True)
class _Node:
    status: tuple[int, int, int]
    children: tuple[str, ...]
    first_ns: int
    closed: bool  # nobody looks whether it has children
    use: float = 0.0
    weighed_ns: int | None = None


@dataclass(slots=True)
class CgroupTree:
    """The cgroups below one mount.

    Attributes:
        chosen: those that are followed, by path; the root is left out, as it is the host.
    """

    root: HostRoot
    mount: str
    chosen: tuple[Cgroup, ...] = ()
    _nodes: dict[str, _Node] = field(default_factory=dict)
    _ranked_ns: int | None = None
    _walks: int = 0

    def walk(self, now_ns: int) -> bool:
        """Look for new and vanished cgroups and choose which ones to follow; True when they are others than before.

        What comes or goes shows in its parent's status, unless one takes the place of another between two walks: that
        is seen a few walks later.
        """
        self._walks += 1
        resting = self._ranked_ns is None or now_ns - self._ranked_ns < _RANKED_NS
        if resting and self._stands():
            return False
        before, self._nodes = self._nodes, {}
        self._visit("", before, now_ns)
        paths = [path for path in self._nodes if path]
        if len(paths) > MAX_CGROUPS:
            self._ranked_ns = now_ns
            paths = self._weightiest(now_ns)
        else:
            self._ranked_ns = None
        chosen = tuple(
            Cgroup(key=cgroup_key(path), path=path, inode=self._nodes[path].status[0]) for path in sorted(paths)
        )
        if chosen == self.chosen:
            return False
        self.chosen = chosen
        return True

    def _stands(self) -> bool:
        """Tell whether every cgroup that is to be looked at is there as before."""
        thorough = self._walks % _THOROUGH == 0
        try:
            return bool(self._nodes) and all(
                _status(self.root.stat(self.mount + path)) == node.status
                for path, node in self._nodes.items()
                if thorough or not node.closed
            )
        except OSError:
            return False

    def _visit(self, path: str, before: dict[str, _Node], now_ns: int, *, afresh: bool = False) -> bool:
        """Take in a cgroup and those below it; False when it is gone.

        Args:
            afresh: the parent has changed.
        """
        if len(self._nodes) >= MOST_WALKED:
            return True
        known = before.get(path)
        if known is not None and known.closed and not afresh and self._walks % _THOROUGH:
            self._nodes[path] = known
            return True
        try:
            status = _status(self.root.stat(self.mount + path))
            listed = known is None or known.status != status
            children = self._list(path) if known is None or listed else known.children
        except OSError:
            return False
        if known is None or known.status[0] != status[0]:
            known = _Node(status, children, now_ns, closed=_is_closed(path))
        known.status, known.children = status, children
        self._nodes[path] = known
        gone = [child for child in children if not self._visit(f"{path}/{child}", before, now_ns, afresh=listed)]
        if gone and not listed:  # one went and another came: as many children as before, but others
            try:
                known.children = self._list(path)
            except OSError:
                return True
            for child in set(known.children).difference(children):
                self._visit(f"{path}/{child}", before, now_ns)
        return True

    def _list(self, path: str) -> tuple[str, ...]:
        return () if _is_closed(path) else self.root.directories(self.mount + path)

    def _weightiest(self, now_ns: int) -> list[str]:
        """Return the leaves that matter most, with their parents, as many as may be followed.

        New ones come first, as they may become anything; then containers, virtual machines and jobs, then those that
        use most. One that is followed already is weighed heavier than it is, so that two of a size do not take turns.
        """
        leaves = [(path, node) for path, node in self._nodes.items() if path and not node.children]
        weighed = [leaf for leaf in leaves if leaf[1].weighed_ns is not None]
        longest_ago = sorted(weighed, key=lambda leaf: leaf[1].weighed_ns or 0)[:_WEIGHED_AT_A_TIME]
        for path, node in (*longest_ago, *(leaf for leaf in leaves if leaf[1].weighed_ns is None)):
            node.use, node.weighed_ns = self._use(path), now_ns
        following = {cgroup.path for cgroup in self.chosen}

        def weight(leaf: tuple[str, _Node]) -> tuple[int, int, float]:
            path, node = leaf
            if now_ns - node.first_ns < _YOUNG_NS:
                return 1, node.first_ns, 0.0
            return 0, -identify(cgroup_key(path)).rank, node.use * (_HEAVIER if path in following else 1.0)

        picked: dict[str, None] = {}
        for path, _ in sorted(leaves, key=weight, reverse=True):
            parts = path.split("/")
            lineage = ("/".join(parts[:end]) for end in range(2, len(parts) + 1))
            missing = [each for each in lineage if each not in picked]
            if len(picked) + len(missing) <= MAX_CGROUPS:
                picked.update(dict.fromkeys(missing))
        return list(picked)

    def _use(self, path: str) -> float:
        for name in _USE_FILES:
            try:
                return number(plain(self.root.read(f"{self.mount}{path}/{name}")))
            except (OSError, ValueError):
                continue
        return 0.0


def _status(seen: os.stat_result) -> tuple[int, int, int]:
    return seen.st_ino, seen.st_nlink, seen.st_mtime_ns


def _is_closed(path: str) -> bool:
    return path.count("/") >= DEEPEST or (path != "" and identify(cgroup_key(path)).is_unit)


class CgroupTrees:
    """The trees of a host, one for each mount, walked together.

    Attributes:
        cpu: where ``cpu.stat`` is, None where the host has none; likewise *accounting* (``cpuacct.usage``, version 1
            only), *memory* and *unified* (pressure, and I/O in version 2). Each is looked up by itself: hosts mix
            versions.
        changes: how often others than before were chosen.
    """

    def __init__(self, root: HostRoot) -> None:
        mounts = find_cgroup_mounts(root)
        self.cpu = mounts.by_controller.get("cpu") or mounts.unified  # CPU time is told even without the controller
        self.accounting = mounts.by_controller.get("cpuacct")
        self.memory = mounts.by_controller.get("memory")
        self.unified = mounts.unified
        used = [each for each in (self.cpu, self.accounting, self.memory, self.unified) if each is not None]
        self._trees = {hierarchy.mount: CgroupTree(root, hierarchy.mount) for hierarchy in used}
        self.changes = 0
        self._due_ns = -(1 << 62)
        self._costs_ns: deque[int] = deque(maxlen=_COSTS)

    def walk(self, now_ns: int) -> None:
        """Walk every tree, unless that would cost too much so soon after the last time."""
        if now_ns < self._due_ns:
            return
        began_ns = thread_time_ns()
        for tree in self._trees.values():
            self.changes += tree.walk(now_ns)
        self._costs_ns.append(thread_time_ns() - began_ns)
        if len(self._costs_ns) == _COSTS:  # the least: whatever else fell into one is not the walk's cost
            self._due_ns = now_ns + min(self._costs_ns) * _TIMES_ITS_COST

    def followed(self, hierarchy: Hierarchy) -> tuple[Cgroup, ...]:
        """Return the cgroups of one of the hierarchies that are followed."""
        return self._trees[hierarchy.mount].chosen

    def keys(self) -> tuple[str, ...]:
        """Return the keys of all cgroups that are followed, sorted."""
        return tuple(sorted({cgroup.key for tree in self._trees.values() for cgroup in tree.chosen}))
