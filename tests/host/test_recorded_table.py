"""The table that a recording is, without any file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from unveil.host.recorded_table import FIXED, TableReader, TableWriter
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier


def block(layout: Layout, times: list[int], tier: Tier = Tier.FAST) -> SampleBlock:
    values = np.arange(len(times) * len(layout.channels), dtype=np.float64).reshape(len(times), len(layout.channels))
    return SampleBlock(tier=tier, layout=layout, times_ns=np.array(times, dtype=np.int64), values=values)


ONE, TWO = Layout((Channel("cpu.user"),)), Layout((Channel("cpu.user"), Channel("cpu.idle")))


def test_a_row_is_a_sample_and_its_layout_is_told_first() -> None:
    writer = TableWriter()
    writer.add((block(ONE, [1, 2]), block(TWO, [], Tier.SLOW)), None, 7.5)
    writer.add((), None, 8.5)
    rows, columns = writer.take()
    assert [(row.second, row.tier, row.block, row.layout, row.time_ns) for row in rows] == [
        (0, None, None, None, None),
        (0, "fast", 0, 0, 1),
        (0, "fast", 0, 0, 2),
        (0, None, None, None, None),
        (0, "slow", 1, 1, None),
        (1, None, None, None, None),
    ]
    assert json.loads(rows[0].event or "") == {"layout": 0, "columns": [["cpu.user", "cpu.user", []]]}
    assert columns["cpu.user"].present.tolist() == [False, True, True, False, False, False]
    assert columns["cpu.user"].values.tolist()[1:3] == [0.0, 1.0]
    assert not columns["cpu.idle"].present.any()


def test_each_table_stands_for_itself() -> None:
    writer = TableWriter()
    for second in range(2):
        writer.add((block(ONE, [second]),), None, float(second))
        rows, _ = writer.take()
        assert rows[0].event is not None, "the layout is told again"
        assert (rows[1].second, rows[1].block, rows[1].layout) == (second, second, 0)
    assert len(writer) == 0


def test_numbers_go_on_after_those_of_a_recording_that_is_resumed() -> None:
    writer = TableWriter()
    writer.go_on_after(second=9, block=99, layout=4)
    writer.add((block(ONE, [1]),), None, 0.0)
    rows, _ = writer.take()
    assert (rows[1].second, rows[1].block, rows[1].layout) == (10, 100, 5)


def test_a_channel_cannot_take_the_name_of_a_column_that_is_not_one() -> None:
    writer = TableWriter()
    writer.add((block(Layout(tuple(Channel(name) for name in FIXED)), [1]),), None, 0.0)
    _, columns = writer.take()
    assert set(columns) == {f"{name} (2)" for name in FIXED}


def test_a_table_that_names_an_unknown_layout_is_refused() -> None:
    rows = {name: np.array([0]) for name in ("second", "block", "time_ns")}
    rows |= {"layout": np.array([3]), "wall_s": np.array([0.0]), "timed": np.array([True])}
    rows |= {name: np.array([value], dtype=object) for name, value in (("tier", "fast"), ("event", None))}
    with pytest.raises(KeyError):
        list(TableReader().ticks(rows, lambda name: np.zeros(1)))
