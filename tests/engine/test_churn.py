"""Cgroups that come and go all day must not make the watcher grow: thousands of them, each seen for two seconds."""

from __future__ import annotations

import gc
import shutil
from typing import TYPE_CHECKING

import pytest

from unveil.engine.pipeline import Pipeline
from unveil.host.facts.reader import FactReader
from unveil.host.root import HostRoot
from unveil.host.sampler import Sampler

if TYPE_CHECKING:
    from pathlib import Path

_EACH_SECOND = 10


def make(folder: Path, number: int) -> None:
    folder.mkdir()
    (folder / "cpu.stat").write_text(f"usage_usec {number}\nnr_periods 4\nnr_throttled 1\nthrottled_usec 250000\n")
    (folder / "memory.stat").write_text("anon 4096\nfile 8192\nanon_thp 0\npgfault 11\npgmajfault 2\n")
    (folder / "memory.max").write_text("max\n")


@pytest.mark.slow
def test_three_thousand_cgroups_that_came_and_went_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    (tmp_path / "proc/stat").write_text("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5 1 2\nctxt 500\n")
    cgroups = tmp_path / "sys/fs/cgroup"
    cgroups.mkdir(parents=True)
    (cgroups / "cgroup.controllers").write_text("cpu memory\n")
    root = HostRoot(tmp_path)
    sampler, reader = Sampler(root), FactReader(root)
    pipeline = Pipeline(watch=1, fingerprints=(), generation=1, new_id=lambda: "e1")
    now_ns, number, facts = 10**12, 0, reader.read(())
    held: dict[int, list[int]] = {200: [], 275: []}  # what is kept for a while comes and goes: the least of some counts
    there: list[Path] = []
    for second in range(300):
        for _ in range(_EACH_SECOND):
            number += 1
            there.append(cgroups / f"pod{number} {{{{ {'é' * 20} }}}}\\xff")
            make(there[-1], number)
        while len(there) > 2 * _EACH_SECOND:
            shutil.rmtree(there.pop(0))
        for _ in range(10):
            now_ns += 100_000_000
            sampler.tick(now_ns)
        if second % 5 == 0:
            facts = reader.read((), follow=sampler.cgroups())
        pipeline.push(sampler.collect(now_ns), wall_s=now_ns / 1e9, facts=facts)
        for begin, counts in held.items():
            if begin <= second < begin + 25 and second % 3 == 0:
                gc.collect()
                counts.append(len(gc.get_objects()))
    sampler.close()
    before, after = map(min, held.values())
    assert after < 1.02 * before + 1000, held
