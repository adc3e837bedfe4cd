"""Packing: whatever numbers come, each bit of each comes back, and what stands still takes no room."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.host.packing import BITS, FORMS, doubles, pack, unpack, whole_numbers
from unveil.host.recorded_table import TableWriter
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier

NAN = float("nan")


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.floats(),
            st.sampled_from([NAN, -0.0, 0.0, float("inf"), 2.0**53, 2.0**53 + 2, 1e308, 5e-324]),
            st.integers(-(10**9), 10**9).map(lambda number: number / 100),
            st.integers(-(10**9), 10**9).map(lambda number: number * 1e-6),
        )
    )
)
def test_every_bit_comes_back(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float64)
    form, whole = whole_numbers(values)
    assert doubles(whole, form).tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("numbers", "form"),
    [
        ([1.0, NAN, 2.0**40], "1"),
        ([], "1"),
        ([NAN, NAN], "1"),
        ([7 / 100, 35 / 100], "/1e2"),
        ([35 * 0.01, 7 * 0.01], "*1e-2"),
        ([123456789 * 1e-9, 35 * 1e-9], "*1e-9"),
        ([0.1, -0.0], BITS),
        ([1.0, np.int64(0x7FF8000000000001).view(np.float64)], BITS),  # a NaN with something in it
        ([0.1, float("inf")], BITS),
    ],
)
def test_the_first_form_that_keeps_every_bit_is_taken(numbers: list[float], form: str) -> None:
    values = np.array(numbers, dtype=np.float64)
    taken, whole = whole_numbers(values)
    assert taken == form
    assert doubles(whole, taken).tobytes() == values.tobytes()


def test_a_form_that_is_none_is_refused() -> None:
    assert len(set(FORMS)) == len(FORMS)
    for form in ("", "2", "/1e4", "*x"):
        with pytest.raises(ValueError, match="no form"):
            doubles(np.zeros(1, dtype=np.int64), form)


def test_rows_and_columns_come_back_with_what_was_absent_and_what_was_not_there() -> None:
    both = Layout((Channel("cpu.user"), Channel("cpu.idle")))
    one = Layout((Channel("cpu.idle"),))
    table = TableWriter()
    for number in range(3):
        samples = [
            SampleBlock(
                tier=tier, layout=layout, times_ns=np.arange(rows, dtype=np.int64) + 7 * number,
                values=np.where(np.arange(rows * len(layout.channels)) % 3, 0.25 * number, NAN).reshape(
                    rows, len(layout.channels)
                ),
            )
            for tier, layout, rows in ((Tier.FAST, both, 4), (Tier.SLOW, one, 1), (Tier.MEDIUM, one, 0))
        ]  # fmt: skip
        table.add(samples if number != 1 else (), None, 1e9 + number / 7)
    rows, columns = table.take()
    rows_again, columns_again = unpack(pack(rows, columns))
    assert rows_again == rows
    assert list(columns_again) == list(columns) == ["cpu.user", "cpu.idle"]
    for name, column in columns.items():
        again = columns_again[name]
        assert (again.present == column.present).all()
        assert again.values.tobytes() == column.values.tobytes()


def test_a_table_of_nothing_comes_back() -> None:
    assert unpack(pack([], {})) == ([], {})


def test_steps_are_small_where_numbers_are_large() -> None:
    layout = Layout((Channel("memory.free"),))
    table = TableWriter()
    values = 2.0**40 + np.arange(5).reshape(-1, 1)
    table.add(
        [SampleBlock(tier=Tier.FAST, layout=layout, times_ns=np.arange(5, dtype=np.int64), values=values)], None, 0.0
    )
    packed = {line.column: line for line in pack(*table.take())}
    assert packed["memory.free"].steps.tolist() == [2**40, 1, 1, 1, 1]
    assert packed["memory.free"].form == "1"
