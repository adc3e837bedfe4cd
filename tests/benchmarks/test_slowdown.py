"""The paired benchmark of what the watcher costs its neighbours."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unveil.benchmarks.slowdown import KINDS, interval, main, report, stopped, took


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_work_ends(kind: str) -> None:
    assert took(KINDS[kind], 0.01, 2) > 0


def test_a_process_is_stopped_only_meanwhile() -> None:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:

        def state() -> str:
            return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]

        with stopped(process.pid):
            until = time.monotonic() + 30
            while state() != "T" and time.monotonic() < until:
                time.sleep(0.01)
            assert state() == "T"
        assert state() != "T"
    finally:
        os.kill(process.pid, 9)
        process.wait()


def test_the_interval_holds_the_median_and_tells_what_cannot_be_told(capsys: pytest.CaptureFixture[str]) -> None:
    low, high = interval([0.001, 0.0, 0.002, 0.001, 0.0015])
    assert 0 <= low <= 0.001 <= high <= 0.002
    assert report({"clear": [0.001] * 9, "noisy": [-0.05, 0.05, 0.01, -0.02]}) == 0
    assert report({"dear": [0.05] * 9}) == 1
    said = capsys.readouterr().out
    for word in ("holds", "cannot be told here", "too much"):
        assert word in said


@pytest.mark.longest
@pytest.mark.slow
def test_the_real_watcher_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--pairs", "2", "--seconds", "0.1", "--no-gpu"]) in (0, 1)
    assert "median slowdown" in capsys.readouterr().out
