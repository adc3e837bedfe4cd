"""Read the files of a knowledge base into memory, once and bounded, so that everything judged is one snapshot.

Nothing here knows YAML; the watcher's rescans use it as it is. Refused, each as a problem (K008): what leaves the
knowledge base through a symbolic link, what is no regular file (a pipe would block for ever), what is too large.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from unveil.knowledge.content import FINGERPRINTS, INVENTORY, PLAYBOOKS
from unveil.records.problem import Gravity, Problem

MAX_FILE_BYTES = 1_000_000
MAX_FILES = 20_000
MAX_DEPTH = 8

_READ_FOLDERS = (FINGERPRINTS, PLAYBOOKS, INVENTORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
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
    files: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    digest: str = ""
    problems: tuple[Problem, ...] = ()

    def shown(self, relative: str) -> str:
        """Return the path of a file as messages name it."""
        return str(self.root / relative)

    def under(self, folder: str, suffix: str) -> list[str]:
        """Return the paths below a folder that end in a suffix, sorted."""
        return [path for path in self.files if path.startswith(f"{folder}/") and path.endswith(suffix)]


def read_pack(root: Path) -> Pack:
    """Return every file below ``fingerprints/``, ``playbooks/`` and ``inventory/``.

    Hidden files, backups and byte code are left out, so that an editor's swap file is no change. A missing folder is
    a problem (K011), not an error.
    """
    real = Path(os.path.realpath(root))
    reading = _Reading(root, real)
    for name in _READ_FOLDERS:
        if (real / name).is_dir():
            reading.folder(name, depth=0)
        elif name != INVENTORY:
            reading.add("K011", name, f"there is no {name}/ folder", "--kb names the folder that holds it")
    files = dict(sorted(reading.files.items()))
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    whole = hashlib.sha256()
    for path, digest in digests.items():
        whole.update(f"{path}\0{digest}\n".encode("utf-8", "surrogateescape"))
    for problem in reading.problems:
        whole.update(f"{problem.file}\0{problem.check}\n".encode("utf-8", "surrogateescape"))
    return Pack(
        root=root, real=real, files=files, digests=digests, digest=whole.hexdigest(), problems=tuple(reading.problems)
    )


class _Reading:
    """The state of one walk."""

    def __init__(self, root: Path, real: Path) -> None:
        self.root = root
        self.real = real
        self.files: dict[str, bytes] = {}
        self.problems: list[Problem] = []
        self.visited: set[tuple[int, int]] = set()

    def add(self, check: str, relative: str, what: str, hint: str = "", gravity: Gravity = Gravity.ERROR) -> None:
        self.problems.append(
            Problem(
                file=str(self.root / relative), line=1, column=1, check=check, what=what, hint=hint, gravity=gravity
            )
        )

    def folder(self, relative: str, *, depth: int) -> None:
        try:
            about = os.stat(self.real / relative)  # noqa: PTH116 - one call serves permissions and identity
            names = sorted(os.listdir(self.real / relative))  # noqa: PTH208 - names, not paths
        except OSError as error:
            self.add("K008", relative, f"cannot be read: {error.strerror}")
            return
        if (about.st_dev, about.st_ino) in self.visited or depth > MAX_DEPTH:
            self.add("K008", relative, "the folder is nested too deeply, or part of itself")
            return
        self.visited.add((about.st_dev, about.st_ino))
        if about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX:
            self.add("K009", relative, "everyone may write into the folder", "chmod o-w", Gravity.WARNING)
        for name in names:
            if not name.startswith(".") and not name.endswith("~") and name != "__pycache__":
                self.entry(f"{relative}/{name}", depth)

    def entry(self, relative: str, depth: int) -> None:
        path = self.real / relative
        if path.is_symlink():
            target = Path(os.path.realpath(path))
            if not target.is_relative_to(self.real):
                self.add("K008", relative, "a symbolic link that leaves the knowledge base", "copy the file instead")
                return
        if path.is_dir():
            self.folder(relative, depth=depth + 1)
        elif len(self.files) >= MAX_FILES:
            if len(self.files) == MAX_FILES:
                self.add("K008", relative, f"more than {MAX_FILES:,} files")
        else:
            self.file(relative)

    def file(self, relative: str) -> None:
        try:
            # Not blocking: opening a pipe would wait for a writer.
            descriptor = os.open(self.real / relative, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            said = "no such device" if error.errno == errno.ENXIO else error.strerror
            self.add("K008", relative, f"cannot be read: {said}")
            return
        with os.fdopen(descriptor, "rb") as stream:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                self.add("K008", relative, "not a regular file", "a knowledge base is plain files")
                return
            content = b"" if about.st_size > MAX_FILE_BYTES else stream.read(MAX_FILE_BYTES + 1)
        if max(about.st_size, len(content)) > MAX_FILE_BYTES:
            size = max(about.st_size, len(content))
            self.add("K008", relative, f"the file has {size:,} bytes", f"at most {MAX_FILE_BYTES:,} are read")
            return
        if about.st_mode & stat.S_IWOTH:
            self.add("K009", relative, "everyone may write the file", "chmod o-w", Gravity.WARNING)
        self.files[relative] = content
