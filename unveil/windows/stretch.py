"""Stretch: consecutive samples of one layout in one matrix, so that a window is a view of it and not a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.records.sample import SampleBlock

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.records.sample import Layout, Tier

_LEAST_ROWS = 8
_GROWTH = 2  # room for as many rows as there are, before all are moved


class Stretch:
    """Rows are only ever appended: a view that was handed out never changes, whoever still holds it."""

    __slots__ = ("_first", "_stop", "_times", "_values", "layout")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._times = np.empty(0, dtype=np.int64)
        self._values = np.empty((0, len(layout.channels)))
        self._first = self._stop = 0

    def __len__(self) -> int:
        return self._stop - self._first

    def append(self, times_ns: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Append samples, shape (n,) and (n, channels)."""
        if self._stop + len(times_ns) > len(self._times):
            self._move(len(self) + len(times_ns))
        stop = self._stop + len(times_ns)
        self._times[self._stop : stop] = times_ns
        self._values[self._stop : stop] = values
        self._stop = stop

    def drop(self, count: int) -> None:
        """Forget the oldest samples, fewer than all; a big matrix that few of its rows are left of is let go."""
        self._first += count
        if _GROWTH * 2 * len(self) + _LEAST_ROWS < len(self._times):
            self._move(len(self))

    def block(self, tier: Tier, low: int, high: int) -> SampleBlock:
        """Return the samples from *low* to *high* (not included), counted from the oldest that is left."""
        rows = slice(self._first + low, self._first + high)
        return SampleBlock(tier=tier, layout=self.layout, times_ns=self._times[rows], values=self._values[rows])

    def _move(self, rows: int) -> None:
        times, values = self._times[self._first : self._stop], self._values[self._first : self._stop]
        room = max(_LEAST_ROWS, _GROWTH * rows)
        self._times = np.empty(room, dtype=np.int64)
        self._values = np.empty((room, values.shape[1]))
        self._times[: len(times)] = times
        self._values[: len(times)] = values
        self._first, self._stop = 0, len(times)
