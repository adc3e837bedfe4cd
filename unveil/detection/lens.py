"""Lens: through what a fitted detector looks at a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unveil.detection.spread import within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.detection.detector import Detector


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Lens:
    """Where a detector's features stand in the scope, and how far is far; detectors of one model share one.

    Attributes:
        positions: of the features, in the scope.
        own: of the same, in the detector's features.
        scale: of the detector's features.
        slow: it looks at the trend instead of the window.
    """

    positions: NDArray[np.intp]
    own: NDArray[np.intp]
    scale: NDArray[np.float64]
    slow: bool = False

    def look(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sigmas of the detector's features, NaN where absent."""
        seen = np.empty(len(self.scale))
        seen.fill(np.nan)
        seen[self.own] = residual.take(self.positions)
        seen /= self.scale
        return within(seen)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Mounted:
    """A fitted detector, and its lens."""

    detector: Detector
    lens: Lens
