"""How sure is a rate that was counted: the exact interval of a Poisson mean.

Source: F. Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28 (1936). By bisection of the
distribution function, so that no statistics library has to be loaded.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def poisson_interval(count: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval in which the mean lies with a confidence, for one count. From 0 where nothing was counted."""
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if count == 0 else _where(lambda mean: 1.0 - _at_most(count - 1, mean), tail, count)
    return low, _where(lambda mean: 1.0 - _at_most(count, mean), 1.0 - tail, count)


def _where(rising: Callable[[float], float], level: float, count: int) -> float:
    """Return the mean at which a rising function reaches a level."""
    below, above = 0.0, count + 20.0 + 10.0 * math.sqrt(count + 1.0)
    middle = (below + above) / 2.0
    while below < middle < above:  # until there is no number between them
        below, above = (middle, above) if rising(middle) < level else (below, middle)
        middle = (below + above) / 2.0
    return middle


def _at_most(count: int, mean: float) -> float:
    """Return the probability of counting so many or fewer."""
    if mean <= 0.0:
        return 1.0
    power = math.log(mean)
    return math.fsum(math.exp(k * power - mean - math.lgamma(k + 1.0)) for k in range(count + 1))
