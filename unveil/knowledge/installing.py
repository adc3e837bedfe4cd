"""Put a pack into use, as a whole or not at all, and take it back.

The knowledge base at ``DIR`` is a symbolic link into ``DIR.installed/``, where each installation is a folder::

    /etc/unveil/kb            → kb.installed/0002-site-7
    /etc/unveil/kb.installed/   0001-site-6  0002-site-7  previous → 0001-site-6

A new folder is written, flushed, and loaded as the watcher would load it; then the link is replaced in one step, which
a running watcher follows. The inventory is the site's own and goes with it: a pack brings one only to a new place, and
one that grants something (roles, a mode above observe) only when that was asked for. To roll back is to install what
was there before, under today's inventory.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import BadInputError, ConflictError, RefusedError, UnwritableError
from unveil.knowledge.archive import MANIFEST, is_older, read_manifest
from unveil.knowledge.brought_inventory import OBSERVING, PROFILES, grants_of
from unveil.knowledge.content import FINGERPRINTS, FOLDERS, INVENTORY
from unveil.knowledge.loading import load
from unveil.knowledge.signing import SIGNERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.archive import Archive

PREVIOUS = "previous"
SITE, PACK, OBSERVE = "site", "pack", "observe"
_ENDING = ".installed"
_WIDTH = 4  # digits of the number that each installation begins with


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What is in use now, and what was before: names of folders, the latter empty when there was nothing.

    Attributes:
        inventory: whose is in use: ``site`` (as it was), ``pack``, or ``observe`` instead of a pack's that grants more.
        grants: what the pack's inventory grants, or would; nothing where the site has its own.
    """

    folder: str
    before: str
    inventory: str = SITE
    grants: tuple[str, ...] = ()


def install(archive: Archive, target: Path, *, downgrade: bool = False, take_inventory: bool = False) -> Installed:
    """Put a pack into use.

    Args:
        take_inventory: whether the first pack at a place may bring an inventory that grants more than to look on.
        downgrade: whether it may be older than what is in use. An old pack keeps its good signature for ever: whoever
            can hand one in could bring back what a newer one took away.

    Raises:
        RefusedError: *target* is something that was not installed, or a newer version of the pack; or an inventory is
            to be taken where the site has one.
        BadInputError: the pack does not load together with the site's inventory.
        ConflictError: another installation is under way.
        UnwritableError: the disk does not take it; nothing was changed.
    """
    return _put(archive, target, downgrade=downgrade, take_inventory=take_inventory)


def roll_back(target: Path) -> Installed:
    """Put into use again what was there before the last installation. Twice, and the last one is back.

    Raises:
        RefusedError: there was nothing before. Otherwise as `install`.
    """
    before = _installed(target) / PREVIOUS
    if not target.is_symlink() or not (before / FINGERPRINTS).is_dir():
        raise RefusedError(f"nothing was installed at {target} before what is there")
    return _put(None, target, downgrade=True)


def _before(target: Path) -> tuple[dict[str, bytes], str]:
    """Return the files of the installation before, and its name without the number."""
    folder = (_installed(target) / PREVIOUS).resolve()
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return files, folder.name[_WIDTH + 1 :]


def _put(archive: Archive | None, target: Path, *, downgrade: bool, take_inventory: bool = False) -> Installed:
    """Put a pack into use, the installation before when None. What is there is looked at under the lock: what
    another installation has replaced by then is neither read half nor taken for a place without an inventory.
    """
    installed = _installed(target)
    if os.path.lexists(target) and not _is_ours(target, installed):
        what = f"{target} was not put there by `kb install`"
        raise RefusedError(what, hint=f"move it away first: mv {target} {target}.own")
    try:
        with _locked(installed):
            current = target.resolve() if target.exists() else None
            if archive is None:
                files, name = _before(target)
            else:
                files, name = {MANIFEST: archive.manifest, **archive.files}, f"{archive.name}-{archive.version}"
            if not downgrade and current is not None:
                _refuse_older(files[MANIFEST], current)
            if current is not None and (current / INVENTORY).is_dir():
                if take_inventory:
                    own = f"{target}/{INVENTORY} is the site's own, and stays"
                    raise RefusedError(own, hint="a pack brings one only to a new place; edit that one")
                return _exchange(files, name, target, current)
            brought, whose, grants = _brought(files, take_inventory)
            return replace(_exchange(brought, name, target, current), inventory=whose, grants=grants)
    except OSError as error:
        what = f"{error.filename or target} cannot be written: {error.strerror}"
        raise UnwritableError(what, hint="what was in use still is") from error


def _brought(files: Mapping[str, bytes], take_inventory: bool) -> tuple[Mapping[str, bytes], str, tuple[str, ...]]:
    """Return the files for a new place, whose inventory that is, and what the pack's own grants."""
    grants = grants_of(files)
    if grants and not take_inventory:
        return {**files, PROFILES: OBSERVING}, OBSERVE, grants
    return files, PACK, grants


def _refuse_older(manifest: bytes, current: Path) -> None:
    """Refuse what is older than what is in use; what says nothing of its version is older than nothing."""
    told = read_manifest(manifest)
    try:
        there = read_manifest((current / MANIFEST).read_bytes())
    except (OSError, BadInputError):
        return
    if is_older(told, there):
        what = f"{told['name']} {told['version']} is older than {there['version']}, which is in use"
        raise RefusedError(what, hint="--downgrade installs it all the same; --rollback takes the last one back")


def _exchange(files: Mapping[str, bytes], name: str, target: Path, current: Path | None) -> Installed:
    installed = _installed(target)
    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=installed))
    try:
        scratch.chmod(0o755)
        _write(files, scratch, current)
        loaded = load(scratch)
        if loaded.knowledge is None:
            first = f"{loaded.errors[0]}".removeprefix(f"{scratch}/")
            raise BadInputError(f"the pack does not load here: {first}", hint="what was in use still is")
        folder = installed / f"{_next(installed):0{_WIDTH}d}-{name}"
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    try:
        if current is not None:
            _point(installed / PREVIOUS, current.name)
        _point(target, f"{installed.name}/{folder.name}")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    kept = {folder.name, current.name if current else ""}
    for old in installed.iterdir():
        if old.is_dir() and not old.is_symlink() and old.name not in kept:
            shutil.rmtree(old, ignore_errors=True)
    return Installed(folder=str(folder), before="" if current is None else str(current))


def _write(files: Mapping[str, bytes], scratch: Path, current: Path | None) -> None:
    """Write the files of a pack and the inventory that holds: the site's, or the pack's where there is none."""
    own = current is not None and (current / INVENTORY).is_dir()
    # Who may sign is never for the signed to say.
    brought = {
        path: content
        for path, content in files.items()
        if path != SIGNERS and not (own and path.startswith(f"{INVENTORY}/"))
    }
    for path, content in brought.items():
        file = scratch / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as stream:
            os.fchmod(stream.fileno(), 0o644)  # whatever the umask: a file that everyone may write is not played
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    if own and current is not None:
        shutil.copytree(current / INVENTORY, scratch / INVENTORY, symlinks=True)
    made = {scratch / parent for path in brought for parent in Path(path).parents}
    made |= {scratch / folder for folder in FOLDERS if not (scratch / folder).is_dir()}
    for folder in made:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def _next(installed: Path) -> int:
    taken = [each.name[:_WIDTH] for each in installed.iterdir() if each.name[:_WIDTH].isdecimal()]
    return 1 + max(map(int, taken), default=0)


def _point(link: Path, where: str) -> None:
    """Let a symbolic link point elsewhere in one step."""
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(where)
    fresh.replace(link)
    descriptor = os.open(link.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_ours(target: Path, installed: Path) -> bool:
    return target.is_symlink() and target.readlink().parts[0] == installed.name


def _installed(target: Path) -> Path:
    return target.with_name(target.name + _ENDING)


@contextmanager
def _locked(installed: Path) -> Iterator[None]:
    installed.mkdir(mode=0o755, exist_ok=True)
    found = installed.lstat()
    open_to_group = found.st_mode & stat.S_IWGRP and found.st_gid not in (0, os.getegid())
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH or open_to_group:
        what = f"{installed} belongs to, or can be written by, someone else"
        raise RefusedError(what, hint=f"whoever can write there says what runs: chown it, and chmod 755 {installed}")
    descriptor = os.open(installed / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConflictError("another installation is under way here", hint="wait for it to end") from error
        yield
    finally:
        os.close(descriptor)
