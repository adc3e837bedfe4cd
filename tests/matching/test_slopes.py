"""How fast a feature rises, over windows that come and go."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unveil.matching.slopes import POINTS, Slopes
from unveil.records.entity import HOST, Entity, EntityKind

POD1, POD2 = Entity(EntityKind.CGROUP, "/pod1"), Entity(EntityKind.CGROUP, "/pod2")
KEY = ("memory.cgroup_anon.last", EntityKind.CGROUP, 10.0)


def _last(slopes: Slopes, values: list[float], *, over_s: float = 10.0, step_s: float = 1.0) -> float:
    found = math.nan
    for index, value in enumerate(values):
        key = ("memory.anon.last", EntityKind.HOST, over_s)
        found = float(slopes.push(key, (HOST,), index * step_s, np.array([value]))[0])
    return found


def test_a_straight_line_has_its_slope_and_a_level_none() -> None:
    assert _last(Slopes(), [5.0 * second for second in range(12)]) == pytest.approx(5.0)
    assert _last(Slopes(), [7.0] * 12) == 0.0


def test_until_four_fifths_of_the_time_were_seen_it_is_unknown() -> None:
    assert math.isnan(_last(Slopes(), [1.0 * second for second in range(8)]))
    assert _last(Slopes(), [1.0 * second for second in range(9)]) == pytest.approx(1.0)


def test_only_the_time_that_is_asked_for_counts() -> None:
    assert _last(Slopes(), [100.0 * second for second in range(20)] + [7.0] * 12) == pytest.approx(0.0, abs=1e-9)


def test_gaps_are_left_out_and_a_missing_newest_value_is_unknown() -> None:
    rising = [2.0 * second for second in range(12)]
    assert _last(Slopes(), [*rising[:5], math.nan, *rising[6:]]) == pytest.approx(2.0)
    assert math.isnan(_last(Slopes(), [*rising[:-1], math.nan]))


def test_a_long_time_is_kept_as_few_points_and_gives_the_same_slope() -> None:
    slopes = Slopes()
    assert _last(slopes, [3.0 * second for second in range(700)], over_s=600.0) == pytest.approx(3.0)
    (trail,) = slopes._trails.values()
    assert len(trail.times) <= POINTS + 3


def test_an_entity_that_came_has_no_past_and_one_that_stays_keeps_its_own() -> None:
    slopes = Slopes()
    for second in range(11):
        slopes.push(KEY, (POD1,), float(second), np.array([4.0 * second]))
    found = slopes.push(KEY, (POD2, POD1), 11.0, np.array([0.0, 44.0]))
    assert math.isnan(found[0])
    assert found[1] == pytest.approx(4.0)
    assert slopes.seen().slope(KEY[0], POD1, 10.0) == pytest.approx(4.0)
    assert slopes.seen().slope(KEY[0], POD2, 10.0) is None
    assert slopes.seen().slope("memory.other.last", POD1, 10.0) is None


def test_a_clock_that_was_set_back_begins_anew() -> None:
    slopes = Slopes()
    for second in range(11):
        slopes.push(KEY, (POD1,), float(second), np.array([1.0 * second]))
    assert math.isnan(slopes.push(KEY, (POD1,), 3.0, np.array([3.0]))[0])


def test_what_was_seen_stays_as_it_was() -> None:
    slopes = Slopes()
    for second in range(11):
        slopes.push(KEY, (POD1,), float(second), np.array([1.0 * second]))
    seen = slopes.seen()
    for second in range(11, 40):
        slopes.push(KEY, (POD1,), float(second), np.array([0.0]))
    assert seen.slope(KEY[0], POD1, 10.0) == pytest.approx(1.0)


def test_another_generation_goes_on_with_what_it_still_asks_for() -> None:
    before, after, other = Slopes(), Slopes(), Slopes()
    for second in range(10):
        before.push(KEY, (POD1,), float(second), np.array([1.0 * second]))
    after.keep(before, {KEY})
    other.keep(before, set())
    assert after.push(KEY, (POD1,), 10.0, np.array([10.0]))[0] == pytest.approx(1.0)
    assert math.isnan(other.push(KEY, (POD1,), 10.0, np.array([10.0]))[0])
