"""A whole host, window after window."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.attribution.attribute import attribute
from unveil.detection.catalogue import DETECTORS
from unveil.detection.ensemble import Ensemble, EnsembleSettings
from unveil.detection.reference import ReferenceSettings
from unveil.errors import BadInputError
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State


def fault(values):
    values[0] = 400.0  # cpu, never moved before
    values[1] *= 6  # gpu


def test_it_is_unknown_with_the_reason_while_it_warms_up(lab, host, ensemble):
    judgements = lab.run(ensemble, host, 60)
    assert {judgement.verdict.state for judgement in judgements} == {State.UNKNOWN}
    assert judgements[10].verdict.reason == "warming up: 10 of 60 windows"
    assert judgements[10].contributions == {}
    assert lab.run(ensemble, host, 1)[0].verdict.state is State.NORMAL


def test_what_needs_no_child_votes_until_the_others_are_trained(lab, host, ensemble):
    lab.run(ensemble, host, 99)
    (first,) = lab.run(ensemble, host, 1)
    assert [vote.detector for vote in first.verdict.votes] == ["zscore", "shift"]
    assert ensemble.wants_training
    assert ensemble.adopt(lab.fit(ensemble.training_set()))
    assert not ensemble.wants_training
    (second,) = lab.run(ensemble, host, 1)
    assert [vote.detector for vote in second.verdict.votes] == [kind.name for kind in DETECTORS]


def test_a_lasting_fault_is_anomalous_within_ten_windows_is_not_learned_and_ends(lab, host, ensemble):
    healthy = lab.run(ensemble, host, 300)
    assert sum(judgement.verdict.state is State.ANOMALOUS for judgement in healthy) <= 3
    expected = ensemble.reference.expected(host.layout.ids[1])
    sick = [judgement.verdict.state for judgement in lab.run(ensemble, host, 200, fault)]
    assert State.ANOMALOUS in sick[:10]
    assert set(sick[10:]) == {State.ANOMALOUS}
    assert ensemble.reference.expected(host.layout.ids[1]).centre == pytest.approx(expected.centre, rel=0.1)
    ensemble.reset()
    assert {judgement.verdict.state for judgement in lab.run(ensemble, host, 20)} == {State.NORMAL}


def test_a_single_glitch_is_not_anomalous(lab, host, ensemble):
    lab.run(ensemble, host, 200)

    def glitch(values):
        values[0] = 1e18

    lab.run(ensemble, host, 1, glitch)
    assert {judgement.verdict.state for judgement in lab.run(ensemble, host, 15)} == {State.NORMAL}


def test_a_change_of_workload_becomes_the_norm_in_the_end_and_asks_for_training(lab, host):
    settings = EnsembleSettings(reference=ReferenceSettings(patience=120))
    ensemble = Ensemble(lab.scope_of, settings)
    lab.run(ensemble, host, 100)
    ensemble.adopt(lab.fit(ensemble.training_set()))
    lab.run(ensemble, host, 150, fault)
    assert ensemble.reference.regime == 2
    assert ensemble.model is None
    assert ensemble.wants_training
    assert lab.run(ensemble, host, 20, fault)[-1].verdict.state is State.NORMAL


def test_a_model_of_a_norm_that_was_left_is_not_adopted(lab, host):
    ensemble = Ensemble(lab.scope_of, EnsembleSettings(reference=ReferenceSettings(patience=60)))
    lab.run(ensemble, host, 100)
    late = lab.fit(ensemble.training_set())
    lab.run(ensemble, host, 100, fault)
    assert not ensemble.adopt(late)


def test_windows_of_an_episode_are_not_learned(lab, host, ensemble):
    lab.run(ensemble, host, 100)
    windows = ensemble.reference.windows
    lab.run(ensemble, host, 50, episode=True)
    assert ensemble.reference.windows <= windows + 8


def test_the_norm_is_of_the_time_at_which_it_was_taken_up_and_outlives_the_process(lab, host):
    settings = EnsembleSettings(reference=ReferenceSettings(patience=60))
    ensemble = Ensemble(lab.scope_of, settings)
    assert ensemble.norm_since_s == -np.inf
    lab.run(ensemble, host, 100)
    assert ensemble.norm_since_s == 59.0, "the sixtieth window"
    another = Ensemble(lab.scope_of, settings)
    another.restore(ensemble.state())
    lab.run(another, host, 1)
    assert another.norm_since_s == 59.0
    lab.run(ensemble, host, 100, fault)
    assert ensemble.reference.regime == 2
    assert 150.0 < ensemble.norm_since_s < 200.0, "when patience was over"


def test_what_was_kept_without_the_time_of_its_norm_is_older_than_any_episode(lab, host, ensemble):
    lab.run(ensemble, host, 100)
    another = Ensemble(lab.scope_of)
    another.restore({name: array for name, array in ensemble.state().items() if name != "norm_since"})
    lab.run(another, host, 1)
    assert another.reference.ready
    assert another.norm_since_s == -np.inf


def test_judging_without_learning_changes_no_reference(lab, host, ensemble):
    lab.run(ensemble, host, 100)
    before = {name: array.copy() for name, array in ensemble.state().items()}
    for _ in range(20):
        ensemble.judge(host.vector())
    assert all(np.array_equal(array, before[name], equal_nan=True) for name, array in ensemble.state().items())


def test_no_feature_at_all_is_unknown_and_not_learned(host, ensemble):
    for window in range(70):
        vector = FeatureVector(window=window, wall_s=0.0, layout=host.layout, values=np.full(30, np.nan))
        verdict = ensemble.judge(vector).verdict
        ensemble.learn()
        assert verdict.state is State.UNKNOWN
        assert verdict.reason == "no feature is present"


def test_features_that_come_and_go_do_not_stop_it(lab, host, ensemble):
    lab.run(ensemble, host, 100)
    ensemble.adopt(lab.fit(ensemble.training_set()))
    ids = (FeatureId("network.new.rate"), *host.layout.ids[3:])
    layout = FeatureLayout(ids)
    for window in range(100, 160):
        values = np.append(1e4, host.values()[3:])
        judgement = ensemble.judge(FeatureVector(window=window, wall_s=0.0, layout=layout, values=values))
        ensemble.learn()
        assert judgement.verdict.state is State.NORMAL
        assert len(judgement.verdict.votes) == len(DETECTORS)
        assert sum(attribute(judgement).subsystems.values()) == pytest.approx(1, abs=1e-9)


def test_what_is_not_judged_has_a_reference_and_no_say(lab, host):
    from unveil.detection.detector_input import Trait, select

    def scope_of(layout):
        return select(
            layout, lambda feature: Trait(subsystem=Subsystem.CPU, log=True, judged=feature != host.layout.ids[1])
        )

    ensemble = Ensemble(scope_of)
    lab.run(ensemble, host, 80)

    def only_that(values):
        values[1] *= 1e6

    sick = lab.run(ensemble, host, 30, only_that)
    assert sick[-1].verdict.state is State.NORMAL
    assert sick[0].z[1] > 5
    assert sick[0].contributions["zscore"][1] == 0
    assert ensemble.reference.expected(host.layout.ids[1]) is not None


@pytest.mark.parametrize(
    ("rule", "state"),
    [("zscore|mahalanobis", State.NORMAL), ("mahalanobis", State.UNKNOWN), ("2of3", State.UNKNOWN)],
)
def test_a_rule_whose_detectors_are_not_trained_is_unknown(lab, host, rule, state):
    ensemble = Ensemble(lab.scope_of, EnsembleSettings(rule=rule))
    (*_, last) = lab.run(ensemble, host, 65)
    assert last.verdict.state is state
    assert last.verdict.rule == rule


def test_every_window_of_a_rule_that_waits_for_training_is_learned(lab, host):
    ensemble = Ensemble(lab.scope_of, EnsembleSettings(rule="mahalanobis"))
    lab.run(ensemble, host, 120)
    assert ensemble.reference.windows > 100


def test_it_continues_in_another_process_where_it_was(lab, host, ensemble):
    lab.run(ensemble, host, 100)
    ensemble.adopt(lab.fit(ensemble.training_set()))
    lab.run(ensemble, host, 30)
    again = Ensemble(lab.scope_of)
    again.restore(ensemble.state())
    again.adopt(ensemble.model)
    vector = host.vector()
    ours, theirs = again.judge(vector), ensemble.judge(vector)
    assert ours.verdict.state is State.NORMAL
    for mine, yours in zip(ours.verdict.votes, theirs.verdict.votes, strict=True):
        assert mine.p_value == pytest.approx(yours.p_value, abs=0.05)  # windows on probation are not saved
    assert ours.z == pytest.approx(theirs.z)


def test_a_state_that_cannot_be_read_means_learning_anew(lab, host):
    ensemble = Ensemble(lab.scope_of)
    ensemble.restore({"reference/format": np.array(77)})
    assert lab.run(ensemble, host, 1)[0].verdict.reason.startswith("warming up")


def test_a_model_whose_arrays_do_not_work_is_refused_and_nothing_changes(lab, host, ensemble):
    lab.run(ensemble, host, 100)
    model = lab.fit(ensemble.training_set())
    forest = dict(model.detectors["isolation_forest"])
    forest["left"] = forest["left"] + 10**6
    import dataclasses

    broken = dataclasses.replace(model, detectors={**model.detectors, "isolation_forest": forest})
    with pytest.raises(BadInputError):
        ensemble.adopt(broken)
    assert ensemble.model is None
    assert lab.run(ensemble, host, 1)[0].verdict.state is State.NORMAL


def test_an_unknown_rule_is_refused_at_once(lab):
    with pytest.raises(BadInputError):
        Ensemble(lab.scope_of, EnsembleSettings(rule="zscoer"))


def test_the_same_windows_give_the_same_verdicts(lab):
    def verdicts():
        ensemble = Ensemble(lab.scope_of)
        return [judgement.verdict for judgement in lab.run(ensemble, lab.Host(seed=4), 120)]

    assert verdicts() == verdicts()


def test_trainings_become_rarer_as_the_past_grows(lab, host, ensemble):
    at = []
    for window in range(500):
        lab.run(ensemble, host, 1)
        if ensemble.wants_training:
            at.append(window + 1)
            ensemble.training_set()
    assert at == [60, 120, 240, 480]
