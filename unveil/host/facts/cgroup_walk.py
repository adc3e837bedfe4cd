"""Which cgroups there are, which of them get facts, and which one a process belongs to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_mounts import CONTROLLERS
from unveil.host.facts.cgroup_names import identify

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.host.facts.cgroup_mounts import CgroupMounts
    from unveil.host.facts.looks import Looks
    from unveil.host.root import HostRoot

# A loaded Kubernetes node has some 110 pods; deeper or wider trees are something's leak, and must not stall us.
MAX_CGROUPS = 64
_MAX_FOLDERS = 4096
_MAX_DEPTH = 12


def cgroup_key(path: str) -> str:
    """Return the key of a cgroup's path: the same text, which for nearly all is all.

    A path with bytes that are no UTF-8 has them written out, and begins with two slashes, as no path does: a sibling
    whose name is the very text ``\\xff`` has another key. No setting is addressed by such a key (``parse_address``).
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        return "/" + os.fsencode(path).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return path


def find_cgroups(looks: Looks, mounts: CgroupMounts) -> tuple[str, ...]:
    """Return the paths of all cgroups down to the units of placement (containers, virtual machines, jobs), sorted.

    What is inside a unit is the unit's own affair and not looked at. A folder is listed here only: as long as its
    status is the same so are its children, as the kernel counts them in the link count and each is looked at itself.
    """
    folders = {mounts.by_controller[name].mount for name in CONTROLLERS if name in mounts.by_controller}
    paths: set[str] = set()
    budget = _MAX_FOLDERS
    for mount in sorted(folders):
        pending = [""]
        while pending and budget > 0:
            path = pending.pop()
            budget -= 1
            children = _children(looks, mount + path, closed=identify(path).is_unit or path.count("/") >= _MAX_DEPTH)
            below = [f"{path}/{name}" for name in children]
            paths.update(below)
            pending += below
    return tuple(sorted(paths))


def _children(looks: Looks, folder: str, *, closed: bool) -> tuple[str, ...]:
    """Return the names of the cgroups in one.

    Two links mean that there is none; file systems that do not count say one.
    """
    try:
        links = looks.see(_status, folder)[1]
        return () if closed or links == 2 else looks.root.directories(folder)
    except OSError:  # gone in the meantime, or not ours to read
        return ()


def _status(root: HostRoot, folder: str) -> tuple[int, int, int]:
    seen = root.stat(folder)
    return seen.st_ino, seen.st_nlink, seen.st_mtime_ns


def choose_cgroups(keys: Iterable[str], *, prefer: Iterable[str] = (), limit: int = MAX_CGROUPS) -> tuple[str, ...]:
    """Return the cgroups that get facts, at most *limit*, sorted.

    Args:
        prefer: keys that come first whatever they are: those that use a GPU, those whose metrics are followed.
    """
    preferred = frozenset(prefer)
    ranked = sorted(keys, key=lambda key: (key not in preferred, identify(key).rank, key))
    return tuple(sorted(ranked[:limit]))


def cgroup_of(root: HostRoot, mounts: CgroupMounts, pid: str) -> str | None:
    """Return the key of the unit that a process belongs to, None when it is gone or in the root cgroup.

    Processes of one container sit in cgroups below it; the unit is what is placed and limited.
    """
    try:
        text = root.read(f"proc/{int(pid)}/cgroup").decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None
    paths: dict[str, str] = {}  # by controller, "" for v2
    for line in text.split("\n"):
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if colon:
            paths.update(dict.fromkeys(controllers.split(","), path))
    for controller in ("memory", "cpu", "cpuset"):
        hierarchy = mounts.by_controller.get(controller)
        if hierarchy is None:
            continue
        path = paths.get("" if hierarchy.version == 2 else controller, "/")
        if hierarchy.top != "/" and (path + "/").startswith(hierarchy.top + "/"):
            path = path[len(hierarchy.top) :]
        if path.strip("/"):
            return cgroup_key(_unit(path))
    return None


def _unit(path: str) -> str:
    parts = path.strip("/").split("/")
    prefixes = ["/" + "/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    return next((prefix for prefix in prefixes if identify(prefix).is_unit), prefixes[-1])
