"""Where each cgroup controller is mounted: v1, v2, or both at once.

A host may have ``cpu`` in v1 and PSI in v2, so nothing is concluded from one controller for another. A cgroup has one
key, its path below the hierarchy, which is the same text in all of them.

Source: Documentation/admin-guide/cgroup-v1/cgroups.rst, cgroup-v2.rst; proc_pid_mountinfo(5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.host.root import HostRoot

# Controllers whose cgroups count: a tree of freezer, devices or of systemd's names alone limits nothing.
CONTROLLERS = ("cpu", "cpuacct", "memory", "cpuset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """One mounted hierarchy.

    Attributes:
        mount: folder, relative to the root: ``sys/fs/cgroup/cpu``.
        top: which cgroup the mount shows; ``/`` but in a container that sees only its own part.
        version: 1 or 2.
    """

    mount: str
    top: str
    version: int
    controllers: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupMounts:
    """The hierarchies of a host by controller."""

    by_controller: Mapping[str, Hierarchy] = field(default_factory=dict)
    unified: Hierarchy | None = None

    @property
    def layout(self) -> str:
        """Return ``v1``, ``v2``, ``hybrid`` (v1 controllers beside a v2 tree) or ``none``."""
        versions = {hierarchy.version for hierarchy in self.by_controller.values()}
        if self.unified is not None:
            versions.add(2)
        return {frozenset(): "none", frozenset({1}): "v1", frozenset({2}): "v2"}.get(frozenset(versions), "hybrid")

    def folder(self, controller: str, key: str) -> str | None:
        """Return the folder of a cgroup in a controller's hierarchy, None where the host has no such controller."""
        hierarchy = self.by_controller.get(controller)
        return None if hierarchy is None else f"{hierarchy.mount}{key}".rstrip("/")

    def version(self, controller: str) -> int | None:
        """Return the version of a controller's interface, None where the host has no such controller."""
        hierarchy = self.by_controller.get(controller)
        return None if hierarchy is None else hierarchy.version


def find_cgroup_mounts(root: HostRoot) -> CgroupMounts:
    """Find the hierarchies in the list of mounts; where that cannot be read, where they are by convention."""
    found: dict[str, Hierarchy] = {}
    unified = None
    for hierarchy in sorted(_mounted(root), key=_rank):
        if hierarchy.version == 2:
            unified = unified or hierarchy
        for controller in hierarchy.controllers:
            found.setdefault(controller, hierarchy)
    return CgroupMounts(by_controller=found, unified=unified)


def _rank(hierarchy: Hierarchy) -> tuple[bool, bool, int, str]:
    """Order mounts: whole before partial ones, v1 before v2 (a controller that v1 has is not v2's), short paths."""
    return hierarchy.top != "/", hierarchy.version == 2, len(hierarchy.mount), hierarchy.mount


def _mounted(root: HostRoot) -> Iterator[Hierarchy]:
    # Below another root, process 1 sees the host's mounts while "self" is us, in our own namespace.
    lists = ("proc/self/mountinfo", "proc/1/mountinfo") if root.live else ("proc/1/mountinfo", "proc/self/mountinfo")
    for path in (*lists, "proc/self/mounts", "proc/mounts"):
        try:
            text = root.read(path).decode("utf-8", "surrogateescape")
        except OSError:
            continue
        found = tuple(_hierarchies(root, text, mountinfo=path.endswith("mountinfo")))
        if found:
            yield from found
            return
    yield from _by_convention(root)


def _hierarchies(root: HostRoot, text: str, *, mountinfo: bool) -> Iterator[Hierarchy]:
    for line in text.split("\n"):
        if "cgroup" not in line:
            continue
        entry = _mountinfo_entry(line) if mountinfo else _mounts_entry(line)
        if entry is None:
            continue
        top, mount, kind, options = entry
        mount = _within(root, mount)
        if kind == "cgroup2" and root.exists(f"{mount}/cgroup.controllers"):
            yield Hierarchy(mount=mount, top=top, version=2, controllers=_v2_controllers(root, mount))
        elif kind == "cgroup" and root.exists(mount):
            controllers = frozenset(options.split(",")).intersection(CONTROLLERS)
            yield Hierarchy(mount=mount, top=top, version=1, controllers=controllers)


def _mountinfo_entry(line: str) -> tuple[str, str, str, str] | None:
    """Return (root, mount point, type, options of the file system) of a line of mountinfo."""
    left, separator, right = line.partition(" - ")
    before, after = left.split(" "), right.split(" ")
    if not separator or len(before) < 6 or len(after) < 3:
        return None
    return _unescape(before[3]), _unescape(before[4]), after[0], after[2]


def _mounts_entry(line: str) -> tuple[str, str, str, str] | None:
    parts = line.split(" ")
    return ("/", _unescape(parts[1]), parts[2], parts[3]) if len(parts) >= 4 else None


def _unescape(text: str) -> str:
    """Return a path with its blanks back, which these lists write as octal numbers: ``\\040``."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _within(root: HostRoot, mount: str) -> str:
    if not root.live and mount.startswith(root.path + "/"):  # our own list of mounts, the host's tree mounted below us
        mount = mount[len(root.path) :]
    return mount.strip("/")


def _v2_controllers(root: HostRoot, mount: str) -> frozenset[str]:
    try:
        listed = root.read(f"{mount}/cgroup.controllers").decode("ascii", "replace").split()
        return frozenset(listed).intersection(CONTROLLERS)
    except OSError:
        return frozenset()


def _by_convention(root: HostRoot) -> Iterator[Hierarchy]:
    base = "sys/fs/cgroup"
    for mount in (base, f"{base}/unified"):
        if root.exists(f"{mount}/cgroup.controllers"):
            yield Hierarchy(mount=mount, top="/", version=2, controllers=_v2_controllers(root, mount))
    for controller in CONTROLLERS:
        if root.exists(f"{base}/{controller}/cgroup.procs") or root.exists(f"{base}/{controller}/tasks"):
            yield Hierarchy(mount=f"{base}/{controller}", top="/", version=1, controllers=frozenset({controller}))
