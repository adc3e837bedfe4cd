"""Where a setting lies in the file system: an address to a path that is proven to stay where it may be.

Below any root, so that a container (``--host-root /host``), a test's tree and the live host use the same code. Links
are resolved first and the result is judged: ``/sys/class/net/eth0/…`` leads elsewhere below ``/sys`` and is fine, a
link out of the root, or out of the few places that a remediation may change, is refused.

Sources: proc(5) for mountinfo; kernel documentation admin-guide/cgroup-v1, admin-guide/cgroup-v2.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from unveil.errors import RefusedError, SourceAbsentError
from unveil.remediation.setting import Address, Scheme, sysctl_path

_FILE_PLACES = ("sys", "proc/sys", "proc/irq")
_OCTAL = re.compile(r"\\([0-7]{3})")  # mountinfo writes blanks as \040


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """A mounted cgroup hierarchy.

    Attributes:
        controllers: of v1; empty for v2, which serves every controller that no v1 hierarchy holds.
        root: the cgroup that is seen at the mount point (not ``/`` within a cgroup namespace or a bind mount).
        mount_point: absolute, as the host sees it.
    """

    controllers: frozenset[str]
    root: str
    mount_point: str
    unified: bool


def parse_mountinfo(text: str) -> tuple[Hierarchy, ...]:
    """Return the cgroup hierarchies of a mountinfo file, in its order."""
    found = []
    for line in text.splitlines():
        left, dash, right = line.partition(" - ")
        fields, rest = left.split(" "), right.split(" ")
        if not dash or len(fields) < 6 or len(rest) < 3 or rest[0] not in ("cgroup", "cgroup2"):
            continue
        root, mount_point = (_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), field) for field in fields[3:5])
        unified = rest[0] == "cgroup2"
        controllers = frozenset() if unified else frozenset(rest[2].split(","))
        found.append(Hierarchy(controllers=controllers, root=root, mount_point=mount_point, unified=unified))
    return tuple(found)


class Places:
    """Resolves addresses below one root.

    Args:
        root: holds ``proc`` and ``sys``.
    """

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        self.root = os.path.realpath(root)
        self.live = self.root == "/"

    def path(self, address: Address) -> str:
        """Return the resolved path of a setting that is a file.

        Raises:
            RefusedError: it would leave the places that a remediation may change.
            SourceAbsentError: the controller is not mounted on this host.
        """
        match address.scheme:
            case Scheme.FILE:
                return self._within(address.key, _FILE_PLACES, address)
            case Scheme.SYSCTL:
                return self._within(f"proc/sys/{sysctl_path(address.key)}", ("proc/sys",), address)
            case Scheme.IRQ:
                return self._within(f"proc/irq/{address.key}/{address.item}", ("proc/irq",), address)
            case Scheme.CGROUP:
                base = self._hierarchy(address)
                return self._within(f"{base}/{address.key}/{address.item}", (base,), address)
            case Scheme.ETHTOOL | Scheme.SERVICE | Scheme.IRQBALANCE if not self.live:  # there files stand for them
                return self._within(f"{address.scheme}/{address.key}/{address.item}", (address.scheme,), address)
            case _:
                raise RefusedError(f"{address} is no file", hint="it is read and written through the driver")

    def _within(self, relative: str, places: tuple[str, ...], address: Address) -> str:
        real = os.path.realpath(os.path.join(self.root, relative.lstrip("/")))  # noqa: PTH118  # text, not a path object: hot and plain
        bases = [os.path.realpath(os.path.join(self.root, place.lstrip("/"))) for place in places]  # noqa: PTH118
        inside = any(real.startswith(base.rstrip("/") + "/") for base in bases)
        below_root = self.live or real.startswith(self.root + "/")
        bases_below_root = self.live or all(base.startswith(self.root + "/") for base in bases)
        if not (inside and below_root and bases_below_root):
            raise RefusedError(f"{address} leads out of where a remediation may change anything, to {real!a}")
        return real

    def _hierarchy(self, address: Address) -> str:
        """Return the mount point of the controller's hierarchy, below the root, without a leading slash."""
        controller = address.item.partition(".")[0]
        hierarchies = parse_mountinfo(self._mountinfo())
        chosen = next((each for each in hierarchies if controller in each.controllers), None)
        chosen = chosen or next((each for each in hierarchies if each.unified), None)
        if chosen is not None:
            if chosen.root not in ("/", "") and not chosen.root.startswith("/.."):
                raise RefusedError(f"{address}: this process sees only the cgroups below {chosen.root!a}")
            return chosen.mount_point.lstrip("/")
        for base in (
            f"sys/fs/cgroup/{controller}",
            "sys/fs/cgroup",
        ):  # a tree without mountinfo: a test's, a captured one
            if os.path.isdir(os.path.join(self.root, base)):  # noqa: PTH112, PTH118
                return base
        raise SourceAbsentError(f"{address}: no hierarchy with the controller {controller} is mounted")

    def _mountinfo(self) -> str:
        # Through another root /proc/self is not us, or not there: the mounts that count are those of its init.
        for process in ("self",) if self.live else ("1", "self"):
            try:
                with open(f"{self.root}/proc/{process}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
                    return file.read()
            except OSError:
                continue
        return ""
