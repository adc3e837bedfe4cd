"""What stays is told from what happens once, and what is more work from what is worse work."""

from __future__ import annotations

import numpy as np

from unveil.detection.detector_input import Trait, select
from unveil.detection.detectors.shift import SHIFT
from unveil.detection.ensemble import Ensemble, EnsembleSettings
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State


def states(judgements):
    return [judgement.verdict.state for judgement in judgements]


def watched(lab, *, load=()):
    host = lab.Host()

    def trait(feature):
        return Trait(subsystem=Subsystem.CPU, log=True, load=feature in {host.layout.ids[at] for at in load})

    ensemble = Ensemble(lambda layout: select(layout, trait), EnsembleSettings(rule="shift"))
    lab.run(ensemble, host, 400)
    return ensemble, host


def test_a_change_that_stays_is_found_and_is_over_soon(lab):
    ensemble, host = watched(lab)

    def never_seen(values):
        values[[0, 3]] = 30.0

    sick = states(lab.run(ensemble, host, 60, never_seen))
    assert State.ANOMALOUS in sick[:12]
    assert set(sick[12:]) == {State.ANOMALOUS}
    assert set(states(lab.run(ensemble, host, 40))[15:]) == {State.NORMAL}


def test_a_burst_does_not_alarm(lab):
    ensemble, host = watched(lab)

    def burst(values):
        values[[0, 3]] = 30.0

    lab.run(ensemble, host, 1, burst)
    assert set(states(lab.run(ensemble, host, 20))) == {State.NORMAL}


def test_more_work_is_no_anomaly_to_it(lab):
    ensemble, host = watched(lab, load=(1, 2))

    def busier(values):
        values[1:3] *= 50.0

    sick = lab.run(ensemble, host, 40, busier)
    assert set(states(sick)) == {State.NORMAL}
    assert sick[-1].z[1] > 3  # others see it


def test_inside_its_range_nothing_contributes():
    past = np.random.default_rng(0).normal(size=(300, 6))
    detector = SHIFT.restore(SHIFT.fit(past, None, 0))
    inside = detector.score(past[7])
    assert inside.score == 0.0
    assert not inside.contributions.any()
    outside = past[7].copy()
    outside[3] = -9.0
    answer = detector.score(outside)
    assert answer.score > 0
    assert np.flatnonzero(answer.contributions).tolist() == [3]
