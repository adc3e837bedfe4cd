"""What a run plays: copies of its playbook and of our Ansible modules, taken into its own directory when it starts.

Nothing is played from the knowledge base's own folder. What an editor or a `git pull` changes there while a run is
prepared or under way reaches no run, and nothing that merely lies beside a playbook (``library/``, ``group_vars/``,
plugins, which Ansible would find by itself) is taken along.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import RefusedError, UnwritableError
from unveil.records.digest import sha256

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PLAYED = "played"
MAX_LINKS = 40  # as many as Linux follows
MAX_BYTES = 1_000_000  # as much as a knowledge base's file may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The copies.

    Attributes:
        digests: path of each original → sha256 of what was copied, hexadecimal.
    """

    playbook: Path
    modules: Path
    digests: Mapping[str, str]


def take_along(playbook: Path, modules: Path, directory: Path) -> Played:
    """Copy a playbook and the modules below a run's directory, for its owner alone; earlier copies are replaced.

    Raises:
        RefusedError: one of them cannot be used, or someone less trusted may write it.
        UnwritableError: there is no room for the copies.
    """
    originals = [(playbook, PLAYED), *((each, f"{PLAYED}/modules") for each in sorted(modules.glob("*.py")))]
    for path in (modules, *(path for path, _ in originals)):
        refuse_open_to_others(path)
    contents = [(path, folder, _read(path)) for path, folder in originals]
    try:
        shutil.rmtree(directory / PLAYED, ignore_errors=True)
        for folder in (PLAYED, f"{PLAYED}/modules"):  # one by one: a mode does not hold for parents
            (directory / folder).mkdir(mode=0o700)
        for path, folder, content in contents:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(directory / folder / path.name, flags, 0o600), "wb") as copy:
                copy.write(content)
    except OSError as error:
        raise UnwritableError(
            f"the playbook cannot be copied to {directory} ({error.strerror}); nothing was changed",
            hint="make room in the state directory",
        ) from error
    digests = {
        os.path.join(os.path.realpath(path.parent), path.name): sha256(content).hexdigest()  # noqa: PTH118  # text: it is compared with texts
        for path, _, content in contents
    }
    return Played(playbook=directory / PLAYED / playbook.name, modules=directory / PLAYED / "modules", digests=digests)


def refuse_open_to_others(path: Path) -> None:
    """Refuse what less trusted users may write or replace: the executor acts from it, often as root.

    Every folder and link on the way to it counts. In a folder such as /tmp, where only the owner of a file may replace
    it, the owner counts. An access list that lets somebody write counts as everyone: whom it names is not looked at.

    Raises:
        RefusedError: it is not there; or something of it belongs to neither root nor us, or may be written by everyone,
            by a group other than root's and ours, or by whom an access list names.
    """
    for each in _on_the_way(path):
        try:
            found = each.lstat()
        except OSError as error:
            raise RefusedError(f"{path} cannot be used: {error.strerror}") from error
        listed = _listed(each, found)
        if found.st_uid not in (0, os.geteuid()) or listed or _open(found):
            where = f"{path} may be written by others" if each == path else f"{path} may be written by others: {each}"
            cure = f"setfacl -b {each}, " if listed else ""
            raise RefusedError(where, hint=f"{cure}chown it to the executor's user and group, chmod go-w {each}")


def _on_the_way(path: Path) -> Iterator[Path]:
    """Yield every folder, link and file that the kernel goes through to reach a path, in that order."""
    at = Path("/")
    yield at
    left = [*reversed(path.absolute().parts[1:])]
    links = 0
    while left:
        part = left.pop()
        if part == "..":
            at = at.parent
            continue
        yield (here := at / part)
        if not here.is_symlink():
            at = here
            continue
        links += 1
        if links > MAX_LINKS:
            raise RefusedError(f"{path} cannot be used: too many symbolic links")
        target = here.readlink()
        at = Path("/") if target.is_absolute() else at
        left += reversed(target.parts[1:] if target.is_absolute() else target.parts)


def _open(found: os.stat_result) -> bool:
    mode = found.st_mode
    if stat.S_ISLNK(mode) or (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
        return False
    return bool(mode & stat.S_IWOTH or (mode & stat.S_IWGRP and found.st_gid not in (0, os.getegid())))


def _listed(path: Path, found: os.stat_result) -> bool:
    """Tell whether an access list may let others write: where there is one, the group's bits are the most it grants.

    Source: acl(5), "Correspondence between ACL entries and file permission bits".
    """
    if stat.S_ISLNK(found.st_mode) or not found.st_mode & stat.S_IWGRP:
        return False
    try:
        return bool(os.getxattr(path, "system.posix_acl_access", follow_symlinks=False))
    except OSError:  # it has none, or its file system knows none
        return False


def _read(path: Path) -> bytes:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RefusedError(f"{path} cannot be used: it is no regular file")
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RefusedError(f"{path} cannot be used: {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise RefusedError(f"{path} cannot be used: it has more than {MAX_BYTES:,} bytes")
    return content
