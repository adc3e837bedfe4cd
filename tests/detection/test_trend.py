"""Where features have been lately."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unveil.detection.trend import Trend, trends

LOG = np.ones(3, dtype=np.bool_)


def followed(trend: Trend, values: list[float], scale: float = 1.0) -> list[float]:
    return [float(trend.follow(np.array([value]), np.array([scale]))[0]) for value in values]


def test_a_trend_goes_back_faster_than_away_and_one_glitch_is_soon_forgotten():
    trend, scale = Trend(LOG[:1]), np.ones(1)
    away = [trend.follow(np.array([5.0]), scale)[0] for _ in range(40)]
    assert away[0] < 1
    assert away[-1] == pytest.approx(5.0, rel=0.02)
    back = [trend.follow(np.zeros(1), scale)[0] for _ in range(10)]
    assert back[-1] < 0.4
    rows = trends(np.array([[1e18], *[[0.0]] * 15]), scale, LOG[:1])
    assert rows[0, 0] < 1.5
    assert rows[-1, 0] < 0.05


def test_an_absent_feature_waits_where_it_is():
    trend, scale = Trend(LOG[:2]), np.ones(2)
    first = trend.follow(np.array([4.0, 4.0]), scale)
    second = trend.follow(np.array([4.0, np.nan]), scale)
    assert np.isnan(second[1])
    third = trend.follow(np.array([np.nan, 4.0]), scale)
    assert third[1] == second[0] > first[0]


def test_it_follows_its_features_to_another_layout():
    trend, scale = Trend(LOG[:2]), np.ones(2)
    (_, second) = trend.follow(np.array([0.0, 4.0]), scale)
    moved = trend.realigned(np.array([1, -1, 0]), LOG[:3])
    assert moved.follow(np.full(3, np.nan), np.ones(3)) == pytest.approx([np.nan] * 3, nan_ok=True)
    went_on = moved.follow(np.array([second, 0.0, 0.0]), np.ones(3))
    assert went_on == pytest.approx([second, 0.0, 0.0])


def test_what_was_far_away_is_let_go_once_the_newest_windows_agree_that_it_is_over():
    trend = Trend(LOG[:1])
    assert followed(trend, [50.0] * 60)[-1] == pytest.approx(10.0, rel=0.01)
    back = followed(trend, [0.3, -0.3] * 4)
    assert back[4] > 2
    assert back[5] == pytest.approx(0.6)


def test_what_comes_and_goes_within_a_few_windows_is_not_let_go():
    trend = Trend(LOG[:1])
    bursts = [8.0, 9.0, 8.5, 0.0, 0.1, 0.0, 0.2]
    followed(trend, bursts * 10)
    assert min(followed(trend, bursts * 3)) > 1


def test_a_reading_that_has_fallen_a_long_way_counts_for_a_window_and_the_next_one_decides():
    trend = Trend(LOG[:1])
    followed(trend, [6.0] * 40)
    shown = followed(trend, [4.5] * 9)
    assert min(shown[:3]) > 4.5
    assert set(shown[3:]) == {0.0}, "in part it was of the time before"
    assert min(followed(trend, [4.4] * 9)) > 4, "it was not: the next reading is no lower"


def test_a_reading_that_has_fallen_to_its_usual_place_counts_no_more():
    trend = Trend(LOG[:1])
    followed(trend, [6.0] * 40)
    assert set(followed(trend, [0.5] * 9)) == {0.0}


def test_a_reading_that_has_fallen_a_little_and_one_of_what_is_no_counter_count_on():
    trend = Trend(LOG[:1])
    followed(trend, [6.0] * 40)
    assert min(followed(trend, [5.2] * 9)) > 5
    share = Trend(~LOG[:1])
    followed(share, [6.0] * 40)
    assert min(followed(share, [4.5] * 9)) > 4


def test_what_stands_still_is_not_taken_for_a_reading_for_long():
    trend = Trend(LOG[:1])
    followed(trend, [6.0] * 40)
    assert followed(trend, [3.0] * 20)[-1] == pytest.approx(3.0, rel=0.01)


def test_a_fallen_reading_is_remembered_in_another_layout():
    trend = Trend(LOG[:1])
    followed(trend, [6.0] * 40)
    followed(trend, [4.5] * 4)
    moved = trend.realigned(np.array([-1, 0]), LOG[:2])
    assert moved.follow(np.array([0.0, 4.5]), np.ones(2)).tolist() == [0.0, 0.0]
    assert moved.follow(np.array([0.0, 4.4]), np.ones(2))[1] > 4


def test_what_is_beyond_the_bound_and_moves_is_no_reading_that_stands():
    trend = Trend(LOG[:1])
    followed(trend, [40.0 + window % 7 for window in range(40)])
    assert followed(trend, [0.5])[0] > 7


@given(
    rows=arrays(np.float64, (40, 3), elements=st.one_of(st.floats(-1e30, 1e30), st.just(float("nan")), st.just(0.0))),
    log=arrays(np.bool_, 3),
)
def test_a_trend_is_absent_where_the_window_is_and_else_between_the_centre_and_where_windows_were(
    rows: np.ndarray, log: np.ndarray
) -> None:
    shown = trends(rows, np.ones(3), log)
    assert (np.isnan(shown) == np.isnan(rows)).all()
    assert (np.nan_to_num(np.abs(shown)) <= 10.0).all()
    for past, newest in zip(rows.T, shown.T, strict=True):
        seen = past[~np.isnan(past)]
        assert (np.nan_to_num(newest) <= max(seen.max(initial=0.0), 0.0)).all()
        assert (np.nan_to_num(newest) >= min(seen.min(initial=0.0), 0.0)).all()
