"""The benchmark of hours: what it reads of the kernel, and some minutes that pass at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unveil.benchmarks.hours import sizes_mb

ROLLUP = """\
55d000000000-7fff00000000 ---p 00000000 00:00 0                          [rollup]
Rss:               45000 kB
Anonymous:         34000 kB
AnonHugePages:     10240 kB
"""


def test_sizes_are_in_millions_of_bytes() -> None:
    assert sizes_mb(ROLLUP) == {"Rss": 46.08, "Anonymous": 34.816, "AnonHugePages": 10.48576}


@pytest.mark.slow
def test_minutes_pass_at_once_and_their_memory_is_told() -> None:
    command = [sys.executable, "-m", "unveil.benchmarks.hours", "--hours", "0.03"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode in (0, 1), ended.stderr
    lines = ended.stdout.splitlines()
    assert [line.split()[:2] for line in lines if " min " in line] == [["1", "min"], ["2", "min"]]
    assert lines[-1] in ("within 48 MB", "OVER 48 MB")
