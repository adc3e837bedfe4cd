"""Calibration: from a detector's score to evidence, and the level of evidence that healthy windows seldom reach.

A score means nothing by itself. What counts is the share of this host's own windows, held out when the detector was
fitted, that scored at least as high: a conformal p-value. Evidence is its -log10, bounded and smoothed, because silent
inefficiencies last and glitches do not. The alarm level is what the smoothed evidence of ordinary windows exceeds as
often as the operator allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unveil.detection.history import Ring
from unveil.records.averages import median, quantile
from unveil.records.verdict import Vote

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_EVIDENCE = 3.5  # of one window, in decades
LEAST_SCORES = 30  # fewer make no p-value

_ORDINARY = 1 / math.log(10)  # mean evidence of windows whose p-value is evenly spread
_TAIL_FROM = 0.9  # quantile of smoothed evidence above which the tail is fitted
_CALM = 10  # windows below it that part two excursions
_PRIOR_WEIGHT = 3.0  # a prior excursion is believed as if it was seen in so many
_HIGHEST = 2.6  # alarm level at most: windows that all have p = .0025 always alarm, however wild the past was


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long evidence is remembered.

    Attributes:
        smoothing: weight of the newest window in the exponentially weighted mean.
        lowest: alarm level at least.
        excursion: height of an ordinary excursion, before any was seen.
        fullest: of the alarm level, at which it is full: what has gone on for long shall not be remembered for long.
        over: weight of a window that scores nothing after strong ones, if that is another: what was strong and has gone
            altogether is over, where a weak change comes and goes while its cause stays.
    """

    smoothing: float
    lowest: float
    excursion: float
    fullest: float = math.inf
    over: float | None = None


# The quick pace tells a strong fault in 4 to 8 windows. The slow one tells a fault of which no window is stranger than
# the strangest ordinary ones, but that stays: a host that was watched for minutes has each rare event among its few
# ordinary windows, so that a single window can hardly be stranger than all of them.
PACES = (
    Pace(smoothing=0.15, lowest=0.8, excursion=0.15),
    Pace(smoothing=0.05, lowest=0.7, excursion=0.1),
)

# A trend is smooth already: the quick pace has what is over be over, the slow one tells what is little and stays.
OF_TRENDS = (
    Pace(smoothing=0.4, lowest=1.0, excursion=0.3),
    Pace(smoothing=0.06, lowest=0.9, excursion=0.2, fullest=1.6, over=0.3),
)
_STRONG = 1.0  # score of a trend, sigmas outside of its range over three features
_STRONG_FOR = 0.97  # of it that is left after a window
# A range grows with its past, so the scores of the first minutes are those of another detector. Those count that stood
# on at least a third of what is known now.
OF_A_RANGE = 2 / 3


class Calibration:
    """The newest held-out scores of one detector, and what they make of the next one."""

    def __init__(
        self, detector: str, *, paces: tuple[Pace, ...] = PACES, newest: float = 1.0, capacity: int = 1800
    ) -> None:
        """Begin without scores.

        Args:
            newest: share of the scores that is believed, the newest ones.
            capacity: scores that are kept.
        """
        self.detector = detector
        self._paces = paces
        self._newest = newest
        self._ring = Ring(capacity, 1)
        self._sorted = np.empty(0, dtype=np.float32)
        self._tail_unit = 1.0
        self._tails = [_Tail() for _ in paces]
        self._levels: tuple[float, list[float]] | None = None  # of all paces, and the rate that they are for
        self._smooth = [_ORDINARY for _ in paces]
        self._lately = 0.0  # highest score, of windows long ago a little of it
        self._fresh = 0

    @property
    def ready(self) -> bool:
        """Return whether there are scores enough for a p-value."""
        return len(self._sorted) >= LEAST_SCORES

    def scores(self) -> NDArray[np.float32]:
        """Return the scores it stands on, oldest first."""
        return self._ring.newest()[:, 0]

    def seed(self, scores: NDArray[np.floating]) -> None:
        """Start again from held-out scores, oldest first."""
        self._ring.refill(np.asarray(scores, dtype=np.float32).reshape(-1, 1))
        self._refresh()
        self.calm()

    def push(self, score: float) -> None:
        """Add the score of an ordinary window that was judged before it was learned."""
        self._ring.push(np.array([score]))
        self._fresh += 1
        if self._fresh >= min(max(len(self._ring) // 10, 5), 60):
            self._refresh()

    def calm(self) -> None:
        """Forget the evidence gathered so far, not the scores."""
        self._smooth = [_ORDINARY for _ in self._paces]
        self._lately = 0.0

    def vote(self, score: float, *, rate: float) -> Vote:
        """Return the detector's vote on the window that follows the last one voted on.

        The vote's score is the smoothed evidence, of the pace that is nearest to its alarm level or farthest beyond it.

        Args:
            rate: excursions per window to allow in ordinary windows; the paces share it.
        """
        p_value = self.p_value(score)
        evidence = self._evidence(score, p_value)
        levels = self._levels_for(rate)
        self._lately = max(score, _STRONG_FOR * self._lately)
        over = score <= 0.0 and self._lately > _STRONG
        for index, pace in enumerate(self._paces):
            smoothing = pace.over if over and pace.over is not None else pace.smoothing
            smooth = self._smooth[index] + smoothing * (evidence - self._smooth[index])
            self._smooth[index] = min(smooth, pace.fullest * levels[index])
        smooth, level = max(zip(self._smooth, levels, strict=True), key=lambda pair: pair[0] / pair[1])
        return Vote(
            detector=self.detector,
            score=smooth,
            threshold=level,
            p_value=p_value,
            anomalous=smooth > level,
        )

    def p_value(self, score: float) -> float:
        """Return the share of held-out scores that are at least as high, the window itself counted, in (0, 1]."""
        higher = len(self._sorted) - int(self._sorted.searchsorted(np.float32(score), side="left"))
        return (1 + higher) / (len(self._sorted) + 1)

    def evidence(self, score: float) -> float:
        """Return -log10 of the p-value, in 0..3.5.

        Ranks end at the highest score seen. Beyond it each further distance of that score from the median counts one
        decade more, so that a short calibration still tells far from very far.
        """
        return self._evidence(score, self.p_value(score))

    def _evidence(self, score: float, p_value: float) -> float:
        beyond = (score - float(self._sorted[-1])) / self._tail_unit
        return min(-math.log10(p_value) + max(beyond, 0.0), MOST_EVIDENCE)

    def level(self, rate: float, pace: int = 0) -> float:
        """Return the smoothed evidence that ordinary windows exceed with a rate, in excursions per window."""
        return self._tails[pace].level(rate, self._paces[pace])

    def _levels_for(self, rate: float) -> list[float]:
        """Return the level of each pace; they stay until there are other scores."""
        if self._levels is None or self._levels[0] != rate:
            share = rate / len(self._paces)
            self._levels = rate, [self.level(share, pace) for pace in range(len(self._paces))]
        return self._levels[1]

    def _refresh(self) -> None:
        self._fresh = 0
        self._levels = None
        scores = self.scores()
        scores = scores[-max(int(len(scores) * self._newest), LEAST_SCORES) :]
        self._sorted = np.sort(scores)
        if not len(scores):
            return
        self._tail_unit = max(float(self._sorted[-1]) - median(self._sorted.tolist()), 1e-9)
        higher = len(scores) - np.searchsorted(self._sorted, scores, side="left")
        evidence = np.minimum(-np.log10((1 + higher) / (len(scores) + 1)), MOST_EVIDENCE)
        self._tails = [_tail(smoothed(evidence, pace.smoothing)) for pace in self._paces]


@dataclass(frozen=True, slots=True)
class _Tail:
    """Excursions of smoothed evidence above a threshold: from where, how high together, how many, in how many windows.

    Peaks over a threshold: excursions come so and so often, and their heights fall off exponentially; the level of
    any rarer event follows. A weak prior stands in for excursions that were not seen yet.
    """

    start: float = 0.0
    heights: float = 0.0
    count: int = 0
    windows: int = 1

    def level(self, rate: float, pace: Pace) -> float:
        height = (self.heights + _PRIOR_WEIGHT * pace.excursion) / (self.count + _PRIOR_WEIGHT)
        often = max(self.count, 1) / self.windows
        return min(max(self.start + height * math.log(max(often / rate, 1.0)), pace.lowest), _HIGHEST)


def _tail(smooth: NDArray[np.float64]) -> _Tail:
    start = quantile(smooth.tolist(), _TAIL_FROM)
    above = np.flatnonzero(smooth > start)
    if not len(above):
        return _Tail(start, 0.0, 0, len(smooth))
    excursions = np.split(above, np.flatnonzero(np.diff(above) > _CALM) + 1)
    return _Tail(start, float(sum(smooth[each].max() - start for each in excursions)), len(excursions), len(smooth))


def smoothed(evidence: NDArray[np.float64], smoothing: float) -> NDArray[np.float64]:
    """Return the exponentially weighted mean over time, begun at what is ordinary."""
    state = _ORDINARY
    result = []
    for value in evidence.tolist():
        state += smoothing * (value - state)
        result.append(state)
    return np.array(result)
