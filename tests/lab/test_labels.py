"""Labels are what `unveil eval` and `unveil kb backtest` read, and claim no more than was measured."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.content import knowledge_root
from unveil.knowledge.labels import read_labels
from unveil.knowledge.loading import load
from unveil.lab.faults import FAULTS, HEALTHY
from unveil.lab.labels import Result, labels, read, write
from unveil.lab.units import Loss

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.knowledge.labels import Interval

COSTLY, INERT = Loss(throughput=0.2, latency=0.3), Loss(throughput=0.01, latency=-0.02)


@cache
def names() -> list[str]:
    loaded = load(knowledge_root(None)).knowledge
    assert loaded is not None
    return [each.name for each in loaded.fingerprints]


def result(fault: str, lost: Loss | None, *, settled_s: float = 171.0, chance: Loss | None = None) -> Result:
    return Result(
        workload="loading", fault=fault, begin_s=100.02, active_s=100.5, end_s=150.1, settled_s=settled_s, seconds=180,
        lost=lost, chance=chance,
    )  # fmt: skip


def intervals(tmp_path: Path, told: Result) -> tuple[Interval, ...]:
    path = tmp_path / "run.labels.yml"
    path.write_text(labels(told))
    return read_labels(path, names())


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - set(HEALTHY)))
def test_a_fault_counts_from_when_it_is_there_and_what_follows_from_when_it_has_settled(
    tmp_path: Path, fault: str
) -> None:
    first, during, last = intervals(tmp_path, result(fault, COSTLY))
    assert (first.from_s, first.to_s, first.labels) == (0, 100.02, frozenset())
    assert (during.from_s, during.to_s) == (100.5, 150.1)
    assert during.labels == {FAULTS[fault].label or fault}
    assert (last.from_s, last.to_s, last.labels) == (171, math.inf, frozenset())


def test_what_never_settles_is_not_called_healthy(tmp_path: Path) -> None:
    assert len(intervals(tmp_path, result("cpu_quota", COSTLY, settled_s=180.0))) == 2


@pytest.mark.parametrize("fault", HEALTHY)
def test_a_healthy_recording_is_healthy_from_end_to_end(tmp_path: Path, fault: str) -> None:
    (whole,) = intervals(tmp_path, result(fault, COSTLY))
    assert (whole.from_s, whole.to_s, whole.labels) == (0, math.inf, frozenset())
    assert result(fault, COSTLY).verdict == "healthy"


def test_the_time_of_a_fault_that_cost_nothing_is_not_labelled(tmp_path: Path) -> None:
    assert [each.from_s for each in intervals(tmp_path, result("slow_link", INERT))] == [0, 171]
    assert result("slow_link", INERT).verdict == "inert"


def test_a_loss_that_chance_makes_as_well_is_none() -> None:
    restless = Loss(throughput=0.25, latency=0.35)
    assert result("slow_link", COSTLY, chance=restless).verdict == "inert"
    assert result("slow_link", COSTLY, chance=INERT).verdict == "effective"


def test_a_fault_that_stopped_the_work_altogether_is_one(tmp_path: Path) -> None:
    assert len(intervals(tmp_path, result("io_throttle", None))) == 3


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.result.json"
    for told in (result("slow_link", COSTLY, chance=INERT), result("none", None)):
        write(path, told, began=1.0)
        assert read(path) == told
    assert read(tmp_path / "absent") is None
