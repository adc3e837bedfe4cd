"""What a watcher tells of itself: counted right, bounded, and nothing imported for it while it is off."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.metrics import Family, Meter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def by_name(families: tuple[Family, ...]) -> dict[str, dict[tuple[str, ...], float]]:
    assert len({family.name for family in families}) == len(families)
    return {family.name: dict(family.samples) for family in families}


def test_a_watcher_that_has_seen_nothing_yet_tells_no_scores(watch: Callable[..., Any]) -> None:
    told = by_name(Meter(watch()).families())
    assert told["unveil_windows"] == {("normal",): 0.0, ("anomalous",): 0.0, ("unknown",): 0.0}
    assert "unveil_detector_score" not in told
    assert told["unveil_knowledge_stale"][()] == 0.0
    assert told["unveil_process_resident_memory_bytes"][()] > 1e6


@pytest.mark.slow
def test_a_few_seconds_are_counted(watch: Callable[..., Any], tmp_path: Path) -> None:
    watcher = watch(run=6.3, host_root=tmp_path.__class__("/"))
    families = watcher.meter.families()
    told = by_name(families)
    windows = len(watcher.queries.windows(limit=100))
    assert sum(told["unveil_windows"].values()) == windows
    assert told["unveil_window_index"][()] == windows - 1
    assert told["unveil_ticks"][()] == watcher.lateness.taken
    assert told["unveil_episodes_open"]["some_dirt", "firing"] == 1.0
    assert told["unveil_episodes_fired"]["some_dirt",] == 1.0
    assert told["unveil_source_state"]["stat", "ok"] == 1.0
    assert told["unveil_source_read_seconds"]["stat",] > 0
    assert told["unveil_runs"]["kept",] == 0.0
    for family in families:
        assert re.fullmatch(r"unveil_[a-z_]+", family.name)
        assert not family.name.endswith(("_total", "_info"))
        assert all(len(values) == len(family.labels) for values, _ in family.samples)


def test_a_watcher_imports_neither_prometheus_nor_a_server() -> None:
    code = "import sys, unveil.engine.watch; sys.exit(bool({'prometheus_client', 'http.server'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
