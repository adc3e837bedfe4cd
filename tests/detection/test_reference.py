"""What a host's own past makes expected."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.detection.detector_input import Trait, select
from unveil.detection.reference import Reference, ReferenceSettings, from_bytes
from unveil.errors import BadInputError
from unveil.records.entity import Entity, EntityKind
from unveil.records.feature import FeatureId, FeatureLayout
from unveil.records.subsystem import Subsystem


@pytest.fixture
def learned(lab, host):
    """A reference that has learned 200 windows of a host, and that host."""
    reference = Reference(lab.scope_of(host.layout))
    for _ in range(200):
        reference.learn(reference.scope.take(host.values()))
    return reference, host


def test_it_is_not_ready_before_the_warm_up_is_over(lab, host):
    reference = Reference(lab.scope_of(host.layout), ReferenceSettings(warm_up=40))
    for _ in range(39):
        reference.learn(host.values())
    assert not reference.ready
    assert (reference.sigmas(host.values()) == 0).all()
    reference.learn(host.values())
    assert reference.ready


def test_it_expects_the_median_in_the_features_own_unit(learned):
    reference, host = learned
    feature = host.layout.ids[1]
    expected = reference.expected(feature)
    past = np.array([host.values()[1] for _ in range(500)])
    assert expected.centre == pytest.approx(np.median(past), rel=0.3)
    assert 0.3 < expected.sigma / past.std() < 3


def test_a_feature_that_never_moved_is_kept_with_the_floor_as_its_sigma(learned):
    reference, host = learned
    assert reference.expected(host.layout.ids[0]).centre == 0.0
    values = host.values()
    values[0] = np.expm1(2.0)
    assert reference.sigmas(values)[0] == pytest.approx(2.0 / 0.2)


def test_a_level_has_a_floor_relative_to_its_centre_and_a_share_an_absolute_one():
    layout = FeatureLayout((FeatureId("gpu.sm_clock.mean"), FeatureId("cpu.cgroup_throttled_share.rate")))
    scope = select(layout, lambda feature: Trait(subsystem=Subsystem(feature.name.partition(".")[0]), log=False))
    reference = Reference(scope)
    for _ in range(60):
        reference.learn(np.array([1755.0, 0.0]))
    assert reference.expected(layout.ids[0]).sigma == pytest.approx(0.03 * 1755)
    assert reference.expected(layout.ids[1]).sigma == pytest.approx(0.05)


def test_an_absent_feature_is_zero_sigmas_off_and_has_no_expectation(lab, host):
    reference = Reference(lab.scope_of(host.layout))
    for _ in range(70):
        values = host.values()
        values[4] = np.nan
        reference.learn(values)
    values = host.values()
    assert reference.sigmas(values)[4] == 0.0
    assert reference.expected(host.layout.ids[4]) is None
    values[1] = np.nan
    assert reference.sigmas(values)[1] == 0.0


def test_a_feature_that_appears_later_is_expected_once_it_has_a_past(lab, host):
    reference = Reference(lab.scope_of(host.layout))
    for window in range(160):
        values = host.values()
        if window < 100:
            values[1] = np.nan
        reference.learn(values)
    assert reference.expected(host.layout.ids[1]) is not None


def test_infinities_are_absent_and_huge_values_do_no_harm(learned):
    reference, host = learned
    values = host.values()
    values[1], values[2] = np.inf, 1e300
    taken = reference.scope.take(values)
    assert np.isnan(taken[1])
    reference.learn(taken)
    assert np.isfinite(reference.sigmas(taken)).all()


def test_refused_windows_do_not_move_it_until_they_outlast_the_patience(lab, host):
    reference = Reference(lab.scope_of(host.layout), ReferenceSettings(patience=100))
    for _ in range(80):
        reference.learn(host.values())
    feature, before, regime = host.layout.ids[1], reference.centre[1], reference.regime
    for _ in range(99):
        reference.refuse(host.values() * 50)
    assert reference.centre[1] == before
    reference.refuse(host.values() * 50)
    assert reference.regime == regime + 1
    assert reference.centre[1] == pytest.approx(before + np.log(50), abs=0.5)
    assert reference.expected(feature) is not None


def test_an_episode_becomes_the_norm_more_slowly(lab, host):
    reference = Reference(lab.scope_of(host.layout), ReferenceSettings(patience=80, episode_weight=0.25))
    for _ in range(80):
        reference.learn(host.values())
    for _ in range(319):
        reference.refuse(host.values() * 50, episode=True)
    assert reference.regime == 1
    reference.refuse(host.values() * 50, episode=True)
    assert reference.regime == 2


def test_anomalies_that_come_and_go_never_become_the_norm(lab, host):
    reference = Reference(lab.scope_of(host.layout), ReferenceSettings(patience=30))
    for window in range(600):
        if window > 80 and window % 3 == 0:
            reference.refuse(host.values() * 50)
        else:
            reference.learn(host.values())
    assert reference.regime == 1


def test_a_slow_drift_is_followed(lab, host):
    reference = Reference(lab.scope_of(host.layout), ReferenceSettings(centre_over=100))
    for window in range(600):
        reference.learn(host.values() * (1 + window / 100))
    assert abs(reference.sigmas(host.values() * 7)[1::3]).mean() < 2.5


def test_another_layout_keeps_the_past_of_the_features_that_stay(lab, learned):
    reference, host = learned
    kept, new = host.layout.ids[1:20], FeatureId("network.rx_bytes.rate", Entity(EntityKind.NIC, "eth9"))
    before = {feature: reference.expected(feature) for feature in kept}
    reference.realign(lab.scope_of(FeatureLayout((new, *reversed(kept)))))
    assert {feature: reference.expected(feature) for feature in kept} == before
    assert reference.expected(new) is None
    assert reference.expected(host.layout.ids[25]) is None
    reference.learn(np.full(20, 5.0))


def test_a_feature_that_is_compared_otherwise_now_begins_without_past(learned):
    reference, host = learned
    reference.realign(select(host.layout, lambda _: Trait(subsystem=Subsystem.CPU, log=False)))
    assert np.isnan(reference.centre).all()


def test_its_state_is_plain_arrays_that_bring_back_the_same_reference(lab, learned):
    reference, host = learned
    reference.refuse(host.values() * 9)
    state = reference.state()
    assert all(array.dtype != object for array in state.values())
    again = Reference.from_state(state, lab.scope_of(host.layout))
    probe = host.values()
    for _ in range(30):
        values = host.values()
        reference.learn(values)
        again.learn(values)
    assert (again.sigmas(probe) == reference.sigmas(probe)).all()
    assert again.windows == reference.windows


def test_names_of_tenants_survive_the_state():
    hostile = FeatureId("cpu.x.rate", Entity(EntityKind.CGROUP, "/a\n\x00\u202e" + "b" * 500))
    scope = select(FeatureLayout((hostile,)), lambda _: Trait(subsystem=Subsystem.CPU, log=True))
    assert from_bytes(Reference(scope).state()["names"]) == (str(hostile),)


@pytest.mark.parametrize(
    "damage",
    [
        {"format": np.array(99)},
        {"names": np.zeros(3, np.uint8)},
        {"near": np.zeros((4, 2), np.float32)},
        {"counters": np.zeros(1)},
    ],
    ids=str,
)
def test_a_damaged_or_foreign_state_is_refused(lab, learned, damage):
    reference, host = learned
    with pytest.raises(BadInputError):
        Reference.from_state({**reference.state(), **damage}, lab.scope_of(host.layout))
    lacking = reference.state()
    del lacking["centre"]
    with pytest.raises(BadInputError):
        Reference.from_state(lacking, lab.scope_of(host.layout))


def test_a_warm_up_too_short_for_a_median_is_refused():
    with pytest.raises(BadInputError):
        ReferenceSettings(warm_up=5)
