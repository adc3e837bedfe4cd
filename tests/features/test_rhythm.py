"""The period of a training step from a NIC's counter: found where there is one, never claimed where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unveil.features.rhythm import LEAST, STRETCH, RhythmTracker, Sight, rhythm

TICK = 0.1
SIGHT = Sight(interval_s=TICK)


def steps(period: float, *, burst: float, jitter: float = 0.0, seed: int = 0, samples: int = STRETCH) -> np.ndarray:
    """Return the bytes in each tick of a job that sends for *burst* seconds at the end of each step."""
    dice = np.random.default_rng(seed)
    fine = np.zeros(samples * 100)
    at = 0.0
    while at < samples * TICK:
        begin = int((at + period - burst) / TICK * 100)
        fine[begin : int((at + period) / TICK * 100)] = 1.0
        at += period * (1 + jitter * dice.standard_normal())
    return fine.reshape(samples, 100).sum(1) * 1e5 + dice.poisson(2e4, samples)


@pytest.mark.parametrize("period", [0.27, 0.352, 0.41, 0.75, 1.0, 1.37, 2.9, 6.1])
@pytest.mark.parametrize("share", [0.15, 0.4])
def test_the_period_of_a_step_is_found_within_three_percent(period: float, share: float) -> None:
    found = rhythm(steps(period, burst=share * period, jitter=0.02), SIGHT)
    assert found is not None
    assert found.period_s == pytest.approx(period, rel=0.03)


def test_two_bursts_a_step_are_one_step() -> None:
    period = 2.0
    once = steps(period, burst=0.3)
    twice = once + 0.4 * np.roll(once, 10)
    found = rhythm(twice, SIGHT)
    assert found is not None
    assert found.period_s == pytest.approx(period, rel=0.03)


@pytest.mark.parametrize(("before", "after"), [(0.335, 0.826), (0.826, 0.341), (1.3, 0.9), (0.9, 6.0)])
def test_a_step_that_has_become_another_one_is_not_told_any_more(before: float, after: float) -> None:
    old, new = steps(before, burst=0.3 * before), steps(after, burst=0.3 * after)
    assert rhythm(old, SIGHT) is not None
    for newest in (220, 300, 380):  # ticks
        found = rhythm(np.concatenate([old[newest:], new[:newest]]), SIGHT)
        assert found is None or found.period_s == pytest.approx(after, rel=0.03)


def test_noise_has_no_rhythm() -> None:
    for seed in range(50):
        dice = np.random.default_rng(seed)
        assert rhythm(dice.poisson(100, STRETCH).astype(float), SIGHT) is None
        assert rhythm(dice.pareto(1.5, STRETCH), SIGHT) is None
        assert rhythm((dice.random(STRETCH) < 0.05) * 1e9, SIGHT) is None


def test_a_load_that_wanders_is_never_taken_for_a_rhythm_for_long() -> None:
    told = 0
    for seed in range(10):
        dice = np.random.default_rng(seed)
        tracker = RhythmTracker(SIGHT)
        load = np.abs(np.cumsum(dice.standard_normal(3 * STRETCH)))
        for second in range(0, len(load), 10):
            tracker.push(load[second : second + 10])
            told += tracker.rhythm is not None
    assert told / (10 * 3 * STRETCH / 10) < 0.02


def test_nothing_short_idle_or_constant_has_a_rhythm() -> None:
    assert rhythm(np.zeros(STRETCH), SIGHT) is None
    assert rhythm(np.full(STRETCH, 1e18), SIGHT) is None
    assert rhythm(steps(0.5, burst=0.2)[: LEAST - 1], SIGHT) is None


@settings(deadline=None, max_examples=60)
@given(arrays(np.float64, st.integers(1, 700), elements=st.floats(0, 1e18)))
def test_whatever_is_told_is_finite_and_can_be_seen(amounts: np.ndarray) -> None:
    found = rhythm(amounts, SIGHT)
    if found is not None:
        assert 2 * TICK * 0.99 <= found.period_s <= len(amounts) * TICK
        assert np.isfinite(found.strength)


def test_a_tracker_tells_once_it_is_sure_and_forgets_with_a_gap() -> None:
    tracker = RhythmTracker(SIGHT)
    amounts = steps(0.5, burst=0.2, jitter=0.01)
    for second in range(0, 400, 10):
        tracker.push(amounts[second : second + 10])
    assert tracker.rhythm is None  # seen twice
    for second in range(400, 600, 10):
        tracker.push(amounts[second : second + 10])
    assert tracker.rhythm is not None
    assert tracker.rhythm.period_s == pytest.approx(0.5, rel=0.03)
    tracker.push(np.array([1.0, np.nan]))
    assert tracker.rhythm is None


def test_a_job_that_changes_its_step_is_not_told_until_it_is_sure_again() -> None:
    tracker = RhythmTracker(SIGHT)
    both = np.concatenate([steps(0.5, burst=0.2), steps(0.9, burst=0.3, samples=2 * STRETCH)])
    told = []
    for second in range(0, len(both), 10):
        tracker.push(both[second : second + 10])
        told.append(tracker.rhythm)
    sure = [each.period_s for each in told if each is not None]
    assert all(period == pytest.approx(0.5, rel=0.03) or period == pytest.approx(0.9, rel=0.03) for period in sure)
    assert sure[-1] == pytest.approx(0.9, rel=0.03)
