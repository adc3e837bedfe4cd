"""promtool's notation becomes numbers, and what is not written is missing."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.knowledge.series import SeriesError, parse_series, value_at


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("7", [7]),
        ("0.4x3", [0.4, 0.4, 0.4]),
        ("0+10x4", [0, 10, 20, 30]),
        ("100-5x3", [100, 95, 90]),
        ("-1-1x2", [-1, -2]),
        ("1e3+1e2x2", [1000, 1100]),
        (".5x2 1", [0.5, 0.5, 1]),
        ("1 2  3\n4", [1, 2, 3, 4]),
    ],
)
def test_the_notation(text: str, values: list[float]) -> None:
    assert parse_series(text) == pytest.approx(tuple(values))


def test_an_underscore_is_missing_not_zero() -> None:
    series = parse_series("1 _x2 _ 2")
    assert [math.isnan(value) for value in series] == [False, True, True, True, False]


def test_beyond_its_end_a_series_is_missing() -> None:
    assert value_at((1.0,), 0) == 1.0
    assert math.isnan(value_at((1.0,), 1))


@pytest.mark.parametrize(
    ("text", "offset"),
    [("", 0), ("abc", 0), ("1 0.4*10", 2), ("1x", 0), ("x3", 0), ("1x2x3", 0), ("1+x3", 0), ("inf", 0), ("1e999", 0),
     ("0x999999 1", 0)],
)  # fmt: skip
def test_what_is_no_series_is_told_with_its_place(text: str, offset: int) -> None:
    with pytest.raises(SeriesError) as caught:
        parse_series(text)
    assert caught.value.offset == offset


@given(st.text(alphabet="0123456789+-._xe ", max_size=30))
def test_any_text_is_a_series_or_an_error(text: str) -> None:
    with contextlib.suppress(SeriesError):
        assert all(math.isnan(value) or math.isfinite(value) for value in parse_series(text))


@given(st.floats(-1e6, 1e6), st.integers(1, 50))
def test_a_repeated_value_is_that_value(value: float, count: int) -> None:
    assert parse_series(f"{value!r}x{count}") == (value,) * count
