"""Whatever a host shows, nothing that a detector says is NaN or infinite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.attribution.attribute import attribute
from unveil.detection.catalogue import DETECTORS
from unveil.detection.detector_input import Trait, select
from unveil.detection.ensemble import Ensemble, EnsembleSettings
from unveil.detection.reference import ReferenceSettings
from unveil.detection.training import ScikitLearn, fit
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from unveil.detection.judgement import Judgement

SHORT = EnsembleSettings(reference=ReferenceSettings(warm_up=20))
SUBSYSTEMS = list(Subsystem)
CHEAP = tuple(kind for kind in DETECTORS if kind.name != "isolation_forest")  # a forest takes a quarter of a second
every_kind = pytest.mark.parametrize("kind", DETECTORS, ids=[kind.name for kind in DETECTORS])


def ugly(random: np.random.Generator, windows: int, width: int) -> np.ndarray:
    """Return features as hosts have them: constant, rare, copied, absent for a while, for good, or 1e18."""
    values = random.normal(size=(windows, width)) * 10.0 ** random.integers(-3, 6, width)
    kinds = random.integers(0, 8, width)
    values[:, kinds == 0] = 0.0
    values[:, kinds == 1] = 7.5
    values[:, kinds == 2] = random.random((windows, int((kinds == 2).sum()))) < 0.02
    values[:, kinds == 3] = np.nan
    values[random.random(values.shape) < 0.05] = np.nan
    values[:, kinds == 4] *= np.where(random.random((windows, 1)) < 0.03, 1e18, 1.0)
    if width > 2:
        values[:, -1] = values[:, 0]
    return values


def layout_of(width: int) -> FeatureLayout:
    return FeatureLayout(tuple(FeatureId(f"{SUBSYSTEMS[index % 6].value}.m{index}.rate") for index in range(width)))


def ensemble_of() -> Ensemble:
    def trait(feature: FeatureId) -> Trait:
        number = int(feature.name.split(".")[1][1:])
        return Trait(subsystem=Subsystem(feature.name.split(".")[0]), log=number % 2 == 0, load=number % 5 == 4)

    return Ensemble(lambda layout: select(layout, trait), SHORT)


def all_finite(judgement: Judgement) -> bool:
    verdict = judgement.verdict
    told = [verdict.severity, *(number for vote in verdict.votes for number in (vote.score, vote.threshold))]
    told += [vote.p_value for vote in verdict.votes if vote.p_value is not None]
    shares = attribute(judgement)
    told += [share.share for share in shares.features] + list(shares.subsystems.values())
    told += [share.sigma for share in shares.features]
    whole = list(judgement.contributions.values())
    return bool(np.isfinite(told).all() and all(np.isfinite(array).all() and (array >= 0).all() for array in whole))


def watch(ensemble: Ensemble, rows: np.ndarray) -> list[Judgement]:
    layout, judgements = layout_of(rows.shape[1]), []
    for number, row in enumerate(rows):
        judgements.append(
            ensemble.judge(FeatureVector(window=number, wall_s=float(number), layout=layout, values=row.copy()))
        )
        ensemble.learn()
    return judgements


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), width=st.sampled_from([2, 3, 9, 60]), windows=st.sampled_from([1, 3, 40]))
@pytest.mark.parametrize("kind", CHEAP, ids=[kind.name for kind in CHEAP])
def test_a_detector_that_was_fitted_to_anything_says_something_finite(
    kind, seed: int, width: int, windows: int
) -> None:
    random = np.random.default_rng(seed)
    detector = kind.restore(kind.fit(np.clip(ugly(random, windows, width), -40, 40), ScikitLearn(), 0))
    for row in (*ugly(random, 3, width), np.full(width, np.nan), np.full(width, 1e18), np.full(width, -np.inf)):
        answer = detector.score(row.copy())
        assert np.isfinite(answer.score)
        assert np.isfinite(answer.contributions).all()
        assert (answer.contributions >= 0).all()


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000), width=st.sampled_from([2, 3, 25]))
def test_an_ensemble_that_watches_anything_says_something_finite(seed: int, width: int) -> None:
    random = np.random.default_rng(seed)
    assert all(map(all_finite, watch(ensemble_of(), ugly(random, 45, width))))


@pytest.mark.slow
@pytest.mark.parametrize("width", [2, 40, 800])
def test_all_detectors_together_say_something_finite(width: int) -> None:
    random = np.random.default_rng(width)
    ensemble = ensemble_of()
    watch(ensemble, ugly(random, 70, width))
    ensemble.adopt(fit(ensemble.training_set()))
    judgements = watch(ensemble, ugly(random, 20, width))
    assert {vote.detector for judgement in judgements for vote in judgement.verdict.votes} == {
        k.name for k in DETECTORS
    }
    assert all(map(all_finite, judgements))


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("width", [2, 300, 5000])
def test_any_number_of_features_is_judged(kind, width: int) -> None:
    random = np.random.default_rng(width)
    detector = kind.restore(kind.fit(np.clip(ugly(random, 90, width), -40, 40), ScikitLearn(), 0))
    for row in ugly(random, 5, width):
        answer = detector.score(row)
        assert np.isfinite(answer.score)
        assert np.isfinite(answer.contributions).all()


@every_kind
def test_who_is_named_stays_when_each_feature_has_a_copy(kind) -> None:
    random = np.random.default_rng(4)
    past = random.normal(size=(200, 3)) @ random.normal(size=(3, 18)) + random.normal(size=(200, 18)) * 0.5
    window = past[0].copy()
    window[[1, 7]] = [9.0, -7.0]  # the same subsystem
    shares = []
    for copies in (1, 3):
        z, now = np.tile(past, copies), np.tile(window, copies)
        said = kind.restore(kind.fit(z, ScikitLearn(), 0)).score(now).contributions
        by_feature = said.reshape(copies, -1).sum(axis=0)
        by_subsystem = np.bincount(np.arange(18) % 6, by_feature / by_feature.sum(), minlength=6)
        shares.append(by_subsystem)
    assert shares[0].argmax() == shares[1].argmax() == 1
    assert np.abs(shares[0] - shares[1]).max() < 0.15
