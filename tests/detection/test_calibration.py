"""Scores, evidence and alarm levels."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.detection.calibration import MOST_EVIDENCE, OF_A_RANGE, OF_TRENDS, Calibration


def seeded(windows: int = 600, seed: int = 0) -> Calibration:
    calibration = Calibration("zscore")
    calibration.seed(np.random.default_rng(seed).exponential(size=windows))
    return calibration


def test_p_values_of_exchangeable_scores_are_evenly_spread():
    calibration = seeded(1000)
    p_values = [calibration.p_value(score) for score in np.random.default_rng(1).exponential(size=2000)]
    for share in (0.05, 0.25, 0.5, 0.9):
        assert np.mean(np.array(p_values) <= share) == pytest.approx(share, abs=0.05)


def test_a_p_value_is_never_zero_and_evidence_is_bounded():
    calibration = seeded(60)
    assert calibration.p_value(1e9) == pytest.approx(1 / 61)
    assert calibration.p_value(-1.0) == 1.0
    assert calibration.evidence(1e9) == MOST_EVIDENCE
    assert calibration.evidence(-1.0) == 0.0


def test_stranger_is_never_less_evident():
    calibration = seeded(100)
    evidence = [calibration.evidence(score) for score in np.linspace(0, 30, 200)]
    assert evidence == sorted(evidence)


def test_constant_scores_calibrate_too():
    calibration = Calibration("zscore")
    calibration.seed(np.full(60, 2.0))
    assert calibration.evidence(2.0) == 0.0
    assert calibration.evidence(2.1) == MOST_EVIDENCE


def test_the_rarer_the_alarm_may_be_the_higher_is_its_level():
    calibration = seeded()
    levels = [calibration.level(rate) for rate in (1e-2, 1e-3, 1e-4)]
    assert levels == sorted(levels)
    assert levels[0] < levels[-1] < MOST_EVIDENCE


def test_ordinary_scores_alarm_about_as_seldom_as_asked():
    calibration, hours = seeded(1800), 6
    alarmed = [
        calibration.vote(score, rate=2 / 3600).anomalous
        for score in np.random.default_rng(2).exponential(size=3600 * hours)
    ]
    excursions = int((np.diff(np.array([False, *alarmed]).astype(int)) == 1).sum())
    assert excursions <= 3 * 2 * hours


def test_a_lasting_fault_alarms_within_ten_windows_and_a_glitch_does_not():
    calibration = seeded()
    assert not calibration.vote(1e6, rate=1e-3).anomalous
    calibration.calm()
    assert any(calibration.vote(1e6, rate=1e-3).anomalous for _ in range(10))


def test_what_is_only_a_little_strange_alarms_when_it_stays():
    calibration = seeded()
    high = float(np.quantile(calibration.scores(), 0.97))
    votes = [calibration.vote(high, rate=1e-3).anomalous for _ in range(60)]
    assert not votes[0]
    assert votes[-1]


def test_calm_forgets_evidence_and_keeps_scores():
    calibration = seeded()
    for _ in range(10):
        calibration.vote(1e6, rate=1e-3)
    calibration.calm()
    assert not calibration.vote(1.0, rate=1e-3).anomalous
    assert len(calibration.scores()) == 600


def test_it_is_not_ready_before_thirty_scores_and_keeps_the_newest():
    calibration = Calibration("zscore", capacity=50)
    for score in range(29):
        calibration.push(float(score))
    assert not calibration.ready
    for score in range(29, 80):
        calibration.push(float(score))
    assert calibration.ready
    assert calibration.scores().tolist() == list(range(30, 80))


def test_the_scores_of_a_young_range_are_left_behind():
    calibration = Calibration("shift", paces=OF_TRENDS, newest=OF_A_RANGE)
    calibration.seed(np.concatenate([np.full(100, 5.0), np.zeros(500)]))
    assert calibration.evidence(1.0) == MOST_EVIDENCE


def test_the_slow_pace_tells_what_comes_and_goes_and_does_not_remember_it_for_long():
    calibration = Calibration("shift", paces=OF_TRENDS, newest=OF_A_RANGE)
    calibration.seed(np.zeros(600))
    now_and_then = [calibration.vote(float(window % 3 == 0), rate=1e-3).anomalous for window in range(60)]
    assert all(now_and_then[40:])
    for _ in range(600):
        calibration.vote(1.0, rate=1e-3)
    assert not any([calibration.vote(0.0, rate=1e-3).anomalous for _ in range(30)][15:])


@pytest.mark.parametrize(("score", "least", "most"), [(5.0, 1, 4), (1.5, 1, 4), (1.0, 5, 12)])
def test_what_was_strong_and_has_gone_altogether_is_over_sooner_than_what_was_weak(
    score: float, least: int, most: int
) -> None:
    calibration = Calibration("shift", paces=OF_TRENDS, newest=OF_A_RANGE)
    calibration.seed(np.zeros(600))
    for _ in range(100):
        calibration.vote(score, rate=1e-3)
    assert least <= sum(calibration.vote(0.0, rate=1e-3).anomalous for _ in range(40)) <= most
