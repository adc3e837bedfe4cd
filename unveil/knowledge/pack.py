"""Read the files of a knowledge base into memory, once and bounded, so that everything judged is one snapshot.

Nothing here knows YAML; the watcher's rescans use it as it is, and so does a lint that finds its last result again. For
the latter's sake this imports no `dataclasses`, and `Problem` only when there is one.

Refused, each as a problem (K008): what leaves the knowledge base through a symbolic link, what is no regular file (a
pipe would block for ever), what is too large or too much.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from unveil.knowledge.content import FINGERPRINTS, INVENTORY, PLAYBOOKS
from unveil.records.digest import sha256

if TYPE_CHECKING:
    from unveil.records.problem import Problem

MAX_FILE_BYTES = 1_000_000
MAX_FILES = 20_000
MAX_BYTES = 100_000_000  # of all files together: ten times what ten thousand honest ones have
MAX_DEPTH = 8
_SETTLED_S = 1.0  # after which a time of change is another one for whatever comes next

READ_FOLDERS = (FINGERPRINTS, PLAYBOOKS, INVENTORY)


class Pack(NamedTuple):
    """The files of a knowledge base at one time.

    Attributes:
        root: as the person named it; messages begin with it.
        real: the same without symbolic links.
        files: content by path below the root, with ``/``, sorted by path.
        digests: sha256 of each file, hexadecimal.
        digest: sha256 over paths and contents of all files.
        problems: what could not or should not be read.
    """

    root: Path
    real: Path
    files: dict[str, bytes]
    digests: dict[str, str]
    digest: str
    problems: tuple[Problem, ...]

    def shown(self, relative: str) -> str:
        """Return the path of a file as messages name it."""
        return shown(self.root, relative)

    def under(self, folder: str, suffix: str) -> list[str]:
        """Return the paths below a folder that end in a suffix, sorted."""
        return [path for path in self.files if path.startswith(f"{folder}/") and path.endswith(suffix)]


def shown(root: Path, relative: str) -> str:
    """Return a path below a root as messages name it; of hundreds of files, so without pathlib."""
    return relative if str(root) == "." else f"{str(root).rstrip('/')}/{relative}"


def read_pack(root: Path) -> Pack:
    """Return every file below ``fingerprints/``, ``playbooks/`` and ``inventory/``.

    Hidden files, backups and byte code are left out, so that an editor's swap file is no change. A missing folder is
    a problem (K011), not an error.
    """
    real = Path(os.path.realpath(root))
    reading = _Reading(root, real)
    for name in READ_FOLDERS:
        if (real / name).is_dir():
            reading.folder(name, depth=0)
        elif name != INVENTORY:
            reading.add("K011", name, f"there is no {name}/ folder", "--kb names the folder that holds it")
    files = dict(sorted(reading.files.items()))
    digests = {path: sha256(content).hexdigest() for path, content in files.items()}
    whole = sha256()
    for path, digest in digests.items():
        whole.update(f"{path}\0{digest}\n".encode("utf-8", "surrogateescape"))
    for problem in reading.problems:
        whole.update(f"{problem.file}\0{problem.check}\n".encode("utf-8", "surrogateescape"))
    return Pack(
        root=root, real=real, files=files, digests=digests, digest=whole.hexdigest(), problems=tuple(reading.problems)
    )


def stamp_of(root: Path) -> str:
    """Return what the kernel says of the same files, a fraction of the cost of reading them; empty while it is too new.

    The same text again means the same contents: whoever writes into a file, or puts another in its place, moves its
    time of change, which nobody can set. A time is a few milliseconds long, so that of what was just changed the text
    says nothing yet.
    """
    real = Path(os.path.realpath(root))
    reading = _Reading(root, real, contents=False)
    for name in READ_FOLDERS:
        if (real / name).is_dir():
            reading.folder(name, depth=0)
    if any(abs(time.time() - changed_ns / 1e9) < _SETTLED_S for *_, changed_ns in reading.stamps):
        return ""
    return sha256(repr((str(real), reading.stamps)).encode()).hexdigest()


class _Reading:
    """The state of one walk, which notes contents, or what the kernel says of each file and folder."""

    def __init__(self, root: Path, real: Path, *, contents: bool = True) -> None:
        self.root = root
        self.real = real
        self.contents = contents
        self.stamps: list[tuple[str, int, int, int, int]] = []  # path, device, inode, size, time of change
        self.files: dict[str, bytes] = {}
        self.problems: list[Problem] = []
        self.bytes = 0
        self.visited: set[tuple[int, int]] = set()
        self.full = False

    def shown(self, relative: str) -> str:
        return shown(self.root, relative)

    def add(self, check: str, relative: str, what: str, hint: str = "", *, warning: bool = False) -> None:
        from unveil.records.problem import Gravity, Problem

        gravity = Gravity.WARNING if warning else Gravity.ERROR
        self.problems.append(
            Problem(file=self.shown(relative), line=1, column=1, check=check, what=what, hint=hint, gravity=gravity)
        )

    def folder(self, relative: str, *, depth: int) -> None:
        try:
            with os.scandir(f"{self.real}/{relative}") as found:  # names, kinds and paths in one call
                entries = sorted(found, key=lambda entry: entry.name)
            about = Path(self.real, relative).stat()
        except OSError as error:
            self.add("K008", relative, f"cannot be read: {error.strerror}")
            return
        if (about.st_dev, about.st_ino) in self.visited or depth > MAX_DEPTH:
            self.add("K008", relative, "the folder is nested too deeply, or part of itself")
            return
        self.visited.add((about.st_dev, about.st_ino))
        self.stamp(relative, about)
        if about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX:
            self.add("K009", relative, "everyone may write into the folder", "chmod o-w", warning=True)
        for entry in entries:
            if not entry.name.startswith(".") and not entry.name.endswith("~") and entry.name != "__pycache__":
                self.entry(entry, f"{relative}/{entry.name}", depth)

    def entry(self, entry: os.DirEntry[str], relative: str, depth: int) -> None:
        if entry.is_symlink() and not Path(os.path.realpath(entry.path)).is_relative_to(self.real):
            self.add("K008", relative, "a symbolic link that leaves the knowledge base", "copy the file instead")
            return
        try:
            folder = entry.is_dir()
        except OSError as error:  # a link that leads back to itself
            self.add("K008", relative, f"cannot be read: {error.strerror}")
            return
        if folder:
            self.folder(relative, depth=depth + 1)
        elif len(self.files) < MAX_FILES and self.bytes <= MAX_BYTES:
            self.file(entry.path, relative)
        elif not self.full:
            self.full = True
            self.add("K008", relative, f"more than {MAX_FILES:,} files, or than {MAX_BYTES:,} bytes in all")

    def stamp(self, relative: str, about: os.stat_result) -> None:
        self.stamps.append((relative, about.st_dev, about.st_ino, about.st_size, about.st_ctime_ns))

    def file(self, path: str, relative: str) -> None:
        try:
            if not self.contents:
                self.stamp(relative, os.stat(path))  # noqa: PTH116  # of hundreds of files, so without pathlib
                self.files[relative] = b""
                return
            # Not blocking: opening a pipe would wait for a writer.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                about = os.fstat(descriptor)
                regular = stat.S_ISREG(about.st_mode)
                content = _whole(descriptor, about.st_size) if regular and about.st_size <= MAX_FILE_BYTES else b""
            finally:
                os.close(descriptor)
        except OSError as error:
            said = "no such device" if error.errno == errno.ENXIO else error.strerror
            self.add("K008", relative, f"cannot be read: {said}")
            return
        if not regular:
            self.add("K008", relative, "not a regular file", "a knowledge base is plain files")
            return
        if (size := max(about.st_size, len(content))) > MAX_FILE_BYTES:
            self.add("K008", relative, f"the file has {size:,} bytes", f"at most {MAX_FILE_BYTES:,} are read")
            return
        if about.st_mode & stat.S_IWOTH:
            self.add("K009", relative, "everyone may write the file", "chmod o-w", warning=True)
        self.files[relative] = content
        self.bytes += len(content)


def _whole(descriptor: int, size: int) -> bytes:
    """Return a file to its end, which may have moved since its size was taken; little more than what is allowed."""
    content = os.read(descriptor, size + 1)  # a file object makes three calls more, and there are hundreds of files
    while len(content) != size and len(content) <= MAX_FILE_BYTES and (more := os.read(descriptor, MAX_FILE_BYTES)):
        content += more
    return content
