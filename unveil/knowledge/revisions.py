"""A knowledge base as it is in a folder, or as it was in a revision of the git checkout around it."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import BadInputError
from unveil.knowledge.content import FINGERPRINTS
from unveil.knowledge.pack import READ_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMEOUT_S = 60


@contextmanager
def knowledge_at(where: str, root: Path) -> Iterator[Path]:
    """Give the folder of a knowledge base; one of a revision lasts as long as the context.

    Args:
        where: a folder that holds fingerprints/, else a revision as git knows it (``main``, ``HEAD~2``, a tag).
        root: a knowledge base in a git checkout; the same folder is taken from the revision.

    Raises:
        BadInputError: it is neither, or the revision has no knowledge base there.
    """
    folder = Path(where)
    if where and (folder / FINGERPRINTS).is_dir():
        yield folder
        return
    commit = _git(root, where, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{where}^{{commit}}").strip()
    there = _git(root, where, "ls-tree", "--name-only", commit.decode()).decode().split("\n")
    names = [name for name in READ_FOLDERS if name in there]
    if FINGERPRINTS not in names:
        raise BadInputError(f"{where} has no {FINGERPRINTS}/ where {root} has it", hint="name the folder with --kb")
    archive = _git(root, where, "archive", "--format=tar", commit.decode(), "--", *names)
    with tempfile.TemporaryDirectory(prefix="unveil-revision-") as scratch:
        try:
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                _unpack(tar, Path(scratch))
        except tarfile.TarError as error:
            raise BadInputError(f"{where} cannot be unpacked: {error}") from error
        yield Path(scratch)


def _unpack(tar: tarfile.TarFile, scratch: Path) -> None:
    """Write files and folders, and nothing else: ``extractall(filter=…)`` is not in Debian 12's Python 3.11.2.

    Raises:
        TarError: something that is neither a file nor a folder, or lies outside.
    """
    for member in tar:
        target = Path(os.path.normpath(scratch / member.name))
        if not target.is_relative_to(scratch):
            raise tarfile.TarError(f"{member.name} lies outside")
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
        elif (content := tar.extractfile(member) if member.isfile() else None) is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
        else:
            raise tarfile.TarError(f"{member.name} is neither a file nor a folder")


def _git(root: Path, where: str, *words: str) -> bytes:
    try:
        ended = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, check=False, timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError as error:
        what = f"{where} is no folder with {FINGERPRINTS}/, and git is not installed"
        raise BadInputError(what, hint="name two folders") from error
    except subprocess.TimeoutExpired as error:
        raise BadInputError(f"git did not answer within {_TIMEOUT_S} s about {where}") from error
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        what = f"{where} is neither a folder with {FINGERPRINTS}/ nor a revision of {root}"
        raise BadInputError(f"{what}{f': {said[-1]}' if said else ''}", hint="e.g. unveil kb diff main")
    return ended.stdout
