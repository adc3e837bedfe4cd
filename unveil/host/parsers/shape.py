"""Shape: what one text looked like when it was parsed, and the check that another text looks the same.

A text *fits* a shape when it is the same without its digits and blanks (kernel tables pad with blanks), holds as many
numbers, and the numbers that are part of a name are the same. Then the readings of the shape hold for it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from unveil.host.parsers.text import ParseError, Reading, Text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.records.metric import Channel

Parser = Callable[[Text], Iterator[Reading]]
"""Walks a text and yields what is in it. Raises nothing but ``ParseError``."""

NO_NUMBER = 1 << 62
"""From here on a number is none: a limit that means *unlimited*, a negative one printed unsigned, or an overflow."""

_DIGITS_AND_BLANKS = b"0123456789 \t"
_DIGITS_ONLY = bytes(each if chr(each) in "0123456789" else ord(" ") for each in range(256))


def skeleton_of(text: bytes) -> bytes:
    """Return a text without its digits and blanks."""
    return text.translate(None, _DIGITS_AND_BLANKS)


def numbers_of(text: bytes) -> NDArray[np.int64]:
    """Return every run of digits as a number, in order; one beyond int64 comes out as the largest int64."""
    blanked = text.translate(_DIGITS_ONLY)
    if not blanked or blanked.isspace():
        return np.empty(0, np.int64)  # numpy reads a 0 out of nothing but blanks
    return np.fromstring(blanked, dtype=np.int64, sep=" ")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Shape:
    """What a text looked like.

    Attributes:
        text: the text it was learned from; it stands in for one that could not be read.
        skeleton: the text without digits and blanks.
        count: how many numbers it holds.
        pins: ordinals of the numbers that are part of a name.
        pinned: those numbers.
        readings: one for each channel.
        channels, scales: of the readings.
        take, starts: ordinals of the numbers of all readings, and where among them each reading's begin.
        problem: why there is no reading, empty when there are some.
    """

    text: bytes = b""
    skeleton: bytes = b""
    count: int = 0
    pins: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    pinned: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    readings: tuple[Reading, ...] = ()
    channels: tuple[Channel, ...] = ()
    scales: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    take: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    starts: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    problem: str = ""

    def fits(self, text: bytes) -> bool:
        """Tell whether the readings hold for another text."""
        if skeleton_of(text) != self.skeleton:
            return False
        numbers = numbers_of(text)
        return numbers.size == self.count and bool((numbers[self.pins] == self.pinned).all())


NOTHING = Shape(problem="not read yet")
"""The shape of a text that was never seen."""


def learn(text: bytes, parser: Parser) -> Shape:
    """Parse a text for its shape.

    Never fails: a text that the parser does not know has a shape without readings, so that it is not parsed again
    until it looks different. A channel that a text gives twice is ambiguous and left out.
    """
    walked = Text(text)
    found: dict[Channel, Reading | None] = {}
    problem = ""
    try:
        for reading in parser(walked):
            found[reading.channel] = None if reading.channel in found else reading
    except ParseError as error:
        found.clear()
        problem = error.what
    readings = tuple(reading for reading in found.values() if reading is not None)
    numbers = numbers_of(text)
    pins = np.array(sorted(set(walked.pins)), np.intp)
    return Shape(
        text=text,
        skeleton=skeleton_of(text),
        count=numbers.size,
        pins=pins,
        pinned=numbers[pins],
        readings=readings,
        channels=tuple(reading.channel for reading in readings),
        scales=np.array([reading.scale for reading in readings], np.float64),
        take=np.fromiter(chain.from_iterable(reading.numbers for reading in readings), np.intp),
        starts=np.cumsum([0, *(len(reading.numbers) for reading in readings)][:-1] if readings else [], dtype=np.intp),
        problem=problem or ("" if readings else "holds nothing that we know"),
    )
