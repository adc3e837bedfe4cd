"""A training set and a model survive the way through plain arrays; what is none is refused."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.detection.model import TrainedModel, TrainingSet, trained_model, training_set
from unveil.errors import BadInputError

SET = TrainingSet(
    names=("cpu.a.rate", "gpu.b.mean[gpu:GPU-ä]"),
    residuals=np.array([[0.5, np.nan], [1.0, -1.0]], dtype=np.float32),
    floor=np.array([0.2, 0.05]),
    regime=3,
)
MODEL = TrainedModel(
    names=SET.names,
    scale=np.array([1.0, np.nan]),
    detectors={"mahalanobis": {"mean": np.zeros(2), "axes": np.eye(2)}},
    held_out={"mahalanobis": np.array([1.0, 2.0])},
    windows=120,
    regime=3,
)


def test_a_training_set_comes_back_equal() -> None:
    back = training_set(SET.arrays())
    assert back.names == SET.names
    assert back.regime == 3
    np.testing.assert_array_equal(back.residuals, SET.residuals)
    np.testing.assert_array_equal(back.floor, SET.floor)


def test_a_model_comes_back_equal_with_its_digest() -> None:
    back = trained_model(MODEL.arrays())
    assert (back.names, back.windows, back.regime, back.digest) == (MODEL.names, 120, 3, MODEL.digest)
    np.testing.assert_array_equal(back.scale, MODEL.scale)
    np.testing.assert_array_equal(back.detectors["mahalanobis"]["axes"], np.eye(2))
    np.testing.assert_array_equal(back.held_out["mahalanobis"], [1.0, 2.0])


@pytest.mark.parametrize("missing", ["format", "names", "scale", "windows"])
def test_a_model_without_a_part_is_refused(missing: str) -> None:
    arrays = MODEL.arrays()
    del arrays[missing]
    with pytest.raises(BadInputError, match="no trained model"):
        trained_model(arrays)


def test_another_format_is_refused_by_its_number() -> None:
    with pytest.raises(BadInputError, match="format 99"):
        trained_model({**MODEL.arrays(), "format": np.array(99)})
    with pytest.raises(BadInputError, match="format 99"):
        training_set({**SET.arrays(), "format": np.array(99)})
