"""Training beside the watch: a child fits, a whole model is adopted, and what is damaged is learned anew."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from unveil.detection.catalogue import DETECTORS
from unveil.detection.ensemble import EnsembleSettings
from unveil.detection.rule import DEFAULT_RULE, parse_rule
from unveil.engine import training as training_module
from unveil.engine.pipeline import Pipeline
from unveil.engine.state_dir import StateDir
from unveil.engine.training import DEADLINE_S, Training, asks_trained, train_now
from unveil.errors import UnveilError
from unveil.records.fact import FactTable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    made = StateDir(tmp_path / "state")
    made.path.mkdir()
    return made


def warm(seconds: list[Any], count: int, *, rule: str = "zscore|mahalanobis") -> Pipeline:
    """Return a pipeline that has seen so many seconds."""
    numbers = itertools.count()
    pipeline = Pipeline(
        watch=1, fingerprints=(), generation=1, new_id=lambda: f"e{next(numbers):012x}",
        settings=EnsembleSettings(rule=rule),
    )  # fmt: skip
    for number, blocks in enumerate(seconds[:count]):
        pipeline.push(blocks, wall_s=float(number), facts=FactTable())
    return pipeline


def follow(training: Training, now_s: float) -> str | None:
    """Poll until the child has ended."""
    deadline = time.monotonic() + 60
    while training._child is not None and time.monotonic() < deadline:
        said = training.poll(now_s)
        if said is not None or training._child is None:
            return said
        time.sleep(0.05)
    return None


def test_before_it_is_warm_nothing_is_trained_and_it_says_so(state: StateDir, seconds: list[Any]) -> None:
    training = Training(state, warm(seconds, 10).ensemble)
    assert training.poll(1.0) is None
    assert training.describe(1.0) == "learning what is normal here"
    assert not training.trained
    training.close()


def test_what_the_rule_does_not_ask_is_not_trained(
    state: StateDir, seconds: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_module, "_command", lambda *_: ["/bin/sleep", "1000"])
    pipeline = warm(seconds, 70, rule=DEFAULT_RULE)
    training = Training(state, pipeline.ensemble)
    assert training.poll(100.0) is None
    assert training._child is None
    assert training.describe(100.0).endswith("windows; the rule asks no detector that needs a training")
    training.close()
    assert [each.name for each in state.path.iterdir()] == ["reference.npz"], "the past is kept, trained or not"

    asked = Training(state, pipeline.ensemble, always=True)
    asked.poll(200.0)
    assert asked._child is not None, "unless a person wants it to vote beside"
    asked.close()


def test_a_model_that_the_rule_does_not_ask_is_left_on_the_disk(state: StateDir, seconds: list[Any]) -> None:
    state.model.write_bytes(b"of another rule")
    Training(state, warm(seconds, 0, rule=DEFAULT_RULE).ensemble).close()
    assert state.model.read_bytes() == b"of another rule"


def test_a_rule_that_counts_detectors_asks_those_it_counts() -> None:
    known = tuple(kind.name for kind in DETECTORS)
    asked = {
        text: asks_trained(parse_rule(text, known)) for text in ("shift", "shift|zscore", "2of3", "shift|mahalanobis")
    }
    assert asked == {"shift": False, "shift|zscore": False, "2of3": True, "shift|mahalanobis": True}


@pytest.mark.slow
def test_a_child_fits_and_the_next_watcher_takes_up_what_was_learned(state: StateDir, seconds: list[Any]) -> None:
    pipeline = warm(seconds, 80)
    training = Training(state, pipeline.ensemble)
    assert training.poll(100.0) is None
    assert training.describe(100.0) == "training"
    assert follow(training, 101.0) is None
    assert training.trained
    assert training.describe(161.0).endswith("windows, 1 min ago")
    training.close()
    assert sorted(each.name for each in state.path.iterdir()) == ["model.npz", "reference.npz"]

    again = warm(seconds, 0)
    taken_up = Training(state, again.ensemble)
    assert taken_up.trained
    (outcome, *_) = [each for blocks in seconds[80:86] for each in again.push(blocks, wall_s=90.0, facts=FactTable())]
    assert outcome.judgement.reference.ready, "nothing is learned anew"
    taken_up.close()


@pytest.mark.parametrize("damage", ["truncated", "foreign", "flipped", "another format"])
def test_damaged_files_are_refused_said_and_learned_anew(
    state: StateDir, seconds: list[Any], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    training = Training(state, warm(seconds, 70).ensemble)
    training.save(1.0)
    whole = state.reference.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    content = {
        "truncated": whole[:-10], "foreign": b"notes", "flipped": bytes(flipped),
        "another format": whole.replace(b"arrays 1", b"arrays 9", 1),
    }[damage]  # fmt: skip
    for path in (state.reference, state.model):
        path.write_bytes(content)
    anew = warm(seconds, 0)
    again = Training(state, anew.ensemble)
    assert [record.message.endswith("learned anew") for record in caplog.records] == [True, True]
    assert not again.trained
    outcomes = [each for blocks in seconds[:5] for each in anew.push(blocks, wall_s=1.0, facts=FactTable())]
    assert "warming up" in outcomes[-1].summary.verdict.reason
    again.close()


def test_a_reference_of_other_features_is_not_half_believed(state: StateDir, seconds: list[Any]) -> None:
    training = Training(state, warm(seconds, 70).ensemble)
    training.save(1.0)
    training.close()
    from unveil.benchmarks.features import made_up_layouts, made_up_second

    layouts = made_up_layouts(2, 1, 0, 0)
    pipeline = warm(seconds, 0)
    Training(state, pipeline.ensemble)
    for number in range(6):
        pipeline.push(made_up_second(layouts, number), wall_s=1.0, facts=FactTable())
    assert pipeline.latest is not None
    assert pipeline.latest.judgement.reference.scope.layout is pipeline.latest.vector.layout


def test_a_child_that_fails_is_told_of_and_not_started_again_at_once(
    state: StateDir, seconds: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(state, warm(seconds, 70).ensemble)
    monkeypatch.setattr(training_module, "_command", lambda *_: ["/bin/sh", "-c", "echo no memory >&2; exit 3"])
    training.poll(100.0)
    said = follow(training, 101.0)
    assert said == "training ended with 3: no memory; the models in use stay"
    assert list(state.path.glob("train-*")) == []
    training.poll(102.0)
    assert training._child is None
    training.close()


def test_a_child_that_takes_for_ever_is_ended(
    state: StateDir, seconds: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(state, warm(seconds, 70).ensemble)
    monkeypatch.setattr(training_module, "_command", lambda *_: ["/bin/sleep", "1000"])
    training.poll(100.0)
    assert training.poll(100.0 + DEADLINE_S) is None
    training.poll(101.0 + DEADLINE_S)
    assert "training ended with -9" in (follow(training, 102.0 + DEADLINE_S) or "")
    training.close()


def test_a_model_that_does_not_work_is_refused(
    state: StateDir, seconds: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(state, warm(seconds, 70).ensemble)
    monkeypatch.setattr(training_module, "_command", lambda _s, target, _n: ["/bin/sh", "-c", f"echo x > {target}"])
    training.poll(100.0)
    assert "a trained model was refused" in (follow(training, 101.0) or "")
    assert not training.trained
    training.close()


def test_a_disk_that_takes_nothing_is_said_and_ends_nothing(state: StateDir, seconds: list[Any]) -> None:
    training = Training(state, warm(seconds, 70).ensemble)
    state.path.rmdir()
    assert "cannot be kept" in (training.poll(100.0) or "")
    assert training.poll(101.0) is None or "cannot be kept" in (training.poll(101.0) or "")
    training.close()


def test_what_a_killed_watcher_left_of_its_training_is_removed(state: StateDir, seconds: list[Any]) -> None:
    left = state.path / "train-abc"
    left.mkdir()
    (left / "set").write_bytes(b"x")
    Training(state, warm(seconds, 0).ensemble).close()
    assert not left.exists()


def test_closing_ends_the_child(state: StateDir, seconds: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(state, warm(seconds, 70).ensemble)
    monkeypatch.setattr(training_module, "_command", lambda *_: ["/bin/sleep", "1000"])
    training.poll(100.0)
    assert training._child is not None
    pid = training._child.pid
    training.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert sorted(each.name for each in state.path.iterdir()) == ["reference.npz"]


def test_the_child_does_not_take_code_from_where_the_watcher_was_started(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('taken from here')")
    command = training_module._command(tmp_path / "no", tmp_path / "model", 0)
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "no training set" in ended.stderr


def test_training_now_says_the_childs_own_words(seconds: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_module, "_command", lambda *_: ["/bin/sh", "-c", "echo no memory >&2; exit 3"])
    with pytest.raises(UnveilError, match="training failed: no memory"):
        train_now(warm(seconds, 70).ensemble.training_set())
