"""What lint found last time, kept in the user's cache folder under everything that it depends on.

A result is found again only when the files, where they lie, the day (filters expire), the checks themselves and the
Python that ran them are the same. Whatever is odd about a kept result (torn, edited, of another owner, another version)
makes it unknown, never believed: then lint works as if there were no cache, and so it does where none can be written.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.records.digest import sha256

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.knowledge.pack import Pack
    from unveil.knowledge.surroundings import Surroundings
    from unveil.records.problem import Problem

KEPT = 64
"""Results that are kept; the oldest go."""

_DAY_S = 86400.0
_NOTHING = b"[]"
_ROOMS = ("knowledge", "matching", "features", "records", "remediation", "host")
_PACKAGE = Path(__file__).parents[1]


def cache_folder() -> Path | None:
    """Return where results are kept, None where this user has no place of their own."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # noqa: PTH117  # the specification: a relative path is to be ignored
        home = os.environ.get("HOME", "")
        if not home:
            return None
        base = f"{home}/.cache"
    return Path(base) / "unveil" / "lint"


def result_key(pack: Pack, now_s: float, around: Surroundings | None = None) -> str:
    """Return the name of all that a result depends on.

    Args:
        now_s: seconds since the epoch.
        around: what stands around the folder, where it was looked at.
    """
    told = [
        sys.version, _code(), int(now_s // _DAY_S), str(pack.root), str(pack.real), pack.digest, pack.problems, around,
    ]  # fmt: skip
    return sha256(repr(told).encode()).hexdigest()


def _code() -> str:
    """Return a digest of the modules that checks are made of: a checkout has no version that changes with each edit."""
    seen = []
    for room in _ROOMS:
        for folder, names, files in os.walk(_PACKAGE / room):
            names[:] = sorted(name for name in names if name != "__pycache__")
            for name in sorted(files):
                if name.endswith(".py"):
                    about = os.stat(f"{folder}/{name}")  # noqa: PTH116  # hundreds of files, in milliseconds
                    seen.append(f"{name} {about.st_size} {about.st_mtime_ns}")
    return sha256("\n".join(seen).encode()).hexdigest()


def recall(folder: Path | None, key: str) -> tuple[Problem, ...] | None:
    """Return what was found last time, None when that is not known."""
    if folder is None:
        return None
    try:
        descriptor = os.open(folder / key, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or not stat.S_ISREG(about.st_mode) or about.st_mode & 0o022:
                return None
            digest, _, body = file.read(10_000_000).partition(b"\n")
        if digest.decode() != sha256(body).hexdigest():
            return None
        return _problems(body)
    except (OSError, ValueError, TypeError):
        return None


def keep(folder: Path | None, key: str, problems: Iterable[Problem]) -> None:
    """Keep a result for next time, if that can be done."""
    if folder is None:
        return
    import json
    import tempfile
    from dataclasses import astuple

    body = json.dumps([astuple(problem) for problem in problems]).encode()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(sha256(body).hexdigest().encode() + b"\n" + body)
            os.replace(name, folder / key)  # noqa: PTH105  # whole or not at all
        except OSError:
            os.unlink(name)  # noqa: PTH108
            raise
        _prune(folder)


def _prune(folder: Path) -> None:
    with os.scandir(folder) as entries:
        files = sorted(((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in entries), reverse=True)
    for _, path in files[KEPT:]:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108


def _problems(body: bytes) -> tuple[Problem, ...]:
    """Return what was kept; how findings are written is imported only where there are some."""
    if body == _NOTHING:
        return ()
    import json

    return tuple(_problem(fields) for fields in json.loads(body))


def _problem(fields: list[object]) -> Problem:
    from unveil.records.problem import Gravity, Problem

    file, line, column, check, what, hint, gravity = fields
    if not all(isinstance(each, str) for each in (file, check, what, hint, gravity)):
        raise TypeError("not a problem")
    return Problem(
        file=str(file), line=int(line), column=int(column), check=str(check), what=str(what), hint=str(hint),  # type: ignore[call-overload]  # a ValueError where it is none
        gravity=Gravity(str(gravity)),
    )  # fmt: skip
