"""Sparing: a batch that leaves alone the texts that stay as they are.

Most of a host's small files hardly ever change: errors of links, limits, counters of what nobody uses. Whether a text
is the same as before is told by comparing bytes, far cheaper than to take the numbers out of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.host.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from unveil.host.parsers.shape import Shape

ROUND = 300
"""Times of decoding, after which what changed once may be found to stand still again."""


class Sparing:
    """As `Batch`, which see.

    Attributes:
        whole: all texts together.
    """

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.whole = Batch(shapes)
        self._shapes = tuple(shapes)
        self._left = 0  # of the round
        self._still: dict[int, bytes] = {}  # place → its text
        self._values = np.empty(0)  # of a row, right for what stands still
        self._moving: tuple[int, ...] = ()
        self._batch = self.whole  # of what moves
        self._at = np.empty(0, np.intp)  # its columns

    def decode(self, rows: Sequence[Sequence[bytes]]) -> NDArray[np.float64] | None:
        """Return the values of each row of texts, or None when some text does not fit its shape."""
        if not self._left:
            return self._begin(rows)
        self._left -= 1
        moved = [place for place, text in self._still.items() if any(row[place] != text for row in rows)]
        if moved:
            for place in moved:
                del self._still[place]
            self._part()
        if not self._still:
            return self.whole.decode(rows)
        values = np.repeat(self._values[np.newaxis], len(rows), axis=0)
        if self._moving:
            part = self._batch.decode([[row[place] for place in self._moving] for row in rows])
            if part is None:
                return None
            values[:, self._at] = part
        return values

    def _begin(self, rows: Sequence[Sequence[bytes]]) -> NDArray[np.float64] | None:
        """Parse everything, and see what stands still meanwhile."""
        values = self.whole.decode(rows)
        if values is not None:
            self._left = ROUND
            self._still = {
                place: shape.text if shape.text == text else text  # one copy of what is long
                for place, (shape, text) in enumerate(zip(self._shapes, rows[-1], strict=True))
                if all(row[place] == text for row in rows[:-1])
            }
            self._values = values[-1].copy()
            self._part()
        return values

    def _part(self) -> None:
        self._moving = tuple(place for place in range(len(self._shapes)) if place not in self._still)
        self._batch = Batch([self._shapes[place] for place in self._moving])
        columns = [np.arange(*self.whole.columns[place]) for place in self._moving]
        self._at = np.concatenate([np.empty(0, np.intp), *columns])
