"""One number for each channel from its samples in a window. Vectorised over channels; absence in, absence out.

All take ``seconds`` (shape (n,), rising, n >= 1), ``samples`` (shape (n, channels), NaN where absent) and ``present``
(same shape, or None when nothing is absent: the cheap way), and give shape (channels,), NaN where there is nothing to
tell. Absent samples of one channel never touch another channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.features.feature import Stat

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Present = NDArray[np.bool_] | None

_JITTER = 0.01  # a counter that loses less than this share of itself did not begin anew


def rate(seconds: Floats, samples: Floats, present: Present) -> Floats:
    """Return the rate of counters, per second: the rise from the first to the last present sample over its time.

    Never negative. A counter that falls by a hair (iowait and idle do, by design of the kernel's accounting) stood
    still meanwhile, and its highest value so far is the base from which it goes on: sum of rises = maximum - first.
    A counter that falls by more began anew: its device was re-created, its driver reloaded, or it wrapped. A wrap at
    2^32 is treated the same, since which counters are 32 bits wide depends on driver and firmware, and a wrap that is
    guessed wrongly makes four billion events out of a reset. The steps that fell are left out with their time, and
    when they are more than half of all steps there is no telling. One sample alone has no rate.
    """
    if len(seconds) < 2:
        return np.full(samples.shape[1], np.nan)
    value, clock = _carried(seconds, samples, present)
    steps = value[1:] - value[:-1]
    if present is None and steps.min() >= 0:
        steady: Floats = (value[-1] - value[0]) / (seconds[-1] - seconds[0])
        return steady
    rates = _quotient(value[-1] - value[0], clock[-1] - clock[0])
    fell = (steps < 0).any(axis=0)
    if fell.any():
        rates[fell] = _rate_of_fallen(value[:, fell], steps[:, fell], clock[:, fell] if clock.shape[1] > 1 else clock)
    return rates


def _rate_of_fallen(value: Floats, steps: Floats, clock: Floats) -> Floats:
    waits = np.broadcast_to(clock[1:] - clock[:-1], steps.shape)
    taken = waits > 0  # steps between two present samples
    anew = -steps > _JITTER * value[:-1]
    good = taken & ~anew
    summed = np.where(good & (steps > 0), steps, 0.0).sum(axis=0)
    known = 2 * good.sum(axis=0) >= taken.sum(axis=0)
    restarted = _quotient(summed, np.where(good & known, waits, 0.0).sum(axis=0))
    steady = _quotient(value.max(axis=0) - value[0], clock[-1] - clock[0])
    return np.where(anew.any(axis=0), restarted, steady)


def unevenness(seconds: Floats, samples: Floats, present: Present) -> Floats:
    """Return the standard deviation of a counter's rate from sample to sample; absent with fewer than two steps."""
    if len(seconds) < 2:
        return np.full(samples.shape[1], np.nan)
    value, clock = _carried(seconds, samples, present)
    steps = value[1:] - value[:-1]
    if present is None and steps.min() >= 0:
        return _deviation(steps / (clock[1:] - clock[:-1]), None)
    waits = np.broadcast_to(clock[1:] - clock[:-1], steps.shape)
    good = (waits > 0) & (-steps <= _JITTER * value[:-1])
    rates = np.divide(np.maximum(steps, 0.0), waits, out=np.zeros(steps.shape), where=good)
    return _deviation(rates, None if good.all() else good)


def mean(seconds: Floats, samples: Floats, present: Present) -> Floats:  # noqa: ARG001  # one signature for all
    """Return the mean of the present samples."""
    if present is None:
        return _mean(samples)
    return _quotient(np.where(present, samples, 0.0).sum(axis=0), present.sum(axis=0))


def minimum(seconds: Floats, samples: Floats, present: Present) -> Floats:  # noqa: ARG001  # one signature for all
    """Return the lowest of the present samples."""
    lowest: Floats = np.fmin.reduce(samples, axis=0)  # leaves NaN out
    return lowest


def maximum(seconds: Floats, samples: Floats, present: Present) -> Floats:  # noqa: ARG001  # one signature for all
    """Return the highest of the present samples."""
    highest: Floats = np.fmax.reduce(samples, axis=0)  # leaves NaN out
    return highest


def last(seconds: Floats, samples: Floats, present: Present) -> Floats:
    """Return the newest present sample."""
    newest: Floats = _carried(seconds, samples, present)[0][-1]
    return newest


def deviation(seconds: Floats, samples: Floats, present: Present) -> Floats:  # noqa: ARG001  # one signature for all
    """Return the standard deviation (population) of the present samples; absent with fewer than two."""
    return _deviation(samples, present)


def slope(seconds: Floats, samples: Floats, present: Present) -> Floats:
    """Return the slope of the least-squares line through the present samples, per second; absent below two."""
    if present is None:
        if len(seconds) < 2:
            return np.full(samples.shape[1], np.nan)
        lever = seconds - seconds.mean()
        leaning: Floats = lever @ (samples - samples[0]) / (lever @ lever)
        return leaning
    count = present.sum(axis=0)
    times = np.where(present, seconds[:, None], 0.0)
    moment = np.where(present, times - _quotient(times.sum(axis=0), count), 0.0)
    centred = np.where(present, samples - mean(seconds, samples, present), 0.0)
    return _quotient((moment * centred).sum(axis=0), (moment * moment).sum(axis=0))


STATISTICS: dict[Stat, Callable[[Floats, Floats, Present], Floats]] = {
    Stat.RATE: rate,
    Stat.UNEVENNESS: unevenness,
    Stat.MEAN: mean,
    Stat.MIN: minimum,
    Stat.MAX: maximum,
    Stat.LAST: last,
    Stat.STD: deviation,
    Stat.SLOPE: slope,
}


def _mean(samples: Floats) -> Floats:
    total: Floats = np.add.reduce(samples, axis=0)
    return total / len(samples)


def _deviation(samples: Floats, present: Present) -> Floats:
    if present is None:
        if len(samples) < 2:
            return np.full(samples.shape[1], np.nan)
        shifted = samples - samples[0]  # so that the deviation of a constant is nothing, whatever its size
        centred = shifted - _mean(shifted)
        return np.sqrt(_mean(centred * centred))
    count = present.sum(axis=0)
    shifted = np.where(present, samples - np.fmin.reduce(samples, axis=0), 0.0)
    centred = np.where(present, shifted - _quotient(shifted.sum(axis=0), count), 0.0)
    return np.sqrt(_quotient((centred * centred).sum(axis=0), np.where(count < 2, 0, count)))


def _quotient(above: Floats, below: NDArray[np.float64 | np.int64]) -> Floats:
    """Return above / below, NaN where below is not positive."""
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > 0)
    return quotient


def _carried(seconds: Floats, samples: Floats, present: Present) -> tuple[Floats, Floats]:
    """Return samples and their times with each absent sample replaced by the one present before it.

    Before the first present sample stands that one; so first and last row hold the first and last present sample, and
    replaced samples are steps of no height and no time. A channel without any stays NaN.
    """
    if present is None:
        return samples, seconds[:, None]
    rows = np.arange(len(samples))[:, None]
    newest = np.maximum.accumulate(np.where(present, rows, 0), axis=0)
    source = np.maximum(newest, present.argmax(axis=0))
    return np.take_along_axis(samples, source, axis=0), seconds[source]
