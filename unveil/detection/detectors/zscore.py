"""Z-score: how many sigmas the window's features are off.

The paper's rule is the mean of |z|, which drowns an inefficiency that moves a handful of counters among hundreds of
features. The largest |z| alone sees those, but also each rare counter's first event. The default lies between: the
mean of the three farthest features, none of them counted beyond 10 sigmas.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, assert_never

import numpy as np

from unveil.detection.detector import DetectorKind, Score, neutral
from unveil.detection.kinship import voices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.detection.detector import Arrays, Estimators


class Form(StrEnum):
    """How the features' |z| become one score."""

    FARTHEST = "farthest"  # mean of the three farthest, bounded
    LARGEST = "largest"
    MEAN = "mean"


_FARTHEST = 3
_BOUND = 10.0  # sigmas
_SAME = 9  # decimals to which sigmas of features that never moved are compared


@dataclass(frozen=True, slots=True, eq=False)
class ZScore:
    """Score: |z| combined by ``form``. Contributions: weighted z², of all features.

    Weights are the voices of ``kinship``, so that features which say the same do not outweigh one that stands alone.
    Features that never moved have no kin yet; those that stand at the very same sigma now share one voice.

    Attributes:
        weights: shape (features,), in (0, 1].
        still: shape (features,), which never moved.
    """

    weights: NDArray[np.float64]
    still: NDArray[np.bool_]
    form: Form = Form.FARTHEST

    def score(self, z: NDArray[np.float64]) -> Score:
        """Judge one window; see ``Detector``."""
        distance = np.abs(neutral(z))
        if not len(distance):
            return Score(score=0.0, contributions=distance)
        weights = self._weights(distance)
        score = self._combined(distance, weights)
        return Score(score=score, contributions=weights * np.square(distance))

    def _combined(self, distance: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
        match self.form:
            case Form.FARTHEST:
                count = min(_FARTHEST, len(distance))
                return float(np.minimum(np.partition(distance, -count)[-count:], _BOUND).mean())
            case Form.LARGEST:
                return float(distance.max())
            case Form.MEAN:
                return float((weights * distance).sum() / weights.sum())
            case _:
                assert_never(self.form)

    def _weights(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        moved = np.flatnonzero(self.still & (distance > 0))
        if len(moved) < 2:
            return self.weights
        said = distance[moved].round(_SAME).tolist()
        voices_of = Counter(said)
        weights = self.weights.copy()
        weights[moved] = [1.0 / voices_of[each] for each in said]
        return weights


def fit(z: NDArray[np.float64], _: Estimators | None = None, _seed: int = 0) -> dict[str, NDArray[np.generic]]:
    """Return the weights that past windows give, shape (windows, features)."""
    weights, still = voices(neutral(z))
    return {"weights": weights, "still": still}


def restore(arrays: Arrays, form: Form = Form.FARTHEST) -> ZScore:
    """Return the detector."""
    return ZScore(
        weights=np.asarray(arrays["weights"], dtype=np.float64), still=np.asarray(arrays["still"], np.bool_), form=form
    )


def zscore(form: Form) -> DetectorKind:
    """Return the detector's entry for the registry, in one of its forms."""
    return DetectorKind(
        name="zscore",
        meaning="features that are sigmas off",
        fit=fit,
        restore=partial(restore, form=form),
        in_child=False,
    )


ZSCORE = zscore(Form.FARTHEST)
