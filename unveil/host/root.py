"""HostRoot: the one place that joins paths of procfs, sysfs and cgroupfs below ``--host-root``.

The same code so reads the live host (``/``), a host mounted into a container (``/host``), a captured tree and a tree
that a test made. Below any other root than ``/`` no link is followed out of it: a captured tree is data, and its links
must not lead a reader to the files of the machine it is read on.
"""

from __future__ import annotations

import errno
import os
import stat as modes
import time

_CHUNK = 1 << 14  # the kernel answers by the page; a large buffer is mapped, and a short answer keeps a page of it
_MOST = 1 << 26  # more is no kernel table
_REMEMBERED_S = 30.0
_MOST_FOLDERS = 4096
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # a fifo in a captured tree must not hang the reader


class HostRoot:
    """A tree that holds ``proc`` and ``sys``.

    All paths are relative to it, with ``/`` between components and no leading one: ``proc/stat``. Every method but
    ``exists`` and ``names`` raises the ``OSError`` of the system call, because its number tells *absent* from
    *forbidden* from *unsupported*.
    """

    def __init__(self, path: str | os.PathLike[str] = "/") -> None:
        self.path = os.path.realpath(path)
        self._live = self.path == "/"
        self._folders: dict[str, str] = {}  # folder → where it really is
        self._since_s = 0.0
        self._prefix = "/" if self._live else self.path + "/"

    def __repr__(self) -> str:
        return f"HostRoot({self.path!r})"

    @property
    def live(self) -> bool:
        """Tell whether this is the root of the machine we run on."""
        return self._live

    def join(self, relative: str) -> str:
        """Return the absolute path, links below another root than ``/`` resolved.

        Raises:
            OSError: EXDEV when a link leads out of the root.
        """
        relative = relative.lstrip("/")
        if self._live:
            return self._prefix + relative
        folder, _, name = relative.rpartition("/")
        if name in ("", ".", ".."):
            return self._resolved(relative)
        joined = f"{self._folder(folder)}/{name}"
        try:
            linked = modes.S_ISLNK(os.lstat(joined).st_mode)
        except OSError:
            return joined  # whatever is wrong with it, opening will tell
        return self._resolved(relative) if linked else joined

    def _folder(self, relative: str) -> str:
        """Return where a folder really is; remembered for a while, as a host's files lie in few folders."""
        now_s = time.monotonic()
        if now_s - self._since_s > _REMEMBERED_S or len(self._folders) > _MOST_FOLDERS:
            self._folders.clear()
            self._since_s = now_s
        real = self._folders.get(relative)
        if real is None:
            real = self._folders[relative] = self._resolved(relative)
        return real

    def _resolved(self, relative: str) -> str:
        real = os.path.realpath(self._prefix + relative)
        if real != self.path and not real.startswith(self._prefix):
            raise OSError(errno.EXDEV, "the link leads out of the host root", relative)
        return real

    def open(self, relative: str) -> int:
        """Return a read-only file descriptor, closed on exec; the caller closes it."""
        return os.open(self.join(relative), _OPEN)

    def read(self, relative: str) -> bytes:
        """Return the whole content of a file; one that grows without end is an error (EFBIG)."""
        descriptor = self.open(relative)
        try:
            data = os.read(descriptor, _CHUNK)
            parts, length = [data], len(data)
            while data := os.read(descriptor, _CHUNK):  # kernel files may answer short: only an empty read ends one
                parts.append(data)
                length += len(data)
                if length > _MOST:
                    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), relative)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        finally:
            os.close(descriptor)

    def head(self, relative: str, size: int) -> bytes:
        """Return the first bytes of a file, at most *size*: one system call, for long files such as proc/cpuinfo."""
        descriptor = self.open(relative)
        try:
            return os.read(descriptor, size)
        finally:
            os.close(descriptor)

    def list(self, relative: str) -> tuple[str, ...]:
        """Return the names in a directory, sorted."""
        return tuple(sorted(os.listdir(self.join(relative))))  # noqa: PTH208  # names, not Paths

    def names(self, relative: str) -> tuple[str, ...]:
        """Return the names in a directory, sorted; none where it cannot be listed, for whatever reason."""
        try:
            return self.list(relative)
        except OSError:
            return ()

    def directories(self, relative: str) -> tuple[str, ...]:
        """Return the names of the directories in a directory, links left out, sorted."""
        with os.scandir(self.join(relative)) as entries:
            return tuple(sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False)))

    def exists(self, relative: str) -> bool:
        """Tell whether a path is there and stays within the root."""
        try:
            os.stat(self.join(relative))  # noqa: PTH116  # one system call without a Path object, as everywhere here
        except (OSError, ValueError):
            return False
        return True

    def stat(self, relative: str) -> os.stat_result:
        """Return the status of the file behind a path."""
        return os.stat(self.join(relative))  # noqa: PTH116  # as above

    def mode(self, relative: str) -> int:
        """Return the permission bits of a file."""
        return modes.S_IMODE(self.stat(relative).st_mode)

    def readlink(self, relative: str) -> str:
        """Return the text of a link, as it stands."""
        parent, _, name = relative.rpartition("/")
        return os.readlink(f"{self.join(parent)}/{name}")  # noqa: PTH115  # the text of the link, not a Path

    def resolve(self, relative: str) -> str:
        """Return the path of what a link stands for, relative to the root."""
        real = os.path.realpath(self.join(relative), strict=True)
        return real[len(self._prefix) :]
