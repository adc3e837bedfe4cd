"""Shift: a change that stays and leads to where this host has not been.

A control chart without a model of how features spread: the trend of each feature is held against the range that its
trend has had in ordinary time. What happens now and then (a checkpoint, a burst of a neighbour) is in that range and
does not alarm, however far out it is; what has never been so, and stays, does, even where no single window is strange.
It looks only at features that do not tell the load, see ``features.load``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unveil.detection.detector import DetectorKind, Score, neutral
from unveil.detection.kinship import voices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.detection.detector import Arrays, Estimators

_FARTHEST = 3
_BOUND = 10.0  # sigmas outside its range that a feature may count
_IDLE = 0.6  # sigmas outside that mean nothing: two sigmas of one feature, or a little of three
_YOUNG = 10.0  # a range seen in so many windows is believed only twice as wide
_GLITCHES = 500  # one in so many windows may have been one: the range leaves it out


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Shift:
    """Score: mean distance outside of the range over the three farthest features, above a dead band.

    Contributions: squared distances outside, weighted by the voices of ``kinship``; none while all are inside.

    Attributes:
        low, high: shape (features,), the range in sigmas.
        weights: shape (features,), in (0, 1].
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    weights: NDArray[np.float64]

    def score(self, z: NDArray[np.float64]) -> Score:
        """Judge one window's trend; see ``Detector``."""
        outside = np.maximum(self.low - z, z - self.high)
        outside[np.isnan(outside)] = 0.0
        outside = np.minimum(np.maximum(outside, 0.0), _BOUND)
        if not len(outside):
            return Score(score=0.0, contributions=outside)
        count = min(_FARTHEST, len(outside))
        farthest = float(np.partition(outside, -count)[-count:].sum()) / _FARTHEST
        return Score(score=max(farthest - _IDLE, 0.0), contributions=self.weights * np.square(outside))


def fit(z: NDArray[np.float64], _: Estimators | None = None, _seed: int = 0) -> dict[str, NDArray[np.generic]]:
    """Return the ranges of past trends, shape (windows, features)."""
    count = len(z)
    if not count:
        edge = np.zeros(z.shape[1])
        return {"low": edge, "high": edge, "weights": np.ones(z.shape[1])}
    left_out = count // _GLITCHES
    ordered = np.sort(np.where(np.isnan(z), 0.0, neutral(z)), axis=0)
    low, high = ordered[left_out], ordered[count - 1 - left_out]
    wider = (high - low) * _YOUNG / count
    weights, _still = voices(neutral(z))
    return {"low": low - wider, "high": high + wider, "weights": weights}


def restore(arrays: Arrays) -> Shift:
    """Return the detector."""
    return Shift(
        low=np.asarray(arrays["low"], dtype=np.float64),
        high=np.asarray(arrays["high"], dtype=np.float64),
        weights=np.asarray(arrays["weights"], dtype=np.float64),
    )


SHIFT = DetectorKind(
    name="shift",
    meaning="a change that stays and leads to where this host has not been",
    fit=fit,
    restore=restore,
    in_child=False,
    slow=True,
)
