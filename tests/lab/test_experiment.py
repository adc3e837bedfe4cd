"""Labels are what `unveil eval` and `unveil kb backtest` read, and claim no more than was measured."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest

from unveil.knowledge.content import knowledge_root
from unveil.knowledge.labels import read_labels
from unveil.knowledge.loading import load
from unveil.lab.experiment import Lengths, Result, labels
from unveil.lab.faults import FAULTS
from unveil.lab.units import Loss

LENGTHS = Lengths(healthy=100, faulty=50, after=20)
COSTLY, INERT = Loss(throughput=0.2, latency=0.3), Loss(throughput=0.01, latency=-0.02)


@cache
def names() -> list[str]:
    loaded = load(knowledge_root(None)).knowledge
    assert loaded is not None
    return [each.name for each in loaded.fingerprints]


def written(tmp_path: Path, fault: str, lost: Loss | None) -> Path:
    path = tmp_path / "run.labels.yml"
    result = Result(recording=Path("run.parquet"), workload="loading", fault=fault, lost=lost)
    path.write_text(labels(result, LENGTHS))
    return path


@pytest.mark.parametrize("fault", FAULTS)
def test_the_time_of_a_fault_has_its_fingerprint_or_its_own_name(tmp_path: Path, fault: str) -> None:
    first, *middle, last = read_labels(written(tmp_path, fault, COSTLY), names())
    assert (first.from_s, first.to_s, first.labels) == (0, 100, frozenset())
    assert (last.to_s, last.labels) == (math.inf, frozenset())
    (during,) = middle
    healthy = fault in ("none", "busy_but_healthy")
    assert during.labels == (frozenset() if healthy else frozenset({FAULTS[fault].label or fault}))
    assert (during.from_s, during.to_s) == (100, 150)


def test_the_time_of_a_fault_that_cost_nothing_is_not_labelled(tmp_path: Path) -> None:
    assert [each.from_s for each in read_labels(written(tmp_path, "slow_link", INERT), names())] == [0, 158]


def test_a_fault_that_stopped_the_work_altogether_is_one(tmp_path: Path) -> None:
    assert len(read_labels(written(tmp_path, "io_throttle", None), names())) == 3
