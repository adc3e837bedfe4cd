"""Rhythm: the period of a training step, or of whatever a workload repeats, from a counter of the host alone.

The bytes that a NIC sends rise and fall with each step of a job that exchanges gradients. A line in their spectrum that
stands far above its surroundings is that rhythm; where none does, there is none, and nothing is claimed.

The strength of a line is its power over the smooth part of the spectrum at its place, since loads drift and the slow
end is always strong. Of noise, the strongest of some hundred bins stands about ten times above them and hardly ever
thirty times, as the tests show. A rhythm faster than two samples cannot be seen (Nyquist), one slower than an eighth of
the stretch is not believed. One that is faster still looks like a slower one, only fainter, as a counter smooths what
happens between two samples: where that is likely, the line must swing by more than a faster one could (``Sight``).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from unveil.records.averages import median, quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

STRETCH = 600  # samples: a minute of ticks
LEAST = 300
FASTEST = 2.5  # samples: nearer to two, a rhythm and its mirror image blur into one line
STRONG = 30.0
"""Strength from which a rhythm is claimed."""
CYCLES = 8  # that the stretch must hold
PADDING = 4  # times the stretch; places the line between the bins of the bare transform
BANDS = 24  # over which the surroundings are taken
NEWEST, NEWEST_CYCLES, LASTING = 3, 4, 0.5
"""What the newest part of a stretch is, and how far the line must swing there beside the farthest one."""
AGREE = 0.03
AGREEING = 3
EVERY = 100  # samples between two looks


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What can be seen of a counter; the defaults are for one that is read ten times a second.

    Attributes:
        interval_s: time between two samples.
        stretch, least: samples that are looked at, at most and at least.
        every: samples between two looks.
        fastest: samples that the fastest rhythm told has.
        swing: least amplitude of its line as a share of the counter's mean; a burst once a period has 2.
    """

    interval_s: float
    stretch: int = STRETCH
    least: int = LEAST
    every: int = EVERY
    fastest: float = FASTEST
    swing: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """A rhythm: its period in seconds, and how far its line stands above its surroundings."""

    period_s: float
    strength: float


def rhythm(amounts: NDArray[np.float64], sight: Sight) -> Rhythm | None:
    """Return the strongest rhythm of a stretch; None when no line is strong enough.

    Args:
        amounts: shape (samples,), what happened in each interval; finite.
        sight: what can be seen of them.
    """
    if len(amounts) < sight.least:
        return None
    known = amounts.tolist()
    low, high = quantile(known, 0.02), quantile(known, 0.98)  # a checkpoint's burst is no part of a rhythm
    bounded = np.clip(amounts, low, high)
    if high <= low:
        return None
    level = bounded.mean()
    bounded = (bounded - level) / (high - low)
    power = np.square(np.abs(np.fft.rfft(bounded * np.hanning(len(bounded)), PADDING * len(bounded))))
    step_hz = 1.0 / (sight.interval_s * PADDING * len(bounded))
    first = int(np.ceil(CYCLES * PADDING))
    last = int(PADDING * len(bounded) / sight.fastest)
    strength = power[first:last] / _surroundings(power[first:last], first)
    peak = int(strength.argmax())
    amplitude = 4.0 * np.sqrt(power[first + peak]) / len(bounded) * (high - low)  # a Hann window halves it
    if strength[peak] < STRONG or amplitude < sight.swing * level:
        return None
    line = (first + peak + _between(power, first + peak)) / (PADDING * len(bounded))  # cycles per sample
    if not _lasts(bounded, line):
        return None
    found = line / sight.interval_s
    for part in (2, 3, 4):  # a step of several equal bursts shows its harmonics first
        place = round(found / part / step_hz) - first
        if place >= PADDING:
            near = strength[place - PADDING : place + PADDING + 1].max()
            if near >= max(STRONG / 2, 0.1 * strength[peak]):
                found /= part
                break
    return Rhythm(period_s=1.0 / found, strength=float(strength[peak]))


def _lasts(amounts: NDArray[np.float64], line: float) -> bool:
    """Return whether a line is among the strongest of the newest part of a stretch as well.

    A step that has become another one is not the step any more, also where one of the new one's harmonics, which look
    like slower ones, falls on the old.

    Args:
        amounts: shape (samples,), around zero.
        line: cycles per sample.
    """
    newest = amounts[-max(len(amounts) // NEWEST, int(NEWEST_CYCLES / line)) :]
    count = PADDING * len(newest)
    swings = np.abs(np.fft.rfft((newest - newest.mean()) * np.hanning(len(newest)), count))
    place = round(line * count)
    near = swings[max(place - PADDING, 0) : place + PADDING + 1].max()
    return bool(near >= LASTING * swings[place // 2 :].max())


def _surroundings(power: NDArray[np.float64], first: int) -> NDArray[np.float64]:
    """Return the smooth part of a spectrum: a power law, through medians that no line can bend.

    Args:
        power: from bin *first* on.
    """
    bins = np.log(first + np.arange(len(power)))
    floor = max(float(power.max()) * 1e-9, np.finfo(np.float64).tiny)  # a pure tone has nothing around it
    edges = np.geomspace(first, first + len(power), BANDS + 1).astype(np.intp) - first
    bands = [(low, high) for low, high in pairwise(edges) if high > low]
    places = np.array([bins[low:high].mean() for low, high in bands])
    levels = np.array([np.log(max(median(power[low:high].tolist()), floor)) for low, high in bands])
    weights = np.array([float(high - low) for low, high in bands])  # a band of few bins is a poor median
    trusted = np.ones(len(places), dtype=bool)
    for _ in range(2):
        level, slope = _line(places[trusted], levels[trusted], weights[trusted])
        above = levels - (level + slope * places)
        trusted = above <= max(3.0 * median(np.abs(above).tolist()), 0.5)
        if trusted.sum() < BANDS // 2:
            break
    smooth: NDArray[np.float64] = np.exp(level + slope * bins)
    return np.maximum(smooth, floor)


def _line(
    places: NDArray[np.float64], levels: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Return level at zero and slope of the line of least squares, where each point counts by its weight.

    By hand: numpy's polynomials are a megabyte, which a watcher would keep since the first NIC that was busy.
    """
    share = weights / weights.sum()
    at, level = float(share @ places), float(share @ levels)
    apart = places - at
    square = float(share @ (apart * apart))
    slope = float(share @ (apart * (levels - level))) / square if square > 0 else 0.0
    return level - slope * at, slope


def _between(power: NDArray[np.float64], peak: int) -> float:
    """Return where between two bins the top of a line lies, by a parabola through the logarithms of three."""
    if not 0 < peak < len(power) - 1:
        return 0.0
    left, middle, right = np.log(np.maximum(power[peak - 1 : peak + 2], 1e-300))
    bend = left - 2 * middle + right
    return float(np.clip(0.5 * (left - right) / bend, -0.5, 0.5)) if bend < 0 else 0.0


class RhythmTracker:
    """Follow the rhythm of one counter. A rhythm is told once three looks in a row agree within three percent.

    Attributes:
        level: what happens in a second, on average over the stretch of the last look; nothing before the first.
    """

    def __init__(self, sight: Sight, *, floor: float = 0.0) -> None:
        """Make a tracker.

        Args:
            floor: level below which there is no rhythm, and nothing is looked for.
        """
        self._sight = sight
        self._floor = floor
        self._amounts: deque[float] = deque(maxlen=sight.stretch)
        self._looks: deque[Rhythm | None] = deque(maxlen=AGREEING)
        self._since = 0
        self.level = 0.0

    def push(self, amounts: NDArray[np.float64]) -> None:
        """Take what happened in the newest intervals, oldest first; a gap (NaN) begins anew."""
        if not np.isfinite(amounts).all():
            self._amounts.clear()
            self._looks.clear()
            self.level = 0.0
            return
        self._amounts.extend(amounts.tolist())
        self._since += len(amounts)
        if self._since >= self._sight.every and self.enough:
            self._since = 0
            stretch = np.fromiter(self._amounts, np.float64)
            self.level = float(stretch.mean()) / self._sight.interval_s
            self._looks.append(rhythm(stretch, self._sight) if self.level >= self._floor else None)

    @property
    def enough(self) -> bool:
        """Tell whether there are samples enough to look at."""
        return len(self._amounts) >= self._sight.least

    @property
    def rhythm(self) -> Rhythm | None:
        """Return the rhythm now; None when there is none or it is not sure."""
        return self._looks[-1] if self.agreement is not None else None

    @property
    def agreement(self) -> float | None:
        """Return how well the last looks agree: 1 for one period, 0 for three percent apart; None beyond."""
        periods = [look.period_s for look in self._looks if look is not None]
        if len(periods) < AGREEING:
            return None
        apart = max(periods) / min(periods) - 1
        return 1.0 - apart / AGREE if apart <= AGREE else None
