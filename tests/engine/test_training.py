"""Training beside the watch: a real child, real files."""

from __future__ import annotations

import time

import numpy as np
import pytest

from unveil.detection.detector_input import Trait, select
from unveil.detection.ensemble import Ensemble
from unveil.engine import training as module
from unveil.engine.state_dir import StateDir
from unveil.engine.training import Training, train_now
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.subsystem import Subsystem

LAYOUT = FeatureLayout(tuple(FeatureId(f"cpu.m{index}.rate") for index in range(12)))


def new_ensemble() -> Ensemble:
    return Ensemble(lambda layout: select(layout, lambda _: Trait(subsystem=Subsystem.CPU, log=True)))


def watch(ensemble: Ensemble, windows: int):
    random = np.random.default_rng(0)
    verdict = None
    for window in range(windows):
        values = random.uniform(90, 110, size=12)
        verdict = ensemble.judge(FeatureVector(window=window, wall_s=0.0, layout=LAYOUT, values=values)).verdict
        ensemble.learn()
    return verdict


def wait(training: Training, now_s: float = 1.0) -> str | None:
    """Poll as the loop does until the child has ended; return what it said."""
    deadline = time.monotonic() + 60
    while True:
        said = training.poll(now_s)
        if said or training.trained or time.monotonic() > deadline:
            return said
        time.sleep(0.05)


@pytest.fixture
def state_dir(tmp_path):
    directory = StateDir(tmp_path / "state")
    directory.claim()
    yield directory
    directory.release()


def test_a_child_trains_and_the_next_watcher_continues_where_this_one_was(state_dir):
    ensemble = new_ensemble()
    training = Training(state_dir, ensemble)
    watch(ensemble, 70)
    begun = time.monotonic()
    training.poll(0.0)
    assert time.monotonic() - begun < 0.5  # it does not wait for the child
    assert training.describe(0.0) == "training"
    assert wait(training) is None
    assert [vote.detector for vote in watch(ensemble, 1).votes] == ["zscore", "mahalanobis", "isolation_forest"]
    training.close()
    assert [path.name for path in state_dir.path.iterdir() if path.name.startswith("train-")] == []

    again = new_ensemble()
    assert Training(state_dir, again).trained
    verdict = watch(again, 1)
    assert verdict.reason == ""
    assert len(verdict.votes) == 3


@pytest.mark.parametrize("name", ["model", "reference"])
def test_a_damaged_file_is_learned_anew(state_dir, name, caplog):
    ensemble = new_ensemble()
    training = Training(state_dir, ensemble)
    watch(ensemble, 70)
    wait(training)
    training.close()
    path = getattr(state_dir, name)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    again = new_ensemble()
    Training(state_dir, again)
    assert "damaged" in caplog.text
    assert watch(again, 1) is not None


def test_a_child_that_fails_is_told_and_not_tried_again_at_once(state_dir, monkeypatch):
    monkeypatch.setattr(module, "_command", lambda source, target, seed: ["/bin/sh", "-c", "echo no luck >&2; exit 3"])
    ensemble = new_ensemble()
    training = Training(state_dir, ensemble)
    watch(ensemble, 70)
    said = wait(training)
    assert said is not None
    assert "no luck" in said
    assert ensemble.model is None
    watch(ensemble, 80)
    assert training.poll(2.0) is None
    assert training.describe(2.0).endswith("not trained yet")
    training.close()


def test_a_child_that_hangs_is_ended_and_told(state_dir, monkeypatch):
    monkeypatch.setattr(module, "_command", lambda source, target, seed: ["/bin/sleep", "600"])
    ensemble = new_ensemble()
    training = Training(state_dir, ensemble)
    watch(ensemble, 70)
    training.poll(0.0)
    assert training.poll(module.DEADLINE_S / 2) is None
    said = wait(training, module.DEADLINE_S + 1)
    assert said is not None
    assert "-9" in said
    training.close()


def test_a_replay_waits_for_its_training():
    ensemble = new_ensemble()
    watch(ensemble, 70)
    assert ensemble.adopt(train_now(ensemble.training_set()))
