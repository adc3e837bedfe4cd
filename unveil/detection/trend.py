"""Trend: where features have been lately, so that what stays is told from what happens once.

An exponentially weighted mean of each feature's distance from its centre (Roberts, "Control Chart Tests Based on
Geometric Moving Averages", Technometrics 1959). A single burst moves it little; a small change that stays moves it all
the way. Back towards the centre it goes twice as fast: what is over shall be over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

AWAY, BACK = 0.12, 0.25  # weights of the newest window
_BOUND = 10.0  # sigmas that one window may be away: a glitch of 1e18 would take an hour to be forgotten


class Trend:
    """The trend of all features of one host; it begins at the centre."""

    def __init__(self, width: int) -> None:
        self._state = np.zeros(width)

    def follow(self, residual: NDArray[np.floating], scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take a window and return the trend with it, NaN where the window has no value.

        Args:
            residual: shape (features,), distances from the centre, NaN where absent; a trend waits where it is.
            scale: shape (features,), sigmas, NaN where there are none.
        """
        bound = _BOUND * scale
        bounded = np.minimum(np.maximum(residual, -bound), bound)
        step = bounded - self._state
        step *= np.where(np.abs(bounded) < np.abs(self._state), BACK, AWAY)
        absent = np.isnan(step)
        step[absent] = 0.0
        self._state = self._state + step
        trend = self._state.copy()
        trend[absent] = np.nan
        return trend

    def calm(self) -> None:
        """Begin at the centre again."""
        self._state = np.zeros(len(self._state))

    def realigned(self, source: NDArray[np.intp]) -> Trend:
        """Return the trend of another layout: column i was this one's ``source[i]``; at the centre where that is -1."""
        trend = Trend(len(source))
        if len(self._state):
            trend._state = np.where(source < 0, 0.0, self._state[np.maximum(source, 0)])
        return trend


def trends(residuals: NDArray[np.floating], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the trend after each of some windows in a row, shape (windows, features)."""
    trend = Trend(residuals.shape[1])
    followed = [trend.follow(row, scale) for row in residuals]
    return np.array(followed).reshape(residuals.shape)
