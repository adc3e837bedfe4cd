"""KeptFile: a kernel file that is read again and again, mostly one that stays open.

Nothing is then spent on looking it up, opening and closing it for each reading. A file that cannot be read is closed,
with the reason, and opened again later; one that the kernel or the driver does not support is left alone for good.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from unveil.host.facts.sheet import why
from unveil.host.parsers.shape import NOTHING, learn

if TYPE_CHECKING:
    from unveil.host.parsers.shape import Shape
    from unveil.host.root import HostRoot
    from unveil.host.source import Feed

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.ESRCH})
UNSUPPORTED = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENODATA, errno.EISDIR})

_LEAST = 4096
_MOST = 1 << 26  # more is no kernel table
_MOST_WHOLE = 1 << 16
_PAGE = 4096  # what the kernel fills before it answers with what it has, a record that does not fit left out

_pread = os.pread


class KeptFile:
    """One feed, open.

    Attributes:
        shape: what its texts look like, as far as is known.
        error: number of the error that closed it, 0 while it is open.
        reason: the same in words.
    """

    __slots__ = (
        "_brief",
        "_descriptor",
        "_pieces",
        "_root",
        "_size",
        "_turn",
        "error",
        "feed",
        "reason",
        "shape",
    )

    def __init__(self, root: HostRoot, feed: Feed) -> None:
        self.feed = feed
        self.shape: Shape = NOTHING
        self.error = 0
        self.reason = ""
        self._root = root
        self._descriptor = -1
        self._brief = not feed.kept
        self._turn = 0
        self._size = _LEAST
        self._pieces = not feed.whole
        self.open()

    @property
    def is_open(self) -> bool:
        """Tell whether it can be read."""
        return self._descriptor >= 0 or (self._brief and not self.error)

    @property
    def retried(self) -> bool:
        """Tell whether it is worth to open it again."""
        gone = self.feed.once and self.error in ABSENT
        return not self.is_open and self.error not in UNSUPPORTED and not gone

    @property
    def handle(self) -> tuple[int, int] | None:
        """Return (descriptor, bytes to ask for) of a file that stays open: what a bare ``pread`` takes."""
        return (self._descriptor, self._size) if self._descriptor >= 0 else None

    @property
    def surely_all(self) -> int:
        """Return how long an answer may be and be all of the file for sure: no record is longer than half a page."""
        return _PAGE // 2 if self._pieces else self._size - 1

    def open(self) -> None:
        """Open it, or keep the reason why not."""
        try:
            descriptor = self._root.open(self.feed.path)
        except OSError as error:
            self._give_up(error)
        except ValueError:  # a NUL in a name
            self._give_up(OSError(errno.EINVAL, ""))
        else:
            self.error, self.reason = 0, ""
            if self._brief:
                os.close(descriptor)
            else:
                self._descriptor = descriptor

    def close(self) -> None:
        """Close it. It may be opened again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read(self) -> bytes | None:
        """Return its text now, uncut; None where it cannot be read."""
        if self._brief:
            return self._read_briefly()
        if self._descriptor < 0:
            return None
        try:
            text = _pread(self._descriptor, self._size, 0)
            return text if len(text) <= self.surely_all else self._rest(text)
        except OSError as error:
            self._give_up(error)
            return None

    def _read_briefly(self) -> bytes | None:
        if self.error:
            return None
        if self.feed.own_way is not None:
            return self.feed.own_way()
        turns = self.feed.turns or (self.feed.path,)
        path = turns[self._turn % len(turns)]
        self._turn += 1
        try:
            return self._root.read(path) if self._pieces else self._whole(path)
        except OSError as error:
            if len(turns) == 1:  # of several, one (an offline CPU) must not take the others away
                self._give_up(error)
            return None

    def _whole(self, path: str) -> bytes:
        """Return a file that the kernel gives at once.

        Asked for little as long as that is all: a large buffer is mapped, and the short answer keeps a page of it.
        """
        text = self._root.head(path, self._size)
        if len(text) == self._size < _MOST_WHOLE:
            self._size = _MOST_WHOLE
            text = self._root.head(path, self._size)
        return text

    def cut(self, text: bytes) -> bytes:
        """Return a text as it is parsed; see ``Feed.cut``."""
        return text if self.feed.cut is None else self.feed.cut(text)

    def learn(self, text: bytes) -> Shape:
        """Take the shape of a text that was cut, and return it."""
        self.shape = learn(text, self.feed.parser)
        return self.shape

    def _rest(self, text: bytes) -> bytes:
        """Read on until nothing comes: the kernel may answer in pieces of a page."""
        parts, length = [text], len(text)
        while part := _pread(self._descriptor, self._size, length):
            parts.append(part)
            length += len(part)
            if length > _MOST:
                raise OSError(errno.EFBIG, "grows without end")
        if length >= self._size:
            self._size = length + length // 4 + _LEAST
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _give_up(self, error: OSError) -> None:
        self.close()
        self.error = error.errno or errno.EIO
        self.reason = why(error, self.feed.path)
