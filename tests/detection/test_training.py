"""Fitting, and what is held out from it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from unveil.detection.catalogue import DETECTORS
from unveil.detection.detectors.shift import SHIFT
from unveil.detection.detectors.zscore import ZSCORE
from unveil.detection.model import TrainingSet, trained_model, training_set
from unveil.detection.training import fit, held_out
from unveil.errors import BadInputError

pytestmark = pytest.mark.xdist_group("training")  # fitted once, by one worker


def made(windows: int = 120, width: int = 12, seed: int = 0) -> TrainingSet:
    residuals = np.random.default_rng(seed).normal(size=(windows, width)).astype(np.float32)
    residuals[:, 0] = 0.0
    residuals[:, 1] = np.nan
    return TrainingSet(
        names=tuple(f"cpu.m{index}.rate" for index in range(width)),
        residuals=residuals,
        floor=np.full(width, 0.2),
        regime=1,
    )


@pytest.fixture(scope="module")
def model():
    return fit(made(), seed=0)


def test_each_detector_that_needs_training_is_fitted_and_calibrated(model):
    wanted = {kind.name for kind in DETECTORS if kind.in_child}
    assert set(model.detectors) == set(model.held_out) == wanted
    assert all(len(scores) == 120 and np.isfinite(scores).all() for scores in model.held_out.values())


def test_the_same_set_and_seed_give_the_same_model(model):
    again = fit(made(), seed=0).arrays()
    assert all(
        np.array_equal(array, again[name], equal_nan=array.dtype.kind == "f") for name, array in model.arrays().items()
    )


def test_a_model_survives_the_way_through_plain_arrays(model):
    again = trained_model(model.arrays())
    assert again.names == model.names
    assert again.windows == 120
    for kind in DETECTORS:
        if kind.in_child:
            window = np.linspace(-3, 3, 12)
            ours, theirs = (kind.restore(each.detectors[kind.name]).score(window).score for each in (again, model))
            assert ours == theirs


def test_a_training_set_survives_the_way_through_plain_arrays():
    original = made()
    again = training_set(original.arrays())
    assert again.names == original.names
    assert np.array_equal(again.residuals, original.residuals, equal_nan=True)


@pytest.mark.parametrize(
    "damage", [{"format": np.array(0)}, {"names": np.zeros(2, np.uint8)}, {"windows": np.array("x")}]
)
def test_arrays_that_are_no_model_are_refused(model, damage):
    with pytest.raises(BadInputError):
        trained_model({**model.arrays(), **damage})
    with pytest.raises(BadInputError):
        training_set(
            {
                **made().arrays(),
                **{key: value for key, value in damage.items() if key != "windows"},
                "regime": np.array("x"),
            }
        )


def test_held_out_scores_are_those_of_windows_not_seen():
    training = made(100, 4)
    training.residuals[60:80, 2] = 8.0  # one stretch of time is unlike all others
    unseen = held_out(training.residuals, training.floor, kinds=(ZSCORE,), estimators=None)["zscore"]
    assert unseen[60:80].min() > unseen[:60].max()


def test_importing_detection_does_not_import_scikit_learn():
    code = "import sys; import unveil.detection.ensemble; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_what_would_not_have_been_shown_is_not_scored() -> None:
    past = np.zeros((60, 3), dtype=np.float32)
    past[30:33, 1] = 50.0
    excused = np.zeros(past.shape, dtype=np.bool_)
    floor = np.full(3, 0.1)
    assert held_out(past, floor, kinds=(SHIFT,), estimators=None)["shift"].max() > 0
    excused[30:33, 1] = True
    assert held_out(past, floor, kinds=(SHIFT,), estimators=None, excused=excused)["shift"].max() == 0
