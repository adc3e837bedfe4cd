"""Trend: where features have been lately, so that what stays is told from what happens once.

An exponentially weighted mean of each feature's distance from its centre (Roberts, "Control Chart Tests Based on
Geometric Moving Averages", Technometrics 1959). A single burst moves it little; a small change that stays moves it all
the way. Back towards the centre it goes twice as fast, and what is over shall be over:

- A trend is never more than twice as far as the farthest of the newest windows. From ten sigmas a mean alone would
  need as many windows to be back.
- Some counters are read so seldom that windows on end have the same value. The first reading after a change still has
  a part of it, and stands for up to ten windows. So a reading that has fallen a long way counts as long as a window
  that it lies in, and not until the next one says more; one that has fallen to its usual place counts no more at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

AWAY, BACK = 0.12, 0.25  # weights of the newest window
_BOUND = 10.0  # sigmas that one window may be away: a glitch of 1e18 would take an hour to be forgotten
_NEWEST = 6  # windows in a row in which what is bursty shows at least once: fewer made alarms flap
_TIMES = 2.0  # as far as the farthest of those a trend may be: work that is a little slower is so by fits and starts
_SELDOM = 2  # times in a row that a value is told again where it is one that is read seldom
_FALL = float(np.log(2.5))  # log1p units: to two fifths; half of it loses a weak fault whose counters vary that much
_BELIEVED, _READ_AGAIN = 3, 10  # windows: as long as one lasts; after which a value stands still and is not read seldom


class Trend:
    """The trend of all features of one host; it begins at the centre."""

    def __init__(self, log: NDArray[np.bool_]) -> None:
        """Begin.

        Args:
            log: shape (features,), which are compared on the scale of log1p.
        """
        width = len(log)
        self._log = log
        self._state = np.zeros(width)
        self._newest = np.zeros((_NEWEST, width))
        self._turn = 0
        self._told = np.zeros(width)  # the newest window's distances, however far
        self._again = np.zeros(width, dtype=np.int64)  # windows in a row that told the same once more
        self._fallen = np.zeros(width, dtype=np.bool_)

    def follow(self, residual: NDArray[np.floating], scale: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take a window and return the trend with it, NaN where the window has no value.

        Args:
            residual: shape (features,), distances from the centre, NaN where absent; a trend waits where it is.
            scale: shape (features,), sigmas, NaN where there are none.
        """
        bound = _BOUND * scale
        absent = np.isnan(residual) | np.isnan(bound)
        told = np.where(absent, self._told, residual)
        past = self._past(told, scale)
        now = np.minimum(np.maximum(told, -bound), bound)
        np.copyto(now, self._newest[self._turn], where=absent)
        self._turn = (self._turn + 1) % _NEWEST
        self._newest[self._turn] = now
        step = now - self._state
        step *= np.where(np.abs(now) < np.abs(self._state), BACK, AWAY)
        step[absent] = 0.0
        low = _TIMES * np.minimum.reduce(self._newest, initial=0.0)
        high = _TIMES * np.maximum.reduce(self._newest, initial=0.0)
        self._state = np.minimum(np.maximum(self._state + step, low), high)
        trend = self._state.copy()
        trend[past] = 0.0
        trend[absent] = np.nan
        return trend

    def calm(self) -> None:
        """Begin at the centre again."""
        for each in self._remembered():
            each[...] = 0

    def realigned(self, source: NDArray[np.intp], log: NDArray[np.bool_]) -> Trend:
        """Return the trend of another layout: column i was this one's ``source[i]``; at the centre where that is -1."""
        trend = Trend(log)
        trend._turn = self._turn
        stays = np.flatnonzero(source >= 0)
        for mine, its in zip(self._remembered(), trend._remembered(), strict=True):
            its[..., stays] = mine[..., source[stays]]
        return trend

    def _remembered(self) -> tuple[NDArray[np.generic], ...]:
        return self._state, self._newest, self._told, self._again, self._fallen

    def _past(self, told: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which features show a reading of a change that may be over."""
        same, size = told == self._told, np.abs(told)
        fell = (np.abs(self._told) - size > _FALL) & self._log & (self._again >= _SELDOM)
        self._fallen = (self._fallen & same) | fell  # what fell is another value
        self._again = (self._again + 1) * same
        self._told = told
        over = (self._again >= _BELIEVED) | (size <= scale)
        return self._fallen & over & (self._again < _READ_AGAIN)


def trends(residuals: NDArray[np.floating], scale: NDArray[np.float64], log: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the trend after each of some windows in a row, shape (windows, features)."""
    trend = Trend(log)
    followed = [trend.follow(row, scale) for row in residuals]
    return np.array(followed).reshape(residuals.shape)
