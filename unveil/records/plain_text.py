"""Values as text that a tenant cannot bend: what every screen, table and log line of unveil is drawn with.

Names of cgroups, containers and jobs are chosen by tenants. Whatever comes from a host goes through ``plain`` before
it meets a terminal: control characters, direction overrides and line separators become visible escapes; markup stays
text, because what draws it is told that it is no markup.
"""

from __future__ import annotations

import unicodedata

_MARKS_IN_A_ROW = 2  # no script stacks more on a letter; a tower of them draws over the lines around it


def plain(text: object, limit: int = 200) -> str:
    """Return text without anything that could move a cursor, recolour or reorder what is drawn.

    Args:
        limit: how many characters at most; a longer text ends in an ellipsis.
    """
    drawn = []
    marks = 0
    for char in str(text)[: limit + 1]:
        category = unicodedata.category(char)
        marks = marks + 1 if category[0] == "M" else 0
        safe = category[0] != "C" and category not in ("Zl", "Zp") and marks <= _MARKS_IN_A_ROW
        drawn.append(char if safe else char.encode("unicode_escape", "backslashreplace").decode())
    whole = "".join(drawn)
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def span(seconds: float) -> str:
    """Return a length of time: ``42 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 172800:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86400} days"


def several(count: int, noun: str) -> str:
    """Return ``1 window``, ``2 windows``: a count and its noun, which takes an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def quantity(value: float | str | None) -> str:
    """Return a number with four significant digits and a thousands mark, absent as a dash."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return plain(value)
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    if abs(value) >= 1e6:
        for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
            if abs(value) >= size:
                return f"{value / size:.4g} {unit}"
    return f"{value:.4g}"
