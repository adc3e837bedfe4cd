"""Packing: whatever numbers come, each bit of each comes back, and what stands still takes no room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.host.packing import BITS, FORMS, Packed, doubles, pack, unpack, whole_numbers
from unveil.host.recorded_table import TableWriter
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from collections.abc import Callable

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
        ([2.0**53], "1"),
        ([2.0**53 + 2], BITS),  # Arrow makes no doubles of larger whole numbers
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


def packed_second() -> list[Packed]:
    layout = Layout((Channel("cpu.user"), Channel("cpu.idle")))
    table = TableWriter()
    for tier in (Tier.FAST, Tier.MEDIUM, Tier.SLOW):
        times = np.arange(2, dtype=np.int64)
        table.add([SampleBlock(tier=tier, layout=layout, times_ns=times, values=np.full((2, 2), 0.5))], None, 0.5)
    return list(pack(*table.take()))


def test_tiers_have_the_numbers_that_stand_in_files() -> None:
    (tiers,) = (line for line in packed_second() if line.column == "tier")
    numbers = np.cumsum(tiers.steps)
    assert numbers[numbers >= 0].tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda line: [],
        lambda line: [line, line],
        lambda line: [replace(line, steps=line.steps[:1])],  # numpy would take one value for all rows
        lambda line: [replace(line, steps=line.steps[:0])],
        lambda line: [replace(line, steps=np.append(line.steps, 1))],
        lambda line: [replace(line, form="*1e-9" if line.column in {"second", "tier"} else "none")],
        lambda line: [replace(line, column="cpu.nice")],
    ],
    ids=["missing", "twice", "one", "none", "more", "form", "name"],
)
@pytest.mark.parametrize("name", ["second", "wall_s", "tier", "block", "layout", "time_ns", "cpu.user"])
def test_rows_that_pack_did_not_make_are_refused(name: str, spoilt: Callable[[Packed], list[Packed]]) -> None:
    lines = packed_second()
    (at,) = (index for index, line in enumerate(lines) if line.column == name)
    lines[at : at + 1] = spoilt(lines[at])
    with pytest.raises((KeyError, ValueError, TypeError, IndexError)):
        unpack(lines)


@pytest.mark.parametrize(
    ("name", "steps"), [("event", [-1]), ("event", [99]), ("event", []), ("event", [0, 0]), ("tier", [-1] + [0] * 6)]
)
def test_an_event_in_no_row_and_a_tier_that_is_none_are_refused(name: str, steps: list[int]) -> None:
    lines = packed_second()
    (at,) = (index for index, line in enumerate(lines) if line.column == name)
    assert name == "event" or len(lines[at].steps) == len(steps)
    lines[at] = replace(lines[at], steps=np.array(steps, dtype=np.int64))
    with pytest.raises((KeyError, ValueError, IndexError)):
        unpack(lines)
