"""Demand: whether less gets done because less is wanted.

A neighbour that takes CPU time or memory bandwidth leaves hardly a trace but that the work of this host advances more
slowly. So a fall of what gets done counts for the slow detectors, and is excused where the host has less to do: where
its CPUs are less busy than usual, and nothing waits more than usual. What has stopped altogether is not slow but over.
The other way round, a longer queue for the CPUs is a busier host, and counts where less gets done meanwhile.
What gets done is what is sent; a job that reads from disks sends nothing, so there it is what the disks read, as a
witness for the queue only. By itself less of that is no fault: caches fill, a checkpoint is written, an epoch ends.
The excuse is for what is judged, not for the past: a range that the work has had is ordinary, whatever the reason. (But
past queues alone are left out of the scores that an alarm level is taken from: a short past has new ones all the time.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.features.load import BUSY, FRESH, INSTEAD, QUEUES, READS, WAITS, WORK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from unveil.detection.detector_input import DetectorInput

_LESS = 0.05  # share of CPU time, or of time, that makes a difference
_MORE = 0.1  # log units
_OVER = 3.0  # log units: a twentieth of what was usual


def steady(scope: DetectorInput) -> NDArray[np.bool_]:
    """Return which features a slow detector judges."""
    return scope.judged & ~scope.load


def staying(
    scope: DetectorInput, trend: NDArray[np.float64], centre: NDArray[np.float64], sigma: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what a slow detector is shown of a trend: NaN where it tells the load or is excused.

    Args:
        trend: distances from the centre on the compared scale, shape (features,), NaN where absent.
        centre, sigma: what is usual, on the same scale, shape (features,), NaN where not known.
    """
    shown = np.where(steady(scope), trend, np.nan)
    shown[shown * scope.harmless > 0] = np.nan
    wanted = _wanted(scope, trend)
    for at in _places(scope, WORK):
        if shown[at] < -_OVER or not wanted:
            shown[at] = np.nan
    less = _less(scope, trend, centre, sigma)
    if not _slower(less):
        shown[_places(scope, QUEUES)] = np.nan
    for name, instead in INSTEAD.items():
        if not _swapped(scope, trend, less, name, instead):
            shown[_places(scope, (name,))] = np.nan
    return shown


def queues_alone(
    scope: DetectorInput, trends: NDArray[np.floating], centre: NDArray[np.float64], sigma: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which values of past trends are queues while no less got done, shape (windows, features)."""
    alone = np.zeros(trends.shape, dtype=np.bool_)
    columns = _places(scope, QUEUES)
    if columns:
        alone[:, columns] = [[not _slower(_less(scope, row, centre, sigma))] for row in trends]
    return alone


def _wanted(scope: DetectorInput, trend: NDArray[np.float64]) -> bool:
    """Return whether as much is wanted of the host as usual, as far as is known."""
    busy = any(trend[at] > -_LESS for at in _places(scope, BUSY))
    return busy or any(trend[at] > _LESS for at in _places(scope, WAITS))


def _less(
    scope: DetectorInput, trend: NDArray[np.floating], centre: NDArray[np.float64], sigma: NDArray[np.float64]
) -> list[float]:
    """Return how far down is what tells how much gets done, where it is."""
    told = [*_places(scope, WORK), *_reads(scope, trend, centre, sigma)]
    return [down for at in told if (down := float(trend[at])) < -_MORE]


def _reads(
    scope: DetectorInput, trend: NDArray[np.floating], centre: NDArray[np.float64], sigma: NDArray[np.float64]
) -> list[int]:
    """Return which of what the disks read tells that less gets done.

    Not what is a heartbeat, or less than what is sent, which tells better; nor within a sigma, as many read by fits and
    starts; nor while memory is asked for as ever, since files that come from the page cache are not read.
    """
    sent = [centre[at] for at in _places(scope, WORK)]
    down = [
        at
        for name, least in READS.items()
        for at in _places(scope, (name,))
        if trend[at] < -sigma[at] and centre[at] >= np.log1p(least) and not any(centre[at] < other for other in sent)
    ]
    return down if down and any(trend[at] < -_MORE for at in _places(scope, FRESH)) else []


def _slower(less: list[float]) -> bool:
    """Return whether less gets done than usual, but something does."""
    return any(down >= -_OVER for down in less)


def _swapped(scope: DetectorInput, trend: NDArray[np.float64], less: list[float], name: str, instead: str) -> bool:
    """Return whether one came down and the other went up, or the other way round.

    Not where the work came down as well, and the one no more than twice as far: it came with the work and went with it,
    while somebody else asks for the other.
    """
    one, other = (trend[_places(scope, (each,))].tolist() for each in (name, instead))
    if not one or not other or abs(other[0]) <= _MORE or one[0] * other[0] >= 0:
        return False
    return one[0] > 0 or not any(one[0] >= 2 * slower - _MORE for slower in less)


def _places(scope: DetectorInput, names: Iterable[str]) -> list[int]:
    return [at for name in names if (at := scope.place.get(name)) is not None]
