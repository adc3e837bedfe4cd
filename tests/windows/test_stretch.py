"""Rows of one layout: what was handed out never changes, what was dropped is let go."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unveil.records.metric import Channel
from unveil.records.sample import Layout, Tier
from unveil.windows.stretch import Stretch

LAYOUT = Layout((Channel("cpu.user"), Channel("cpu.idle")))


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=1, max_size=40))
def test_a_block_holds_what_was_appended_and_stays_as_it_was(steps: list[tuple[int, int]]) -> None:
    stretch = Stretch(LAYOUT)
    kept: list[int] = []
    handed_out = []
    count = 0
    for added, dropped in steps:
        times = list(range(count, count + added))
        count += added
        stretch.append(np.array(times, dtype=np.int64), np.array([[time, -time] for time in times], dtype=float))
        kept += times
        handed_out.append((stretch.block(Tier.FAST, 0, len(stretch)), list(kept)))
        if dropped < len(kept):
            stretch.drop(dropped)
            kept = kept[dropped:]
        assert len(stretch) == len(kept)
    for block, expected in handed_out:
        assert block.times_ns.tolist() == expected
        assert block.values.tolist() == [[time, -time] for time in expected]


def test_a_big_matrix_is_let_go_when_few_rows_are_left() -> None:
    stretch = Stretch(LAYOUT)
    stretch.append(np.arange(10_000), np.zeros((10_000, 2)))
    stretch.drop(9_990)
    assert stretch._values.shape[0] < 100
