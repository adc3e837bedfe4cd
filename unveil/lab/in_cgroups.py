"""Faults in the workload's cgroups: a CPU quota, block I/O throttled, memory that is short. All relative to its use.

Both versions of cgroups are known; version 1 has no ``memory.high``, there the limit itself is lowered.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.lab.changes import ImpossibleError
from unveil.lab.place import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.lab.changes import Changes
    from unveil.lab.place import Place
    from unveil.lab.uses import Uses

QUOTA_SHARE = 0.45
PERIOD_US = 100_000
IO_SHARE = 0.4
LEAST_IO = 256 << 10  # bytes a second: of less, less is no loss
CACHE_KEPT, SPARE = 0.15, 24 << 20  # of the cache; and what comes and goes within a step
_MORE, _TRIES = 1.05, 12


@contextmanager
def cpu_quota(place: Place, uses: Uses) -> Iterator[None]:
    """Give each container a share of the CPU time that it used."""
    with place.changes.scope() as changes:
        for side in _working(uses):
            folder = _folder(place, "cpu", side)
            quota = max(int(QUOTA_SHARE * uses.cores[side] * PERIOD_US), 2000)
            if (folder / "cpu.max").exists():
                changes.write(folder / "cpu.max", f"{quota} {PERIOD_US}")
            else:
                changes.write(folder / "cpu.cfs_period_us", str(PERIOD_US))
                changes.write(folder / "cpu.cfs_quota_us", str(quota))
        yield


@contextmanager
def io_throttle(place: Place, uses: Uses) -> Iterator[None]:
    """Give each container a share of the bytes a second that it moved from and to the disk."""
    disk = whole_disk(place.scratch)
    limited = False
    with place.changes.scope() as changes:
        for side in SIDES:
            folder = _folder(place, "blkio", side)
            for way, version_2, used in (("read", "rbps", uses.read[side]), ("write", "wbps", uses.written[side])):
                if used < LEAST_IO:
                    continue
                limited, most = True, int(IO_SHARE * used)
                old = folder / f"blkio.throttle.{way}_bps_device"
                path, text, free = (
                    (old, f"{disk} {most}", f"{disk} 0")
                    if old.exists()
                    else (folder / "io.max", f"{disk} {version_2}={most}", f"{disk} {version_2}=max")
                )
                changes.write_and(path, text, undo={"write": [str(path), free]})
        if not limited:
            raise ImpossibleError("the workload moves next to nothing from and to disks itself")
        yield


@contextmanager
def memory_limit(place: Place, uses: Uses) -> Iterator[None]:
    """Leave each container little more than its anonymous memory: pages of files are dropped and read again.

    Nothing is killed: on version 1 the killer is off meanwhile, and whatever wants more waits.
    """
    with place.changes.scope() as changes:
        squeezed = [side for side in _working(uses) if (1 - CACHE_KEPT) * uses.cached[side] > SPARE]
        if not squeezed:
            raise ImpossibleError("the workload keeps next to nothing in the page cache")
        for side in squeezed:
            folder = _folder(place, "memory", side)
            limit = int(uses.anonymous[side] + CACHE_KEPT * uses.cached[side]) + SPARE
            if (folder / "memory.high").exists():
                changes.write(folder / "memory.high", str(limit))
                continue
            changes.write_and(
                folder / "memory.oom_control", "1", undo={"write": [str(folder / "memory.oom_control"), "0"]}
            )
            _lower(changes, folder / "memory.limit_in_bytes", limit)
        yield


def _lower(changes: Changes, path: Path, limit: int) -> None:
    """Lower a limit as far as the kernel can; it refuses what it cannot reclaim."""
    for _ in range(_TRIES):
        try:
            changes.write_and(path, str(limit), undo={"write": [str(path), "-1"]})
        except ImpossibleError:
            limit = int(_MORE * limit)
        else:
            return
    raise ImpossibleError(f"{path}: the kernel could not reclaim enough")


def _working(uses: Uses) -> list[str]:
    """Return the sides on which something runs."""
    return [side for side in SIDES if uses.cores[side] > 0.005]


def _folder(place: Place, controller: str, side: str) -> Path:
    folder = place.folder(controller, side)
    if folder is None:
        raise ImpossibleError(f"no {controller} controller")
    return folder


def whole_disk(folder: Path) -> str:
    """Return the number (``254:0``) of the disk that a folder is on, of the whole one if it is on a partition."""
    return (disk_folder(folder) / "dev").read_text().strip()


def disk_folder(folder: Path) -> Path:
    """Return the folder in /sys of the disk that a folder is on.

    Raises:
        ImpossibleError: it is on no block device.
    """
    number = folder.stat().st_dev
    path = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    disk = path.parent if (path / "partition").exists() else path
    if not (disk / "dev").exists():
        raise ImpossibleError("the scratch folder is on no block device")
    return disk
