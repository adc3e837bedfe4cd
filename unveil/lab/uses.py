"""Uses: what a workload takes of its host while it is well, so that a fault can be laid on relative to it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.lab.place import SIDES, outer

if TYPE_CHECKING:
    from unveil.lab.place import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """What the containers of a workload take, by side.

    Attributes:
        cores: CPU seconds a second.
        received: bytes a second that its link brings.
        read, written: bytes a second that its own tasks move from and to disks.
        anonymous, cached: bytes of memory, at one moment.
    """

    cores: dict[str, float]
    received: dict[str, float]
    read: dict[str, float]
    written: dict[str, float]
    anonymous: dict[str, int]
    cached: dict[str, int]


class Meter:
    """Counts what a workload takes from now on."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._begun = time.monotonic()
        self._before = self._counted()

    def uses(self) -> Uses:
        """Return what was taken a second since this was made, and what memory is held now."""
        spent = max(time.monotonic() - self._begun, 1e-3)
        after = self._counted()
        rates = {
            name: {side: (value - self._before[name][side]) / spent for side, value in each.items()}
            for name, each in after.items()
        }
        held = {side: self._memory(side) for side in SIDES}
        return Uses(
            cores=rates["cores"], received=rates["received"], read=rates["read"], written=rates["written"],
            anonymous={side: held[side][0] for side in SIDES}, cached={side: held[side][1] for side in SIDES},
        )  # fmt: skip

    def _counted(self) -> dict[str, dict[str, float]]:
        counted: dict[str, dict[str, float]] = {name: {} for name in ("cores", "received", "read", "written")}
        for side in SIDES:
            counted["cores"][side] = self._cpu_seconds(side)
            counted["received"][side] = float(_text(Path(f"/sys/class/net/{outer(side)}/statistics/tx_bytes")) or 0)
            counted["read"][side], counted["written"][side] = self._disk_bytes(side)
        return counted

    def _cpu_seconds(self, side: str) -> float:
        if (folder := self._place.folder("cpuacct", side)) is None:
            return 0.0
        if text := _text(folder / "cpuacct.usage"):
            return int(text) * 1e-9
        return float(_numbers(folder / "cpu.stat").get("usage_usec", 0)) * 1e-6

    def _disk_bytes(self, side: str) -> tuple[int, int]:
        """Return bytes read and written of the one hierarchy's ``io.stat`` or of blkio's own file, all disks."""
        if (folder := self._place.folder("blkio", side)) is None:
            return 0, 0
        read = written = 0
        for line in _text(folder / "blkio.throttle.io_service_bytes").splitlines():
            words = line.split()
            read += int(words[2]) if words[1:2] == ["Read"] else 0
            written += int(words[2]) if words[1:2] == ["Write"] else 0
        for line in _text(folder / "io.stat").splitlines():
            told = dict(word.split("=") for word in line.split()[1:])
            read, written = read + int(told.get("rbytes", 0)), written + int(told.get("wbytes", 0))
        return read, written

    def _memory(self, side: str) -> tuple[int, int]:
        if (folder := self._place.folder("memory", side)) is None:
            return 0, 0
        told = _numbers(folder / "memory.stat")
        return told.get("rss", told.get("anon", 0)), told.get("cache", told.get("file", 0))


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _numbers(path: Path) -> dict[str, int]:
    words = (line.split() for line in _text(path).splitlines())
    return {each[0]: int(each[1]) for each in words if len(each) == 2}
