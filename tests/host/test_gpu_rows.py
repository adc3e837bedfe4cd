"""Rows of all GPUs, made of readings that come at moments of their own."""

from __future__ import annotations

import math

from unveil.host.gpu_frames import SampleFrame
from unveil.host.gpu_rows import GpuRows
from unveil.host.sources.gpu import METRICS
from unveil.records.metric import Channel

SECOND = 1_000_000_000
NAMES = [metric.name for metric in METRICS]


def reading(gpu: str, at_ns: int, **values: float) -> SampleFrame:
    row = [values.get(name.removeprefix("gpu.")) for name in NAMES]
    return SampleFrame(gpu=gpu, at_ns=at_ns, latency_s=0.01, values=row, reasons={})


def rows_of(*gpus: str) -> GpuRows:
    rows = GpuRows(SECOND, 5 * SECOND)
    rows.keep(gpus)
    return rows


def told(block, metric: str, gpu: str) -> list[float]:
    return block.values[:, block.layout.column[Channel(f"gpu.{metric}", (("gpu", gpu),))]].tolist()


def test_a_row_waits_half_an_interval_for_those_that_answered_before() -> None:
    rows = rows_of("a", "b")
    for gpu in ("a", "b"):
        rows.take(rows.gpus[gpu], reading(gpu, 10 * SECOND, util=0.1))
    assert rows.block(10 * SECOND, ("a", "b")).times_ns.tolist() == [10 * SECOND]
    rows.take(rows.gpus["a"], reading("a", 11 * SECOND, util=0.2))
    assert rows.block(11 * SECOND + 1, ("a", "b")) is None
    block = rows.block(11 * SECOND + SECOND // 2 + 1, ("a", "b"))
    assert told(block, "util", "a") == [0.2]
    assert told(block, "util", "b") == [0.1], "it stands in"
    assert told(block, "value_age", "b") == [1.0]


def test_nobody_waits_for_a_gpu_whose_child_does_not_run_or_that_is_late() -> None:
    rows = rows_of("a", "b")
    rows.take(rows.gpus["a"], reading("a", 10 * SECOND, util=0.1))
    assert rows.block(10 * SECOND, ("a",)) is not None
    assert rows.late(10 * SECOND) == []
    rows.gpus["b"].called_ns = 9 * SECOND
    assert rows.late(12 * SECOND) == ["b"]


def test_readings_that_piled_up_make_a_row_each() -> None:
    rows = rows_of("a")
    for second in range(10, 14):
        rows.take(rows.gpus["a"], reading("a", second * SECOND, util=second / 100, energy=second * 400.0))
    block = rows.block(14 * SECOND, ("a",))
    assert block.times_ns.tolist() == [second * SECOND for second in range(10, 14)]
    assert told(block, "energy", "a") == [second * 400.0 for second in range(10, 14)]


def test_when_nobody_answers_one_row_an_interval_says_how_old_all_is() -> None:
    rows = rows_of("a")
    rows.take(rows.gpus["a"], reading("a", 10 * SECOND, util=0.5, energy=1.0))
    rows.block(10 * SECOND, ("a",))
    assert rows.block(11 * SECOND, ("a",)) is None
    late = [block for second in range(12, 20) if (block := rows.block(second * SECOND + 1, ("a",))) is not None]
    ages = [age for block in late for age in told(block, "value_age", "a")]
    assert ages == sorted(ages)
    assert len(ages) >= 6
    assert math.isnan(told(late[0], "energy", "a")[0]), "a counter that stands still would read as a rate of zero"
    assert told(late[0], "util", "a") == [0.5]
    assert math.isnan(told(late[-1], "util", "a")[0]), "held for five seconds, then absent"


def test_the_layout_is_the_same_object_while_the_gpus_are_the_same() -> None:
    rows = rows_of("a", "b")
    rows.take(rows.gpus["a"], reading("a", SECOND, util=0.1))
    first = rows.block(2 * SECOND, ()).layout
    rows.keep(["b", "a"])
    rows.take(rows.gpus["a"], reading("a", 3 * SECOND, util=0.1))
    assert rows.block(4 * SECOND, ()).layout is first
    rows.keep(["b"])
    assert rows.channels == len(NAMES)
