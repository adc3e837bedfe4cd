"""File systems on disks: how full the fullest is, and which discard as they delete. NFS: how far it reads ahead.

Only file systems whose source is a block device are asked: to ask a server that is gone is to wait for it.

Source: proc_pid_mountinfo(5), statvfs(3), Documentation/ABI/testing/sysfs-class-bdi.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from unveil.host.facts.sheet import number_or_none

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.facts.sheet import FactSheet
    from unveil.host.root import HostRoot

_BDI = "sys/class/bdi"
_REMOTE = frozenset(("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "9p", "afs"))
_READ_ONLY = frozenset(("squashfs", "iso9660", "erofs", "udf"))  # always full, and not by anybody's fault
MAX_MOUNTS = 256


def read_file_systems(sheet: FactSheet) -> None:
    """Read how full the fullest file system is, who discards at once, and the read-ahead of NFS mounts."""
    every = tuple(_mounts(sheet))
    remote = {point for _, point, kind, _, _ in every if kind in _REMOTE or kind.startswith("fuse")}
    mounts = every[:MAX_MOUNTS]
    fullest: dict[str, tuple[float, str]] = {}
    seen: set[str] = set()
    for device, point, kind, source, options in mounts:
        if not source.startswith("/dev/") or kind.startswith("fuse") or kind in _READ_ONLY:
            continue
        if device in seen or "ro" in options or not remote.isdisjoint(_on_the_way(point)):
            continue
        seen.add(device)
        for name, share in _shares(sheet, point):
            fullest[name] = max(fullest.get(name, (0.0, "")), (share, point))
    for name, what in (("filesystem_used", "room"), ("filesystem_files", "files")):
        if name in fullest:
            sheet.tell(f"storage.{name}", fullest[name][0])
        else:
            sheet.miss(f"storage.{name}", f"no file system on a disk tells how much {what} it has left")
    if "filesystem_used" in fullest:
        sheet.tell("storage.filesystem_fullest", fullest["filesystem_used"][1][:200])
    if mounts:
        on_disks = [(device, options) for device, _, _, source, options in mounts if source.startswith("/dev/")]
        sheet.tell("storage.discarding", float(len({device for device, options in on_disks if "discard" in options})))
    else:
        sheet.miss("storage.discarding", "there is no list of mounts")
    _read_nfs(sheet, {device for device, _, kind, _, _ in mounts if kind in ("nfs", "nfs4")})


def _mounts(sheet: FactSheet) -> Iterator[tuple[str, str, str, str, frozenset[str]]]:
    """Yield device number, mount point, type, source and options of each mount."""
    paths = ("proc/self/mountinfo", "proc/1/mountinfo") if sheet.root.live else ("proc/1/mountinfo",)
    text = next((text for path in paths if (text := _whole(sheet, path))), "")
    for line in text.split("\n"):
        left, separator, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if separator and len(before) >= 6 and len(after) >= 3:
            options = frozenset((*before[5].split(","), *after[2].split(",")))
            yield before[2], _unescape(before[4]), after[0], _unescape(after[1]), options


def _on_the_way(point: str) -> Iterator[str]:
    """Yield a mount point and those above it that one may wait at to get there; the root is everybody's way."""
    while point.strip("/"):
        yield point
        point = point.rpartition("/")[0]


def _whole(sheet: FactSheet, path: str) -> str:
    try:
        sheet.looks.see(_digest, path)  # before it is read: whatever comes between is seen the next time
        return sheet.root.read(path).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _digest(root: HostRoot, path: str) -> int:
    """Return a number that tells a list of mounts from others: with hundreds of containers the list itself is long."""
    return hash(root.read(path))


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _shares(sheet: FactSheet, point: str) -> tuple[tuple[str, float], ...]:
    try:
        return sheet.looks.see(_usage, point.lstrip("/"))
    except OSError:
        return ()


def _usage(root: HostRoot, point: str) -> tuple[tuple[str, float], ...]:
    """Return the share of blocks and of files in use, as a program without rights would find them.

    Per mille: what is written every second would else make new facts of it, and new plans of those.
    """
    space = os.statvfs(root.join(point))
    shares: list[tuple[str, float]] = []
    used = space.f_blocks - space.f_bfree
    if used + space.f_bavail > 0:
        shares.append(("filesystem_used", round(used / (used + space.f_bavail), 3)))
    if space.f_files > 0:  # btrfs and its like make them as needed and tell none
        shares.append(("filesystem_files", round((space.f_files - space.f_ffree) / space.f_files, 3)))
    return tuple(shares)


def _read_nfs(sheet: FactSheet, devices: set[str]) -> None:
    found = {}
    for device in sorted(devices):
        path = f"{_BDI}/{device}/read_ahead_kb"
        text = sheet.text(path)
        if (kilobytes := number_or_none(text)) is not None:
            found[device] = kilobytes
            sheet.settings[f"file:/{path}"] = f"{text}\n"
    if found:
        sheet.tell("storage.nfs_read_ahead", min(found.values()))
        sheet.tell("storage.nfs_mounts", tuple(found))
    else:
        sheet.miss("storage.nfs_read_ahead", "no NFS mount tells how far it reads ahead")
        sheet.miss("storage.nfs_mounts", "no NFS mount tells how far it reads ahead")
