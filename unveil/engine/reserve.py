"""Reserve: room on the disk that is kept for when there is none, so that a rollback can still be written down."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BYTES = 1 << 20  # steps of a hundred runs, with SQLite's log of them


class Reserve:
    """A file that holds room, and is removed when the room is needed.

    Args:
        path: of the file; nothing else uses it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def hold(self) -> bool:
        """Make it whole where there is room for that and as much again; return whether it is."""
        try:
            if self._path.exists() and self._path.stat().st_blocks * 512 >= BYTES:
                return True
            there = os.statvfs(self._path.parent)
            if there.f_bavail * there.f_frsize < 2 * BYTES:
                return False
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, BYTES)
            finally:
                os.close(descriptor)
        except OSError:  # full, or a file system without it: then there is no reserve
            return False
        return True

    def spend(self) -> bool:
        """Give the room free; return whether there was any."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True
