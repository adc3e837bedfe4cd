"""The process that serves the metrics, by itself: what it says, and when it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest

from unveil.engine.metrics_child import Told

if TYPE_CHECKING:
    from pathlib import Path

LINE = json.dumps([["unveil_ticks", "counter", "Ticks.", [], [[[], 3.0]]]]).encode() + b"\n"


def child(file: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "unveil.engine.metrics_child", "--file", str(file)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def test_nothing_is_told_before_the_first_word() -> None:
    told, registry = Told(), CollectorRegistry()
    registry.register(told)
    assert generate_latest(registry) == b""
    told.tell(LINE)
    assert b"unveil_ticks_total 3.0" in generate_latest(registry)


def test_it_ends_and_takes_its_file_away_when_the_watcher_is_gone_even_in_the_middle_of_a_word(tmp_path: Path) -> None:
    file = tmp_path / "unveil.prom"
    process = child(file)
    _, said = process.communicate(LINE + LINE[:20], timeout=30)
    assert (process.returncode, said) == (0, b"")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    process = child(tmp_path / "away" / "unveil.prom")
    _, said = process.communicate(LINE * 3, timeout=30)
    assert process.returncode == 0
    assert said.count(b"No such file or directory") == 1
