"""When a site lets anything happen: maintenance windows bound automation, freezes bound everybody. All times are UTC.

Pure: the wall clock is an argument, and days are counted, not asked of a time zone. A rollback asks no calendar.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.records.site import Freeze

WINDOW_PATTERN = (
    r"^(?:(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:-(Mon|Tue|Wed|Thu|Fri|Sat|Sun))? )?"
    r"((?:[01][0-9]|2[0-3]):[0-5][0-9])-((?:(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00))$"
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_S = 86400
_THURSDAY = 3  # 1970-01-01


def within(windows: Iterable[str], at_s: float) -> bool:
    """Tell whether a time lies in one of some windows (``Sat-Sun 02:00-06:00``); no window at all is always.

    A window that ends before it begins goes over midnight and belongs to the day it begins.

    Raises:
        BadInputError: a text is no window.
    """
    judged = [_covers(window, at_s) for window in windows]
    return any(judged) or not judged


def _covers(window: str, at_s: float) -> bool:
    found = re.fullmatch(WINDOW_PATTERN, window)
    if found is None:
        raise BadInputError(f"{window!a} is no window", hint="write Mon-Fri 01:00-05:00, or 22:00-04:00; times are UTC")
    day, second = divmod(int(at_s), _DAY_S)
    begin, end = _second(found[3]), _second(found[4])
    if begin < end:
        return begin <= second < end and _named(found[1], found[2], day)
    today = second >= begin and _named(found[1], found[2], day)
    return today or (second < end and _named(found[1], found[2], day - 1))


def _second(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 3600 + int(minute) * 60


def _named(first: str | None, last: str | None, day: int) -> bool:
    if first is None:
        return True
    weekday, begin = (day + _THURSDAY) % 7, _DAYS.index(first)
    length = (_DAYS.index(last or first) - begin) % 7
    return (weekday - begin) % 7 <= length


def frozen(freezes: Iterable[Freeze], at_s: float) -> Freeze | None:
    """Return the freeze that holds at a time, None when there is none."""
    return next((each for each in freezes if each.from_s <= at_s < each.until_s), None)
