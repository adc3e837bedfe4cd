"""Mean and median of a few plain numbers.

The standard library's ``statistics`` brings fractions and decimals with it, and ``numpy.median`` brings masked arrays:
1 MB each, and they stay in the watcher for as long as it lives.
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
