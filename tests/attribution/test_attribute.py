"""Shares of features and subsystems."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unveil.attribution.attribute import attribute
from unveil.detection.detector_input import Trait, select
from unveil.detection.judgement import Judgement
from unveil.detection.reference import Reference
from unveil.records.feature import FeatureId, FeatureLayout
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State, Verdict

WIDTH = 9
WORKED = "cpu.work_moved.rate"
IDS = (
    *(FeatureId(f"{tuple(Subsystem)[index % 6]}.m{index}.rate") for index in range(WIDTH - 1)),
    FeatureId(WORKED),
)


def reference() -> Reference:
    scope = select(
        FeatureLayout(IDS), lambda feature: Trait(subsystem=Subsystem(feature.name.partition(".")[0]), log=True)
    )
    learned = Reference(scope)
    random = np.random.default_rng(0)
    for _ in range(80):
        learned.learn(random.uniform(90, 110, size=WIDTH))
    return learned


REFERENCE = reference()


def judgement(contributions, values=None):
    values = np.full(WIDTH, 100.0) if values is None else values
    return Judgement(
        verdict=Verdict(window=7, state=State.ANOMALOUS),
        reference=REFERENCE,
        values=values,
        z=REFERENCE.sigmas(values),
        contributions=contributions,
    )


CONTRIBUTIONS = arrays(np.float64, WIDTH, elements=st.floats(0, 1e200))


@given(st.lists(CONTRIBUTIONS, min_size=1, max_size=3))
def test_shares_sum_to_one_over_features_and_over_the_six_subsystems(voices):
    found = attribute(judgement({f"d{index}": voice for index, voice in enumerate(voices)}))
    if not any(voice.max() > 0 for voice in voices):
        assert found.features == ()
        assert found.subsystems == {}
        return
    assert sum(share.share for share in found.features) == pytest.approx(1, abs=1e-9)
    assert sum(found.subsystems.values()) == pytest.approx(1, abs=1e-9)
    assert set(found.subsystems) == set(Subsystem)
    assert all(0 <= share <= 1 + 1e-12 for share in found.subsystems.values())
    shares = [share.share for share in found.features]
    assert shares == sorted(shares, reverse=True)


def test_no_detector_speaks_louder_for_its_larger_numbers():
    quiet, loud = np.zeros(WIDTH), np.zeros(WIDTH)
    quiet[0], loud[1] = 1e-6, 1e6
    found = attribute(judgement({"a": quiet, "b": loud}))
    assert found.subsystems[Subsystem.CPU] == pytest.approx(0.5)
    assert found.subsystems[Subsystem.GPU] == pytest.approx(0.5)


def test_value_expectation_and_signed_distance_are_kept():
    values = np.full(WIDTH, 100.0)
    values[2] = 20.0
    voice = np.zeros(WIDTH)
    voice[2] = 1.0
    (share,) = attribute(judgement({"zscore": voice}, values)).features
    assert share.feature == IDS[2]
    assert share.subsystem is Subsystem.MEMORY
    assert share.value == 20.0
    assert share.expected == pytest.approx(100, rel=0.1)
    assert share.sigma < -5


def test_an_absent_feature_has_no_share():
    values = np.full(WIDTH, 100.0)
    values[3] = np.nan
    found = attribute(judgement({"forest": np.ones(WIDTH)}, values))
    assert IDS[3] not in {share.feature for share in found.features}
    assert sum(found.subsystems.values()) == pytest.approx(1, abs=1e-9)


def test_a_list_of_the_largest_leaves_the_subsystems_whole():
    found = attribute(judgement({"a": np.arange(1.0, WIDTH + 1)}), largest=3)
    assert len(found.features) == 3
    assert sum(found.subsystems.values()) == pytest.approx(1, abs=1e-9)


def test_there_is_nothing_to_attribute_while_the_reference_warms_up():
    found = attribute(judgement({}))
    assert found.window == 7
    assert found.features == ()
    assert found.subsystems == {}


def test_less_work_is_named_only_where_a_detector_names_no_cause():
    outcome, cause = np.zeros(WIDTH), np.zeros(WIDTH)
    outcome[-1] = cause[-1] = 9.0
    cause[3] = 1.0
    alone = attribute(judgement({"shift": outcome}))
    assert [str(share.feature) for share in alone.features] == [WORKED]
    beside = attribute(judgement({"shift": cause}))
    assert [share.feature for share in beside.features] == [IDS[3]]
    assert beside.subsystems[IDS[3].name.partition(".")[0]] == 1.0
