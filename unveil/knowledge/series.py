"""Synthetic series in promtool's notation: ``0.4x10``, ``0+10x20``, ``_`` for missing.

====================  ==========================================================
``7``                 one value
``0.4x10``            ten of it (promtool's ``0.4x10`` are eleven; here the count is the number of values)
``0+10x20``           twenty values: 0, 10, 20 …
``100-5x20``          twenty values: 100, 95, 90 …
``_`` and ``_x3``     missing, once and three times
====================  ==========================================================

Source: the notation is that of ``promtool test rules`` (prometheus.io, "Unit testing for rules").
"""

from __future__ import annotations

import math
import re

MAX_VALUES = 100_000

_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_ITEM = re.compile(
    rf"(?P<missing>_)(?:x(?P<gap>[0-9]{{1,6}}))?\Z"
    rf"|(?P<start>{_NUMBER})(?:(?P<step>[-+](?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)?x(?P<count>[0-9]{{1,6}}))?\Z"
)


class SeriesError(ValueError):
    """A series that cannot be read.

    Attributes:
        offset: where the odd word begins in the text.
    """

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


def parse_series(text: str) -> tuple[float, ...]:
    """Return the values of a series, NaN where they are missing.

    Raises:
        SeriesError: a word is none of the notation, or there are too many values.
    """
    values: list[float] = []
    for word in re.finditer(r"\S+", text):
        found = _ITEM.match(word.group())
        if found is None:
            raise SeriesError(f"{word.group()!r} is not VALUE, VALUExCOUNT, START+STEPxCOUNT or _", word.start())
        if found["missing"]:
            values += [math.nan] * int(found["gap"] or 1)
        else:
            start, step = float(found["start"]), float(found["step"] or 0)
            values += [start + index * step for index in range(int(found["count"] or 1))]
        if len(values) > MAX_VALUES:
            raise SeriesError(f"more than {MAX_VALUES:,} values", word.start())
    if not values:
        raise SeriesError("the series is empty", 0)
    if any(math.isinf(value) for value in values):
        raise SeriesError("a value is not finite", 0)
    return tuple(values)


def value_at(series: tuple[float, ...], index: int) -> float:
    """Return the value in a window, NaN beyond the end: what is not written is missing, never the last value again."""
    return series[index] if index < len(series) else math.nan
