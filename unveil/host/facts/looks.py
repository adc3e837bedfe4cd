"""Looks: what was looked at on a host, and what was seen there; to look again tells whether that still stands.

What follows from some files is the same while they read the same. To read them and compare is a fraction of what it
takes to make facts of them, and no file says without being read that it has changed: the kernel keeps no time of
change for settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.host.root import HostRoot

_Seen = TypeVar("_Seen")
_What = TypeVar("_What")

_USUAL = 256
_MOST = 16384


def content(root: HostRoot, path: str) -> bytes:
    """Return what a small file holds; the kernel gives each in one answer.

    It is asked for little first, as for a sysctl it clears as much memory as it is asked for.
    """
    data = root.head(path, _USUAL)
    return data if len(data) < _USUAL else root.head(path, _MOST)


class Looks:
    """What was looked at, in this order."""

    __slots__ = ("_seen", "root")

    def __init__(self, root: HostRoot) -> None:
        self.root = root
        self._seen: list[tuple[Callable[[HostRoot, Any], object], Any, object]] = []

    def see(self, how: Callable[[HostRoot, _What], _Seen], what: _What) -> _Seen:
        """Look at something, and remember what was seen.

        Args:
            how: a function of the root and of *what*, whose answers can be compared.

        Raises:
            OSError: as *how* does; that is remembered, too.
        """
        try:
            seen = how(self.root, what)
        except OSError as error:
            self._seen.append((how, what, error.errno))
            raise
        self._seen.append((how, what, seen))
        return seen

    def take(self, others: Looks) -> None:
        """Take over what others saw."""
        self._seen += others._seen

    def stand(self) -> bool:
        """Look at everything again until something is not as it was; True when all is."""
        root = self.root
        for how, what, seen in self._seen:
            try:
                now = how(root, what)
            except OSError as error:
                now = error.errno
            if now != seen:
                return False
        return True
