"""Places of plain files, and what a workload would use there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.lab.changes import Changes
from unveil.lab.place import NEIGHBOUR, SIDES, Place, container
from unveil.lab.uses import Uses

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

V2 = {
    "cpu.max": "max 100000\n", "memory.high": "max\n", "cpu.weight": "100\n", "cpu.stat": "usage_usec 2000000\n",
    "memory.stat": "anon 5\nfile 7\n", "io.stat": "254:0 rbytes=3 wbytes=4 rios=1\n", "cgroup.procs": "",
}  # fmt: skip
V1 = {
    "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "50000\n", "memory.limit_in_bytes": "9223372036854771712\n",
    "memory.oom_control": "oom_kill_disable 0\n", "cpuacct.usage": "3000000000\n",
    "memory.stat": "cache 7\nrss 5\n", "blkio.throttle.io_service_bytes": "254:0 Read 3\n254:0 Write 4\nTotal 7\n",
}  # fmt: skip


@pytest.fixture
def uses() -> Uses:
    """Give what a workload uses that computes on one side, and neither sends nor reads anything."""
    nothing = dict.fromkeys(SIDES, 0.0)
    return Uses(
        cores={"a": 0.5, "b": 0.0}, received=nothing, read=nothing, written=nothing,
        anonymous={"a": 100 << 20, "b": 0}, cached={"a": 200 << 20, "b": 0},
    )  # fmt: skip


@pytest.fixture
def build(tmp_path: Path) -> Callable[[int], Place]:
    """Give what builds a place whose cgroups, of a version, are folders of plain files."""

    def built(version: int) -> Place:
        folder = tmp_path / f"v{version}"
        for who in (*SIDES, NEIGHBOUR):
            (folder / container(who)).mkdir(parents=True)
            for name, text in (V1 if version == 1 else V2).items():
                (folder / container(who) / name).write_text(text)
        return Place(folders={"": folder}, scratch=folder, changes=Changes(folder / "journal"))

    return built
