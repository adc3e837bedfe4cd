"""Prompt: what a person is asked for in one line."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A line to be typed.

    Attributes:
        title: what is asked for.
        lines: what it is about, and what follows from it.
        does: what Enter does, e.g. ``keeps the note``.
        hint: shown while nothing is typed.
        value: what stands there at first.
        wrong: returns what is wrong with a text, empty when it can be used.
    """

    title: str
    lines: tuple[str, ...] = ()
    does: str
    hint: str = ""
    value: str = ""
    wrong: Callable[[str], str]


def needs_text(text: str) -> str:
    """Return what is wrong with a reason or a note."""
    return "" if text else "it needs a text: the next person on call reads it"


def length_of(text: str) -> int | None:
    """Return the seconds of ``30m``, ``2h``, ``1d``; None for what is no length of time."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    return None if found is None else int(found[1]) * UNITS[found[2]]


def moment_of(text: str, now_s: float) -> float | None:
    """Return the wall clock time of ``18:19``, ``18:19:29``, ``11-28 18:19`` or ``-10m``; None for anything else.

    A time of day is the last one before *now*.
    """
    if text.startswith("-"):
        back = length_of(text[1:])
        return None if back is None else now_s - back
    found = re.fullmatch(r"(?:(\d{2})-(\d{2}) )?(\d{1,2}):(\d{2})(?::(\d{2}))?", text)
    if found is None:
        return None
    month, day, hour, minute, second = (None if each is None else int(each) for each in found.groups())
    now = time.localtime(now_s)
    if not (hour is not None and hour < 24 and minute is not None and minute < 60 and (second or 0) < 60):
        return None
    if not (1 <= (month or 1) <= 12 and 1 <= (day or 1) <= 31):
        return None
    named = (now.tm_year, month or now.tm_mon, day or now.tm_mday, hour, minute, second or 0, 0, 0, -1)
    at_s = time.mktime(named)
    if at_s > now_s:  # not come yet today, or this year: the one before is meant
        at_s = (
            time.mktime((now.tm_year - 1, *named[1:])) if month else time.mktime((*named[:2], named[2] - 1, *named[3:]))
        )
    return at_s
