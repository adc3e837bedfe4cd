"""The interval of a counted rate, against published values and against the definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.knowledge.poisson import poisson_interval


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(0, 0.0, 3.689), (1, 0.0253, 5.572), (2, 0.242, 7.225), (10, 4.795, 18.39), (100, 81.36, 121.6)],
)  # fmt: skip
def test_the_interval_is_that_of_the_tables(count: int, low: float, high: float) -> None:
    assert poisson_interval(count) == (pytest.approx(low, rel=1e-3), pytest.approx(high, rel=1e-3))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 500), st.floats(0.5, 0.999))
def test_it_holds_the_count_and_grows_with_the_confidence(count: int, confidence: float) -> None:
    low, high = poisson_interval(count, confidence=confidence)
    assert low <= count < high
    wider = poisson_interval(count, confidence=(1 + confidence) / 2)
    assert wider[0] <= low
    assert wider[1] > high
    assert math.isfinite(high)
