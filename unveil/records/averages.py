"""Mean, median and quantiles of a few plain numbers.

The standard library's ``statistics`` brings fractions and decimals with it, and ``median``, ``quantile`` and ``unique``
of numpy bring its masked arrays; both stay in the watcher for as long as it lives, and ``python -m
unveil.benchmarks.imports`` prints what they cost.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def mean(values: Sequence[float]) -> float:
    """Return the mean of some numbers, at least one."""
    return math.fsum(values) / len(values)


def median(values: Iterable[float]) -> float:
    """Return the median of some numbers, at least one: of an even count the mean of the middle two."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def quantile(values: Iterable[float], share: float) -> float:
    """Return the value below which a share (0 to 1) of some numbers lies, at least one; between two, in proportion."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    below, above, part = ordered[low], ordered[min(low + 1, len(ordered) - 1)], at - low
    return below + (above - below) * part if part < 0.5 else above - (above - below) * (1 - part)
