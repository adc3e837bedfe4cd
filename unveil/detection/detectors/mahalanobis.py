"""Mahalanobis distance in PCA space: a combination of features that do not go together on this host.

Principal components of the standardised windows (30 at most), their covariance shrunk after Ledoit and Wolf (2004),
fitted three times with the farthest tenth trimmed in between; what the components leave over counts with its own
variance, so that features that stood still during training are not invisible (the components ignore them).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unveil.detection.detector import DetectorKind, Score, neutral

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.detection.detector import Arrays, Estimators

_COMPONENTS = 30
_WINDOWS_PER_COMPONENT = 4  # of 60 windows no 30 directions can be learned
_KEPT = 0.9  # of the windows at each trimming
_TRIMMED = 2
_LEAST_VARIANCE = 0.1  # sigma², of a component: below it lies only what the scale floor hides
_LEAST_REST = 1.0  # sigma², of what the components leave over
_PATTERNS = 8  # of absent features that are remembered
_BOUND = 8.0  # sigmas: a combination is judged here; one feature far off is the z-score's to tell


@dataclass(frozen=True, slots=True, eq=False)
class Mahalanobis:
    """Score: the distance d. Contributions: exact, they sum to d².

    With the covariance C the contributions are the squares of ``C^(-1/2) (z - mean)``: the partition of a quadratic
    form by Garthwaite and Koch (2016), which unlike ``z_j (C^-1 z)_j`` is never negative. Two features that are
    copies of each other halve what one of them would contribute. Each feature counts for at most 8 sigmas.

    Attributes:
        mean: shape (features,).
        axes: shape (features, components), orthonormal.
        variances: shape (components,).
        rest: variance of every direction outside the components.
        marginals: the same detector without absent features, by which are present; a host lacks the same features in
            one window after the other.
    """

    mean: NDArray[np.float64]
    axes: NDArray[np.float64]
    variances: NDArray[np.float64]
    rest: float
    marginals: dict[bytes, Mahalanobis] = field(default_factory=dict)

    def score(self, z: NDArray[np.float64]) -> Score:
        """Judge one window; see ``Detector``."""
        present = ~np.isnan(z)
        if not present.all():
            contributions = np.zeros(len(z))
            if present.any():
                contributions[present] = self._without_absent(present).score(z[present]).contributions
            return Score(score=float(np.sqrt(contributions.sum())), contributions=contributions)
        away = np.minimum(np.maximum(neutral(z - self.mean), -_BOUND), _BOUND)
        along = away @ self.axes
        left_over = away - self.axes @ along
        whitened = self.axes @ (along / np.sqrt(self.variances)) + left_over / np.sqrt(self.rest)
        contributions = np.square(whitened)
        return Score(score=float(np.sqrt(contributions.sum())), contributions=contributions)

    def _without_absent(self, present: NDArray[np.bool_]) -> Mahalanobis:
        """Return the marginal over the present features, which has the same form.

        To put an absent feature at its mean instead would break the combinations that it belongs to: neutral is what
        the others make of it.
        """
        key = present.tobytes()
        if key not in self.marginals:
            if len(self.marginals) >= _PATTERNS:
                self.marginals.clear()
            axes, mixing = np.linalg.qr(self.axes[present])
            excess = (mixing * (self.variances - self.rest)) @ mixing.T
            variances, vectors = np.linalg.eigh(excess + self.rest * np.eye(len(mixing)))
            self.marginals[key] = Mahalanobis(
                mean=self.mean[present],
                axes=axes @ vectors,
                variances=np.maximum(variances, min(_LEAST_VARIANCE, self.rest)),
                rest=self.rest,
            )
        return self.marginals[key]


def fit(z: NDArray[np.float64], estimators: Estimators | None, _seed: int = 0) -> dict[str, NDArray[np.generic]]:
    """Return mean, axes and variances of past windows, shape (windows, features)."""
    assert estimators is not None
    z = neutral(z)
    detector = _fit_once(z, estimators)
    for _ in range(_TRIMMED):
        distance = _distances(detector, z)
        detector = _fit_once(z[distance <= np.quantile(distance, _KEPT)], estimators)
    return {
        "mean": detector.mean,
        "axes": detector.axes,
        "variances": detector.variances,
        "rest": np.array(detector.rest),
    }


def _fit_once(z: NDArray[np.float64], estimators: Estimators) -> Mahalanobis:
    count, width = z.shape
    mean = z.mean(axis=0)
    away = z - mean
    axes, total = _principal_axes(away, min(_COMPONENTS, max(count // _WINDOWS_PER_COMPONENT, 1), width))
    along = away @ axes
    values, vectors = np.linalg.eigh(estimators.ledoit_wolf(along))
    outside = width - axes.shape[1]
    rest = (total - float(np.square(along).mean(axis=0).sum())) / outside if outside else 1.0
    return Mahalanobis(
        mean=mean,
        axes=axes @ vectors,
        variances=np.maximum(values, _LEAST_VARIANCE),
        rest=max(rest, _LEAST_REST),
    )


def _principal_axes(away: NDArray[np.float64], components: int) -> tuple[NDArray[np.float64], float]:
    """Return orthonormal axes of most variance, shape (features, components), and the whole variance."""
    count, width = away.shape
    if width <= count:
        _, vectors = np.linalg.eigh(away.T @ away / count)
        return vectors[:, -components:], float(np.square(away).sum() / count)
    values, vectors = np.linalg.eigh(away @ away.T / count)  # the same axes from the smaller side
    kept = values[-components:] > 1e-9
    axes, _ = np.linalg.qr(away.T @ vectors[:, -components:][:, kept])
    return (axes if kept.any() else np.eye(width, 1)), float(np.square(away).sum() / count)


def _distances(detector: Mahalanobis, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return squared distances of many windows, shape (windows,)."""
    away = np.clip(z - detector.mean, -_BOUND, _BOUND)
    along = away @ detector.axes
    left_over = np.square(away).sum(axis=1) - np.square(along).sum(axis=1)
    inside: NDArray[np.float64] = (np.square(along) / detector.variances).sum(axis=1)
    distances: NDArray[np.float64] = inside + np.maximum(left_over, 0.0) / detector.rest
    return distances


def restore(arrays: Arrays) -> Mahalanobis:
    """Return the detector."""
    return Mahalanobis(
        mean=np.asarray(arrays["mean"], dtype=np.float64),
        axes=np.asarray(arrays["axes"], dtype=np.float64),
        variances=np.asarray(arrays["variances"], dtype=np.float64),
        rest=float(arrays["rest"]),
    )


MAHALANOBIS = DetectorKind(
    name="mahalanobis",
    meaning="features that do not go together on this host",
    fit=fit,
    restore=restore,
    in_child=True,
)
