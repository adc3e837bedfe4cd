"""PCA: Hotelling's T² in the space of the principal components, and what they leave over (SPE), in one index.

The two charts of multivariate process control (Jackson and Mudholkar, "Control Procedures for Residuals Associated With
Principal Component Analysis", Technometrics 1979). T² tells that what usually moves together moves farther than usual,
SPE that what usually goes together does not. Each is measured by what a hundredth of past windows exceeded, and both
are added (Yue and Qin, "Reconstruction-Based Fault Identification Using a Combined Index", Ind. Eng. Chem. Res. 2001).
Features are weighted by the root of their voice (see ``kinship``) first, so that a copy of one changes nothing.
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

_COMPONENTS = 30
_WINDOWS_PER_COMPONENT = 4
_EXPLAINED = 0.9  # of the variance
_LEAST_VARIANCE = 0.1  # sigma²: below lies only what the scale floor hides
_EXCEEDED = 0.99  # quantile of past windows that makes a statistic one
_BOUND = 8.0  # sigmas


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Pca:
    """Score: the root of the combined index. Contributions: each feature's part in that; they sum to its square.

    Attributes:
        mean, weight: shape (features,).
        axes: shape (features, components), orthonormal.
        variances: shape (components,).
        inside, outside: the T² and the SPE that a hundredth of past windows exceeded.
    """

    mean: NDArray[np.float64]
    weight: NDArray[np.float64]
    axes: NDArray[np.float64]
    variances: NDArray[np.float64]
    inside: float
    outside: float

    def score(self, z: NDArray[np.float64]) -> Score:
        """Judge one window; see ``Detector``."""
        away = self.weight * np.minimum(
            np.maximum(neutral(z - self.mean), -_BOUND), _BOUND
        )  # an absent feature stands at its mean
        along = away @ self.axes
        left_over = np.square(away - self.axes @ along) / self.outside
        parts = left_over + np.square(self.axes @ (along / np.sqrt(self.variances))) / self.inside
        return Score(score=float(np.sqrt(parts.sum())), contributions=parts)


def fit(z: NDArray[np.float64], _: Estimators | None, _seed: int = 0) -> dict[str, NDArray[np.generic]]:
    """Return mean, axes, variances and what is usual of both statistics, from past windows (windows, features)."""
    z = neutral(z)
    count, width = z.shape
    mean = z.mean(axis=0)
    voice, _still = voices(z)
    weight = np.sqrt(voice)
    away = weight * np.clip(z - mean, -_BOUND, _BOUND)
    _left, singular, right = np.linalg.svd(away, full_matrices=False)
    variances = np.square(singular) / count
    explained = np.cumsum(variances) / max(float(variances.sum()), 1e-12)
    wanted = int(np.searchsorted(explained, _EXPLAINED)) + 1
    kept = max(min(wanted, _COMPONENTS, count // _WINDOWS_PER_COMPONENT, width), 1)
    axes = np.ascontiguousarray(right[:kept].T)
    variances = np.maximum(variances[:kept], _LEAST_VARIANCE)
    along = away @ axes
    hotelling = (np.square(along) / variances).sum(axis=1)
    spe = np.square(away - along @ axes.T).sum(axis=1)
    return {
        "mean": mean,
        "weight": weight,
        "axes": axes,
        "variances": variances,
        "inside": np.array(max(float(np.quantile(hotelling, _EXCEEDED)), 1.0)),
        "outside": np.array(max(float(np.quantile(spe, _EXCEEDED)), 1.0)),
    }


def restore(arrays: Arrays) -> Pca:
    """Return the detector."""
    return Pca(
        mean=np.asarray(arrays["mean"], dtype=np.float64),
        weight=np.asarray(arrays["weight"], dtype=np.float64),
        axes=np.asarray(arrays["axes"], dtype=np.float64),
        variances=np.asarray(arrays["variances"], dtype=np.float64),
        inside=float(arrays["inside"]),
        outside=float(arrays["outside"]),
    )


PCA = DetectorKind(
    name="pca",
    meaning="what moves together farther than usual, or apart (T² and SPE)",
    fit=fit,
    restore=restore,
    in_child=True,
)
