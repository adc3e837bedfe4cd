"""Batch: the texts of one pace, several ticks at once, into one matrix of values.

All texts of some ticks are joined and every number is taken out of them in one numpy call, behind one guard; see
``parsers/shape.py`` for what the guard holds and ``parsers/text.py`` for what the numbers mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.host.parsers.shape import NO_NUMBER, numbers_of, skeleton_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from unveil.host.parsers.shape import Shape
    from unveil.records.metric import Channel

_NONE = np.empty(0, np.intp)
_NO_NUMBERS = np.empty(0, np.int64)
_NO_SCALES = np.empty(0, np.float64)
_AT_ONCE = 1 << 15  # bytes of text, or of numbers: they stay in the nearest cache, and on the heap (``keep_little``)
_SEPARATOR = b"\x1e"  # between texts: no kernel file holds one, and it stays in the skeleton


class Batch:
    """Where the channels stand in the numbers of consecutive texts.

    Attributes:
        channels: the columns, in the order of the texts.
        columns: first and last (not included) column of each text.
    """

    def __init__(self, shapes: Sequence[Shape]) -> None:
        channels: list[Channel] = []
        columns: list[tuple[int, int]] = []
        take, starts, pins = [_NONE], [_NONE], [_NONE]
        taken = offset = 0
        for shape in shapes:  # as a container comes and goes most shapes stay: what is theirs is not made again
            first = len(channels)
            channels += shape.channels
            columns.append((first, len(channels)))
            take.append(shape.take + offset)
            starts.append(shape.starts + taken)
            pins.append(shape.pins + offset)
            taken += len(shape.take)
            offset += shape.count
        self.channels = tuple(channels)
        self.columns = tuple(columns)
        self._skeleton = _SEPARATOR.join([shape.skeleton for shape in shapes])
        self._count = offset
        self._at_once = max(1, _AT_ONCE // max(1, 8 * offset, sum(len(shape.text) for shape in shapes)))  # rows
        self._pins = np.concatenate(pins)
        self._pinned = np.concatenate([_NO_NUMBERS, *(shape.pinned for shape in shapes)])
        self._take = np.concatenate(take)
        self._starts = np.concatenate(starts) if taken > len(channels) else None  # nothing to sum
        self._scales = np.concatenate([_NO_SCALES, *(shape.scales for shape in shapes)])

    @property
    def count(self) -> int:
        """Return how many numbers one row of texts holds."""
        return self._count

    def decode(self, rows: Sequence[Sequence[bytes]]) -> NDArray[np.float64] | None:
        """Return the values of each row of texts, or None when some text does not fit its shape.

        Args:
            rows: for each tick the texts, in the order of the shapes.

        Returns:
            Shape (rows, channels). NaN for a number beyond ``NO_NUMBER`` and for a sum with one.
        """
        parts: list[NDArray[np.float64]] = []
        for first in range(0, max(1, len(rows)), self._at_once):
            part = self._decode(rows[first : first + self._at_once])
            if part is None:
                return None
            parts.append(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _decode(self, rows: Sequence[Sequence[bytes]]) -> NDArray[np.float64] | None:
        text = _SEPARATOR.join([_SEPARATOR.join(row) for row in rows])
        if skeleton_of(text) != _SEPARATOR.join([self._skeleton] * len(rows)):
            return None
        numbers = numbers_of(text)
        if numbers.size != self._count * len(rows):
            return None
        matrix = numbers.reshape(len(rows), self._count)
        if self._pins.size and not (matrix[:, self._pins] == self._pinned).all():
            return None
        taken = matrix[:, self._take]
        values = taken.astype(np.float64)
        if taken.size and taken.max() >= NO_NUMBER:
            values[taken >= NO_NUMBER] = np.nan
        if self._starts is not None:
            values = np.add.reduceat(values, self._starts, axis=1)
        values *= self._scales
        return values
