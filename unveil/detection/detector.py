"""What a detector is: standardised features in, one score out, and who contributed how much. High is strange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[np.generic]]

_LARGEST = 1e30


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Score:
    """A detector's answer about one window.

    Attributes:
        score: higher is stranger; never NaN or infinite.
        contributions: shape (features,), finite and never negative: what each feature had to do with it. What they
            sum to is the detector's own affair and in its docstring; shares come from attribution.
    """

    score: float
    contributions: NDArray[np.float64]


class Detector(Protocol):
    """A fitted detector. It holds plain arrays only and needs numpy only."""

    def score(self, z: NDArray[np.float64]) -> Score:
        """Judge one window.

        Args:
            z: shape (features,), signed sigmas from the reference; NaN where absent, which is neutral.
        """


class Estimators(Protocol):
    """What scikit-learn gives to fitting. Handed in, so that no detector imports it."""

    def isolation_forest(self, z: NDArray[np.float64], *, seed: int) -> Any:
        """Return a fitted ``IsolationForest``."""

    def ledoit_wolf(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the shrunk covariance of centred rows, shape (columns, columns)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorKind:
    """An entry of the registry.

    Attributes:
        name: as it stands in rules and verdicts.
        meaning: one line for a person.
        fit: standardised windows (windows, features), estimators and a seed → the arrays that ``restore`` takes.
        restore: those arrays → the detector.
        in_child: fitting needs scikit-learn and is done in the training child; otherwise the watcher fits it itself,
            with ``estimators`` None.
        slow: it judges the trend of the features that do not tell the load, instead of all features of the window.
    """

    name: str
    meaning: str
    fit: Callable[[NDArray[np.float64], Estimators | None, int], dict[str, NDArray[np.generic]]]
    restore: Callable[[Arrays], Detector]
    in_child: bool
    slow: bool = False


def neutral(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return z with absent features at 0, which contributes nothing, and within what can be squared."""
    bounded: NDArray[np.float64] = np.minimum(np.maximum(z, -_LARGEST), _LARGEST)
    bounded[np.isnan(bounded)] = 0.0
    return bounded
