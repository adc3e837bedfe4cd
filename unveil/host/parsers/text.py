"""Text: a kernel file's text whose numbers are numbered, so that a parser can say which of them make up a channel.

The sampler reads at 10 Hz and takes all numbers out of a second's worth of texts in one numpy call, in the order in
which they stand: every run of ASCII digits is one number, everything else parts them. A parser therefore hands out no
values but ordinals: it walks a text once and yields a ``Reading`` for each channel. What it yields stays true as long
as only the digits change, which ``parsers/shape.py`` checks for every single text.

Two things keep a wrong number out:

* only a field of nothing but digits is a number; ``-5``, ``1.5``, ``0x1f``, ``N/A`` are none, and their channels are
  absent;
* digits that belong to a name (``cpu3``, ``eth0``) are *pinned*: the layout is given up when one of them changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.errors import SourceFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from unveil.records.metric import Channel

_DIGITS = re.compile(rb"[0-9]+")


class ParseError(SourceFailedError):
    """A text is not what its parser knows; its channels are absent."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A channel and the numbers of a text that make it up.

    Attributes:
        numbers: ordinals of the numbers, at least one; their sum times *scale* is the value.
        scale: from the unit of the text to the unit of the metric.
        identity: what tells this device from another one of the same name, empty where nothing does. When it changes,
            the counters start anew.
    """

    channel: Channel
    numbers: Sequence[int]
    scale: float = 1.0
    identity: str = ""


class Line:
    """One line of a text, split at blanks.

    Attributes:
        raw: the line as it was split.
        fields: its fields.
    """

    __slots__ = ("_ordinals", "_pins", "fields", "raw")

    def __init__(self, raw: bytes, fields: list[bytes], ordinals: list[int], pins: list[int]) -> None:
        self.raw = raw
        self.fields = fields
        self._ordinals = ordinals
        self._pins = pins

    def number(self, index: int) -> int | None:
        """Return the ordinal of the number in a field, None where there is no such field or it is no plain number."""
        if not 0 <= index < len(self.fields):
            return None
        ordinal = self._ordinals[index]
        return None if ordinal < 0 else ordinal

    def numbers(self, start: int, stop: int) -> list[int] | None:
        """Return the ordinals of fields *start* to *stop* (not included), None unless all of them are numbers."""
        if not 0 <= start < stop <= len(self.fields):
            return None
        ordinals = self._ordinals[start:stop]
        return None if min(ordinals) < 0 else ordinals

    def pin(self, start: int, stop: int) -> None:
        """Declare the numbers in fields *start* to *stop* (not included) to be part of a name."""
        self._pins.extend(ordinal for ordinal in self._ordinals[start:stop] if ordinal >= 0)


class Text:
    """A text on its way through a parser.

    Attributes:
        pins: ordinals of the numbers that are part of a name, filled while the lines are walked.
    """

    __slots__ = ("_raw", "pins")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self.pins: list[int] = []

    def lines(self, rewrite: Callable[[bytes], bytes] | None = None) -> Iterator[Line]:
        """Walk the lines that hold anything.

        Args:
            rewrite: applied to each line before it is split; it may replace anything but digits, by anything but
                digits, so that the numbers keep their places (``total=5`` becomes ``total 5``).
        """
        count = 0
        for row in self._raw.split(b"\n"):
            raw = row if rewrite is None else rewrite(row)
            fields = raw.split()
            if not fields:
                continue
            ordinals = []
            for field in fields:
                if field.isdigit():
                    ordinals.append(count)
                    count += 1
                    continue
                ordinals.append(-1)
                if runs := len(_DIGITS.findall(field)):
                    self.pins.extend(range(count, count + runs))
                    count += runs
            yield Line(raw, fields, ordinals, self.pins)


def name_of(field: bytes) -> str:
    """Return a name that a device or a tenant chose as text that can be stored anywhere."""
    return field.decode("utf-8", "backslashreplace")
