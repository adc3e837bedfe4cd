"""History: the host's ordinary windows, the newest ones all, older ones thinned."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

_Float = TypeVar("_Float", np.float32, np.float64)


class Ring:
    """The newest rows, at most *capacity*, in the order they came.

    Rows are float32: a reference needs no more, and it halves what the watcher holds.
    """

    def __init__(self, capacity: int, width: int) -> None:
        self._rows: Rows = np.empty((capacity, width), dtype=np.float32)
        self._next = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def push(self, row: NDArray[np.floating]) -> Rows | None:
        """Add a row; return a copy of the row that it displaced, if any."""
        full = self._count == len(self._rows)
        displaced = self._rows[self._next].copy() if full else None
        self._rows[self._next] = row
        self._next = (self._next + 1) % len(self._rows)
        self._count = min(self._count + 1, len(self._rows))
        return displaced

    def newest(self, count: int | None = None) -> Rows:
        """Return the newest rows, oldest first, shape (at most count, width)."""
        count = self._count if count is None else min(count, self._count)
        return self._rows[(np.arange(self._next - count, self._next)) % len(self._rows)]

    def refill(self, rows: NDArray[np.floating]) -> None:
        """Replace everything by rows, oldest first; of too many the newest stay."""
        kept = rows[-len(self._rows) :]
        self._rows[: len(kept)] = kept
        self._count = len(kept)
        self._next = len(kept) % len(self._rows)

    def realigned(self, source: NDArray[np.intp]) -> Ring:
        """Return a ring whose column i is this one's column ``source[i]``, or absent where that is -1."""
        ring = Ring(len(self._rows), len(source))
        ring.refill(realign(self.newest(), source))
        return ring


class ThinnedRing:
    """Rows of a long past: the newest one by one, before them every *thinning*-th.

    With 900 + 900 rows and every eighth, one row a second reaches back two and a quarter hours and costs 1,800 rows.
    """

    def __init__(self, capacity: int, width: int, *, thinning: int) -> None:
        self._near = Ring(capacity, width)
        self._far = Ring(capacity, width)
        self._thinning = thinning
        self._displaced = 0

    def __len__(self) -> int:
        return len(self._near) + len(self._far)

    def push(self, row: NDArray[np.floating]) -> None:
        """Add the newest row."""
        displaced = self._near.push(row)
        if displaced is not None:
            if self._displaced % self._thinning == 0:
                self._far.push(displaced)
            self._displaced += 1

    def rows(self) -> Rows:
        """Return every row, oldest first."""
        return np.concatenate([self._far.newest(), self._near.newest()])

    def near(self) -> Rows:
        """Return the rows that are not thinned, oldest first."""
        return self._near.newest()

    def far(self) -> Rows:
        """Return the thinned rows, oldest first."""
        return self._far.newest()

    def refill(self, near: NDArray[np.floating], far: NDArray[np.floating] | None = None) -> None:
        """Replace everything."""
        self._near.refill(near)
        self._far.refill(near[:0] if far is None else far)

    def realigned(self, source: NDArray[np.intp]) -> ThinnedRing:
        """Return the same history with other columns; see ``Ring.realigned``."""
        ring = ThinnedRing(1, len(source), thinning=self._thinning)
        ring._near, ring._far = self._near.realigned(source), self._far.realigned(source)
        return ring


def realign(rows: NDArray[_Float], source: NDArray[np.intp]) -> NDArray[_Float]:
    """Return rows whose last axis is picked by *source*, NaN where that is -1."""
    if rows.shape[-1] == 0:
        return np.full((*rows.shape[:-1], len(source)), np.nan, dtype=rows.dtype)
    picked = rows[..., np.maximum(source, 0)]
    picked[..., source < 0] = np.nan
    return picked
