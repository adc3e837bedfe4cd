from __future__ import annotations

import os
import time
from pathlib import Path

from unveil.benchmarks.awake import loops_on_all_cpus


def _children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def _ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[11])


def _stopped(pids: set[int]) -> None:
    for pid in pids:
        while Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"T":
            time.sleep(0.01)


def test_each_cpu_has_a_loop_that_gives_way_to_all_and_runs_only_when_told() -> None:
    before = _children()
    with loops_on_all_cpus() as keep_awake:
        loops = _children() - before
        assert sorted(cpu for pid in loops for cpu in os.sched_getaffinity(pid)) == sorted(os.sched_getaffinity(0))
        assert {os.sched_getscheduler(pid) for pid in loops} == {os.SCHED_IDLE}
        _stopped(loops)
        spent = {pid: _ticks(pid) for pid in loops}
        keep_awake(True)
        for pid in loops:
            while _ticks(pid) == spent[pid]:
                time.sleep(0.01)
        keep_awake(False)
        _stopped(loops)
    assert _children() == before
