"""Bars and traces made of block characters. Pure: numbers in, text out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
CALM = 3.0  # severity 3 is one window in a thousand: what stays below draws low, however quiet the rest is


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
    ceiling = max(top, CALM)
    return "".join(
        " " if value is None else _LEVELS[min(len(_LEVELS) - 1, int(max(value, 0.0) / ceiling * len(_LEVELS)))]
        for value in values
    )
