"""Statistics of channels: by hand, against plain Python, and under everything that counters do to their readers."""

from __future__ import annotations

import math
import statistics as plain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.features.feature import Stat
from unveil.features.statistics import STATISTICS

NONE = float("nan")
ALL = list(Stat)


def one(stat: Stat, samples: list[float], seconds: list[float] | None = None) -> float:
    """The statistic of one channel, computed beside two others that must not matter."""
    values = np.array([samples, [1.0] * len(samples), [NONE] * len(samples)]).T
    times = np.arange(len(samples), dtype=float) if seconds is None else np.array(seconds)
    with np.errstate(all="raise", under="ignore"):
        result = STATISTICS[stat](times, values, np.isfinite(values))
        if np.isfinite(samples).all():
            quick = STATISTICS[stat](times, values[:, :2], None)
            size = max(1.0, *(abs(sample) for sample in samples))  # cancellation loses digits of the largest
            np.testing.assert_allclose(quick, result[:2], rtol=1e-9, atol=1e-12 * size)
    assert math.isnan(result[2])
    return float(result[0])


def test_rate_is_the_rise_over_the_time_between_first_and_last() -> None:
    assert one(Stat.RATE, [10, 20, 40, 40]) == 10.0
    assert one(Stat.RATE, [NONE, 20, 40, NONE]) == 20.0
    assert one(Stat.RATE, [5, NONE, NONE, 8]) == 1.0
    assert one(Stat.RATE, [0, 3], [0.0, 0.1]) == pytest.approx(30.0)


def test_one_sample_has_no_rate() -> None:
    assert math.isnan(one(Stat.RATE, [7]))
    assert math.isnan(one(Stat.RATE, [NONE, 7, NONE]))


def test_iowait_that_goes_back_by_a_hair_stood_still() -> None:
    assert one(Stat.RATE, [5482.82, 5482.81]) == 0.0
    assert one(Stat.RATE, [109446.5, 109446.08, 109446.3, 109447.5]) == pytest.approx(1 / 3)


def test_a_counter_that_began_anew_loses_the_step_but_not_the_others() -> None:
    assert one(Stat.RATE, [1000, 1010, 1020, 3, 13]) == pytest.approx(10.0), "three steps of ten in three seconds"
    assert one(Stat.RATE, [1000, NONE, 1020, 3, NONE, 23]) == pytest.approx(10.0)


def test_a_wrap_of_32_bits_is_a_beginning_anew_and_not_four_billion_events() -> None:
    top = 2.0**32
    assert one(Stat.RATE, [top - 30, top - 20, top - 10, 0, 10]) == pytest.approx(10.0)


def test_a_counter_that_falls_most_of_the_time_tells_nothing() -> None:
    assert math.isnan(one(Stat.RATE, [1000, 5]))
    assert math.isnan(one(Stat.RATE, [1000, 500, 200, 210]))
    assert one(Stat.RATE, [1000, 5, 6]) == 1.0, "half of the steps are good"


def test_a_counter_of_ten_to_the_eighteen_still_has_a_rate() -> None:
    assert one(Stat.RATE, [1e18, 1e18 + 2**20, 1e18 + 2**21]) == 2.0**20


def test_unevenness_is_the_deviation_of_the_rate_from_sample_to_sample() -> None:
    assert one(Stat.UNEVENNESS, [0, 0, 10, 10, 20]) == 5.0
    assert one(Stat.UNEVENNESS, [0, 10, 20, 30]) == 0.0
    assert one(Stat.UNEVENNESS, [0, 10, NONE, 30]) == 0.0, "a missed sample is no burst"
    assert one(Stat.UNEVENNESS, [100, 110, 0, 10]) == 0.0
    assert math.isnan(one(Stat.UNEVENNESS, [1, 2]))


def test_gauges_by_hand() -> None:
    samples = [NONE, 2, NONE, 6, 4, NONE]
    assert one(Stat.MEAN, samples) == 4.0
    assert one(Stat.MIN, samples) == 2.0
    assert one(Stat.MAX, samples) == 6.0
    assert one(Stat.LAST, samples) == 4.0
    assert one(Stat.STD, samples) == pytest.approx(math.sqrt(8 / 3))
    assert one(Stat.SLOPE, [1, 3, NONE, 7]) == pytest.approx(2.0)
    assert one(Stat.SLOPE, [NONE, 7, 5, 3]) == pytest.approx(-2.0)


@pytest.mark.parametrize("stat", [Stat.STD, Stat.SLOPE, Stat.UNEVENNESS, Stat.RATE])
def test_one_sample_does_not_move(stat: Stat) -> None:
    assert math.isnan(one(stat, [3.0]))


@pytest.mark.parametrize("size", [0.1, 1 / 3, 1e11 + 0.7, 1e18])
@pytest.mark.parametrize("count", [2, 3, 4, 31])
def test_a_constant_has_no_spread_at_all(size: float, count: int) -> None:
    for stat in (Stat.STD, Stat.SLOPE, Stat.RATE):
        assert one(stat, [size] * count) == 0.0
        assert one(stat, [size, NONE] * count) == pytest.approx(0.0, abs=1e-12 * size)


samples = st.lists(st.one_of(st.floats(0, 1e18, allow_subnormal=False), st.just(NONE)), min_size=1, max_size=31)


@settings(max_examples=150, deadline=None)
@given(samples)
def test_statistics_agree_with_plain_python(values: list[float]) -> None:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        assert all(math.isnan(one(stat, values)) for stat in ALL)
        return
    close = {"rel": 1e-9, "abs": 1e-6}
    assert one(Stat.MEAN, values) == pytest.approx(plain.fmean(known), **close)
    assert (one(Stat.MIN, values), one(Stat.MAX, values), one(Stat.LAST, values)) == (
        min(known),
        max(known),
        known[-1],
    )
    if len(known) > 1:
        assert one(Stat.STD, values) == pytest.approx(plain.pstdev(known), rel=1e-6, abs=1e-6)
        at = [float(index) for index, value in enumerate(values) if not math.isnan(value)]
        wanted = plain.linear_regression(at, known).slope
        assert one(Stat.SLOPE, values) == pytest.approx(wanted, rel=1e-6, abs=1e-9 * max(known) + 1e-9)


@settings(max_examples=150, deadline=None)
@given(samples)
def test_rates_are_never_negative_and_never_infinite(values: list[float]) -> None:
    for stat in (Stat.RATE, Stat.UNEVENNESS):
        result = one(stat, values)
        assert math.isnan(result) or 0 <= result < math.inf


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=31), st.sampled_from([0.5, 2.0, 1024.0]))
def test_rates_scale_with_their_counter(steps: list[int], factor: float) -> None:
    counter = np.cumsum(steps).tolist()
    assert one(Stat.RATE, counter) == pytest.approx((counter[-1] - counter[0]) / (len(counter) - 1))
    assert one(Stat.RATE, [factor * each for each in counter]) == factor * one(Stat.RATE, counter)
