"""Where features have been lately."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.detection.trend import Trend, trends


def test_a_trend_goes_back_faster_than_away_and_one_glitch_is_soon_forgotten():
    trend, scale = Trend(1), np.ones(1)
    away = [trend.follow(np.array([5.0]), scale)[0] for _ in range(40)]
    assert away[0] < 1
    assert away[-1] == pytest.approx(5.0, rel=0.02)
    back = [trend.follow(np.zeros(1), scale)[0] for _ in range(10)]
    assert back[-1] < 0.4
    rows = trends(np.array([[1e18], *[[0.0]] * 15]), scale)
    assert rows[0, 0] < 1.5
    assert rows[-1, 0] < 0.05


def test_an_absent_feature_waits_where_it_is():
    trend, scale = Trend(2), np.ones(2)
    first = trend.follow(np.array([4.0, 4.0]), scale)
    second = trend.follow(np.array([4.0, np.nan]), scale)
    assert np.isnan(second[1])
    third = trend.follow(np.array([np.nan, 4.0]), scale)
    assert third[1] == second[0] > first[0]


def test_it_follows_its_features_to_another_layout():
    trend, scale = Trend(2), np.ones(2)
    (_, second) = trend.follow(np.array([0.0, 4.0]), scale)
    moved = trend.realigned(np.array([1, -1, 0]))
    assert moved.follow(np.full(3, np.nan), np.ones(3)) == pytest.approx([np.nan] * 3, nan_ok=True)
    went_on = moved.follow(np.array([second, 0.0, 0.0]), np.ones(3))
    assert went_on == pytest.approx([second, 0.0, 0.0])
