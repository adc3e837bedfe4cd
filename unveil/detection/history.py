"""History: the host's ordinary windows, the newest ones all, older ones thinned."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.floating]

_Float = TypeVar("_Float", bound=np.floating)
_LARGEST = 6e4  # of float16: beyond any distance that is told apart, and float16 ends soon after


class Ring:
    """The newest rows, at most *capacity*, in the order they came.

    All memory is there from the beginning, so that a watcher takes no more in its second hour than in its first; but
    for a ring that is mostly empty, and was cleared.
    """

    def __init__(self, capacity: int, width: int, *, dtype: type[np.floating] = np.float32) -> None:
        """Make an empty one.

        Args:
            dtype: float32, of which a reference needs no more, or float16 for distances from a centre: they are told
                to a two-thousandth of themselves, a fraction of what makes a difference, in half the memory.
        """
        self._rows: Rows = np.full((capacity, width), np.nan, dtype=dtype)
        self._next = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def push(self, row: NDArray[np.floating]) -> Rows | None:
        """Add a row; return a copy of the row that it displaced, if any."""
        full = self._count == len(self._rows)
        displaced = self._rows[self._next].copy() if full else None
        self._rows[self._next] = self._within(row)
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
        self._rows[: len(kept)] = self._within(kept)
        self._count = len(kept)
        self._next = len(kept) % len(self._rows)

    def clear(self) -> None:
        """Forget all rows. What they were in is given back to the system: it takes memory again as rows come."""
        self._rows = np.empty_like(self._rows)
        self._next = self._count = 0

    def realigned(self, source: NDArray[np.intp]) -> Ring:
        """Return a ring whose column i is this one's column ``source[i]``, or absent where that is -1."""
        ring = Ring(len(self._rows), len(source), dtype=self._rows.dtype.type)
        if self._count:
            ring.refill(realign(self.newest(), source))
        else:
            ring.clear()
        return ring

    def _within(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        if self._rows.dtype != np.float16:
            return rows
        bounded: NDArray[np.floating] = np.minimum(np.maximum(rows, -_LARGEST), _LARGEST)
        return bounded


class ThinnedRing:
    """Rows of a long past: the newest one by one, before them every *thinning*-th.

    With 900 + 900 rows and every eighth, one row a second reaches back two and a quarter hours and costs 1,800 rows.
    Rows are float16, as they are distances; see ``Ring``.
    """

    def __init__(self, capacity: int, width: int, *, thinning: int) -> None:
        self._near = Ring(capacity, width, dtype=np.float16)
        self._far = Ring(capacity, width, dtype=np.float16)
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
