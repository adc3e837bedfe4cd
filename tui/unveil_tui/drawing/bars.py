"""Bars, traces and bands made of block characters. Pure: numbers in, text out."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
CALM = 3.0  # severity 3 is one window in a thousand: what stays below draws low, however quiet the rest is
USUAL = 3.0  # standard deviations on either side that a band spans
FARTHEST = 40.0  # standard deviations at a band's ends; what is farther stands there, too


def bar(share: float, width: int) -> str:
    """Return a bar for a share of 0..1, padded to *width* cells; whatever is above zero is visible."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    full, rest = divmod(eighths, 8)
    return (_EIGHTHS[8] * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def signed_bar(share: float, sign: float, width: int) -> str:
    """Return a bar that grows from the middle: to the right when the value is above what was expected, else left.

    Args:
        share: 0..1, the length.
        sign: only its sign counts.
        width: odd number of cells; the middle one is the axis.
    """
    half = width // 2
    length = min(half, max(1 if share > 0 else 0, round(min(share, 1.0) * half)))
    left = "█" * length if sign < 0 else ""
    right = "█" * length if sign >= 0 else ""
    return left.rjust(half) + "│" + right.ljust(half)


def trace(values: Sequence[float | None], top: float) -> str:
    """Return one character a value, as high as its part of *top*; absent values are blank, zero is the lowest."""
    return tower(values, low=0.0, high=max(top, CALM), rows=1)[0]


def tower(values: Sequence[float | None], *, low: float, high: float, rows: int) -> list[str]:
    """Return a chart of one column a value and some rows, the uppermost first.

    Absent values are blank; whatever is there shows at least the lowest step, so that it is told from absent.
    """
    steps = rows * len(_LEVELS)
    spread = high - low
    heights = [
        None if value is None else max(0, min(steps - 1, int((value - low) / spread * steps))) if spread > 0 else 0
        for value in values
    ]
    lines = []
    for row in reversed(range(rows)):
        base = row * len(_LEVELS)
        lines.append("".join(_cell(height, base) for height in heights))
    return lines


def _cell(height: int | None, base: int) -> str:
    if height is None or height < base:
        return " "
    return _LEVELS[min(height - base, len(_LEVELS) - 1)]


def spark(values: Sequence[float | None], width: int) -> str:
    """Return a line of the newest values between their own least and most, aligned to the right."""
    shown = list(values)[-width:]
    there = [value for value in shown if value is not None]
    if not there:
        return "".rjust(width)
    return tower(shown, low=min(there), high=max(there), rows=1)[0].rjust(width)


def band(sigma: float, width: int) -> str:
    """Return where a value stands in what is expected: ``├──┼──┤`` is the usual, ``●`` the value.

    Args:
        sigma: its signed distance in standard deviations; far ones are drawn closer, as on a logarithmic scale.
        width: odd number of cells.
    """
    half = width // 2

    def place(distance: float) -> int:
        length = log2(1 + min(abs(distance), FARTHEST)) / log2(1 + FARTHEST)
        return half + round(length * half) * (1 if distance >= 0 else -1)

    cells = [" "] * width
    left, right = place(-USUAL), place(USUAL)
    for at in range(left, right + 1):
        cells[at] = "─"
    cells[left], cells[half], cells[right] = "├", "┼", "┤"
    cells[place(sigma)] = "●"
    return "".join(cells)
