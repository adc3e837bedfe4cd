"""The conformance suite: whatever is in the registry of detectors behaves like a detector."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.detection.catalogue import DETECTORS
from unveil.detection.detectors.isolation_forest import ISOLATION_FOREST
from unveil.detection.detectors.mahalanobis import MAHALANOBIS
from unveil.detection.detectors.zscore import ZSCORE, Form, zscore
from unveil.detection.training import ScikitLearn

FITTED = {}
KINDS = (*DETECTORS, zscore(Form.LARGEST), zscore(Form.MEAN))
every_kind = pytest.mark.parametrize(
    "kind", KINDS, ids=["zscore", "mahalanobis", "forest", "shift", "pca", "largest", "mean"]
)


def past(windows: int = 200, width: int = 20, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    mix = random.normal(size=(3, width)) * 0.6
    return random.normal(size=(windows, 3)) @ mix + random.normal(size=(windows, width)) * 0.5


def fitted(kind, z, seed=0):
    """Return what was fitted to this past before, where it was: a forest takes a quarter of a second."""
    asked = (kind, z.tobytes(), z.shape, seed)
    if asked not in FITTED:
        FITTED[asked] = fitted_anew(kind, z, seed)
    return FITTED[asked]


def fitted_anew(kind, z, seed):
    return kind.restore(kind.fit(z, ScikitLearn(), seed))


@every_kind
def test_a_strange_window_scores_higher_than_every_ordinary_one(kind):
    z = past()
    detector = fitted(kind, z)
    strange = z[0].copy()
    strange[::2] = np.resize([9.0, -9.0], 10)
    assert detector.score(strange).score > max(detector.score(row).score for row in z)


@every_kind
@pytest.mark.parametrize("width", [2, 7, 200])
def test_scores_and_contributions_are_finite_and_never_negative(kind, width):
    detector = fitted(kind, past(width=width))
    for row in past(20, width, seed=1) * 3:
        answer = detector.score(row)
        assert np.isfinite(answer.score)
        assert answer.contributions.shape == (width,)
        assert np.isfinite(answer.contributions).all()
        assert (answer.contributions >= 0).all()


@pytest.mark.slow
@every_kind
def test_three_thousand_features_are_judged(kind):
    detector = fitted(kind, past(120, 3000))
    assert np.isfinite(detector.score(np.full(3000, 2.0)).score)


@every_kind
@pytest.mark.parametrize("value", [1e18, -1e18, np.inf, -np.inf, 3e300])
def test_no_value_is_too_large(kind, value):
    detector = fitted(kind, past())
    window = np.zeros(20)
    window[4] = value
    answer = detector.score(window)
    assert np.isfinite(answer.score)
    assert np.isfinite(answer.contributions).all()
    assert answer.contributions[4] == answer.contributions.max() or kind is ISOLATION_FOREST


@every_kind
def test_the_order_of_features_does_not_matter(kind):
    z, window = past(), past(1, seed=3)[0]
    order = np.random.default_rng(5).permutation(20)
    straight, shuffled = fitted(kind, z), fitted(kind, z[:, order])
    one, other = straight.score(window), shuffled.score(window[order])
    tolerance = 0.05 if kind is ISOLATION_FOREST else 1e-6  # a shuffled forest is another sample of the same trees
    assert other.score == pytest.approx(one.score, abs=tolerance)
    if kind is not ISOLATION_FOREST:
        assert other.contributions == pytest.approx(one.contributions[order], rel=1e-4)


@every_kind
def test_an_absent_feature_is_neutral(kind):
    detector = fitted(kind, past())
    window = past(1, seed=4)[0]
    window[6] = np.nan
    answer = detector.score(window)
    there = window.copy()
    there[6] = 30.0
    assert np.isfinite(answer.score)
    assert answer.score < detector.score(there).score or kind is ISOLATION_FOREST
    assert detector.score(np.full(20, np.nan)).score <= detector.score(past(1, seed=4)[0] * 5).score


@every_kind
def test_features_that_never_moved_are_no_trouble(kind):
    z = past()
    z[:, ::2] = 0.0
    answer = fitted(kind, z).score(np.full(20, 4.0))
    assert np.isfinite(answer.score)
    still = fitted(kind, np.zeros((60, 5))).score(np.ones(5))
    assert np.isfinite(still.score)


@pytest.mark.parametrize("kind", [ZSCORE, MAHALANOBIS, zscore(Form.MEAN)], ids=["zscore", "mahalanobis", "mean"])
def test_what_never_moved_before_is_seen_when_it_moves(kind):
    z = past()
    z[:, 5] = 0.0
    detector = fitted(kind, z)
    still, moved = z[0].copy(), z[0].copy()
    moved[5] = 9.0
    assert detector.score(moved).score > detector.score(still).score
    assert detector.score(moved).contributions.argmax() == 5


@every_kind
def test_equal_windows_in_the_past_are_no_trouble(kind):
    detector = fitted(kind, np.repeat(past(1), 80, axis=0))
    assert np.isfinite(detector.score(past(1, seed=2)[0]).score)


@every_kind
def test_a_copy_of_a_feature_does_not_double_what_it_says(kind):
    z = past(width=20)
    window = past(1, seed=7)[0]
    window[0], window[9] = 6.0, 6.0
    doubled = fitted(kind, np.column_stack([z, z[:, 0]])).score(np.append(window, window[0])).contributions
    alone = fitted(kind, z).score(window).contributions
    before = alone[0] / alone.sum()
    after = (doubled[0] + doubled[20]) / doubled.sum()
    assert after == pytest.approx(before, rel=0.35 if kind is ISOLATION_FOREST else 0.2)


def test_copies_of_a_feature_that_never_moved_share_one_voice():
    z = past()
    z[:, 0] = 0.0
    window = np.zeros(22)
    window[[0, 20, 21]] = 5.0
    window[1] = 5.0
    answer = fitted(ZSCORE, np.column_stack([z, z[:, 0], z[:, 0]])).score(window)
    assert answer.contributions[[0, 20, 21]].sum() == pytest.approx(25.0)


@every_kind
def test_the_same_past_and_seed_give_the_same_answer(kind):
    z, window = past(), past(1, seed=8)[0]
    one, other = (fitted_anew(kind, z, seed=3).score(window) for _ in range(2))
    assert one.score == other.score
    assert (one.contributions == other.contributions).all()


def test_mahalanobis_contributions_sum_to_the_squared_distance():
    detector = fitted(MAHALANOBIS, past(400, 60))
    for window in past(20, 60, seed=9) * 2:
        answer = detector.score(window)
        assert answer.contributions.sum() == pytest.approx(answer.score**2, rel=1e-12)


def test_mahalanobis_sees_a_combination_that_no_single_feature_shows():
    random = np.random.default_rng(0)
    load = random.normal(size=(400, 1)) * 2
    z = np.concatenate([load, load + random.normal(size=(400, 1)) * 0.1, random.normal(size=(400, 6))], axis=1)
    detector = fitted(MAHALANOBIS, z)
    together, apart = np.zeros(8), np.zeros(8)
    together[:2], apart[:2] = [2.5, 2.5], [2.5, -2.5]
    assert detector.score(apart).score > 2 * detector.score(together).score


@pytest.mark.parametrize("windows", [60, 700])
def test_the_flat_forest_scores_like_scikit_learn(windows):
    z = past(windows, 40)
    forest = ScikitLearn().isolation_forest(z, seed=1)
    detector = fitted(ISOLATION_FOREST, z, seed=1)
    probes = np.concatenate([z[:50], past(50, 40, seed=2) * 4])
    ours = np.array([detector.score(row).score for row in probes])
    assert np.abs(ours + forest.score_samples(probes)).max() < 1e-12


def test_forest_credits_the_feature_that_sets_a_window_apart():
    z = past(600, 10)
    window = np.zeros(10)
    window[4] = 12.0
    assert fitted(ISOLATION_FOREST, z).score(window).contributions.argmax() == 4


def test_mahalanobis_without_a_feature_is_what_the_other_features_alone_would_say():
    detector = fitted(MAHALANOBIS, past(400, 40))
    covariance = detector.axes * (detector.variances - detector.rest) @ detector.axes.T + np.eye(40) * detector.rest
    window = past(1, 40, seed=6)[0]
    window[[3, 17, 30]] = np.nan
    present = ~np.isnan(window)
    away = np.clip(window - detector.mean, -8, 8)[present]
    expected = away @ np.linalg.solve(covariance[np.ix_(present, present)], away)
    answer = detector.score(window)
    assert answer.score**2 == pytest.approx(expected)
    assert answer.contributions.sum() == pytest.approx(expected)
    assert (answer.contributions[~present] == 0).all()
