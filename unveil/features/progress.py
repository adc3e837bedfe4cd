"""Progress: at which rhythm the work on this host advances, as far as its counters tell.

What a job repeats it repeats in everything that it uses. What the NICs send tells best: it is read ten times a second
and silent between two exchanges. Where they have no rhythm, the energy that the GPUs take may have one, and where they
are quiet as well, the softirqs of devices and what the disks read; these are asked last, as their strongest line may
be that of an epoch or of a checkpoint.

What is read once a second cannot tell a step of a second from one of 0.8 s that happens to be caught at other places
each time. So from there only rhythms of four seconds and more are told, and only where the counter swings by more than
what a faster one leaves of itself in sums over a second: the sinc of its frequency, at most 0.3, of at most twice the
mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unveil.features.families import single
from unveil.features.feature import Channels, Formula, Stat, Trouble, feature
from unveil.features.rhythm import RhythmTracker, Sight
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.records.window import Window

SENT = "network.tx_bytes"
TICK_S = 0.1
RATE, STEP, CONFIDENCE = "cpu.progress_rate", "cpu.progress_step", "cpu.progress_confidence"
_LAYOUT = Layout((Channel(RATE), Channel(STEP), Channel(CONFIDENCE)))
_GAP_S = 2.0  # a longer hole parts two rhythms; a shorter one blurs them, as how much happened meanwhile is known
_GAP = 3  # samples: never less
_LAYOUTS = 8  # of a tier's sources, that are remembered
_SILENT = 8  # windows without a sample, after which what was told is old: the source stopped or is read less often
_OF_DEVICES = frozenset(("NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET"))  # the others follow the clock

WORK_MOVED = feature(
    "cpu.work_moved.rate",
    "bytes sent by all NICs, those of guests and containers as well: how much gets done, where work is divided",
    Formula(numerator=(Channels(metric=SENT, stat=Stat.RATE, over=("nic",), every=True),)),
    unit="bytes/s",
    trouble=Trouble.DOWN,
)
"""Seen by the detectors: less of it is slower work, unless less was wanted; see ``unveil.detection.demand``."""

PROGRESS = tuple(
    feature(f"{metric}.last", meaning, single(metric, Stat.LAST), unit=unit, trouble=trouble, detect=False)
    for metric, meaning, unit, trouble in (
        (RATE, "steps that the work of this host makes, absent while none is sure", "1/s", Trouble.DOWN),
        (STEP, "time that a step of the work of this host takes, absent while none is sure", "s", Trouble.UP),
        (CONFIDENCE, "how well the last three looks at the step time agree", "share", Trouble.DOWN),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A counter that may tell the rhythm.

    Attributes:
        told: what it is, for a person: "by …".
        floor: of its sum, per second; below, whatever repeats in it is a heartbeat and not the work.
        fallback: asked only while the NICs are quiet.
    """

    metric: str
    told: str
    tier: Tier
    sight: Sight
    floor: float
    fallback: bool = False

    def means(self, channel: Channel) -> bool:
        """Return whether a channel is part of the sum. NICs that come and go shift the level, no more."""
        if channel.metric != self.metric or channel.label("nic") == "lo":
            return False
        return len(channel.labels) == 1 and (channel.label("vector") or "NET_RX") in _OF_DEVICES


_TICKS = Sight(interval_s=TICK_S)
_SECONDS = Sight(interval_s=1.0, stretch=300, least=120, every=15, fastest=4.0, swing=0.6)
SIGNALS = (
    Signal(metric=SENT, told="what the NICs send", tier=Tier.FAST, sight=_TICKS, floor=1e5),
    Signal(metric="gpu.energy", told="the energy that the GPUs take", tier=Tier.MEDIUM, sight=_SECONDS, floor=20.0),
    Signal(
        metric="cpu.softirqs", told="the softirqs of devices", tier=Tier.FAST, sight=_TICKS, floor=200.0, fallback=True
    ),
    Signal(
        metric="storage.read_bytes", told="what the disks read", tier=Tier.MEDIUM, sight=_SECONDS, floor=1e6,
        fallback=True,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The step of the work on a host.

    Attributes:
        period_s: time from one to the next, seconds.
        strength: of its line over its surroundings.
        confidence: agreement of the last looks, 0 to 1.
        source: what tells it.
    """

    period_s: float
    strength: float
    confidence: float
    source: str


class Progress:
    """Takes the windows of one host, in order, and follows the rhythm of its work."""

    def __init__(self) -> None:
        self._followers = tuple(_Follower(signal) for signal in SIGNALS)

    @property
    def rhythm(self) -> Step | None:
        """Return the rhythm now; None when there is none, or it is not sure, or nothing is done."""
        return next((step for each in self._asked() if (step := each.step) is not None), None)

    @property
    def reason(self) -> str:
        """Return why there is no rhythm; empty when there is one."""
        if self.rhythm is not None:
            return ""
        told = [f"{each.signal.told}: {each.reason}" for each in self._asked() if each.reason]
        return "; ".join(told) or "nothing is measured that could tell"

    def push(self, window: Window) -> SampleBlock:
        """Take what is new in a window; return what is known now as a sample at its end, NaN while nothing is."""
        for each in self._asked():
            each.push(window)
        step = self.rhythm
        known = (np.nan,) * 3 if step is None else (1.0 / step.period_s, step.period_s, step.confidence)
        return SampleBlock(
            tier=Tier.SLOW, layout=_LAYOUT, times_ns=np.array([window.end_ns]), values=np.array([known])
        )  # fmt: skip

    def _asked(self) -> tuple[_Follower, ...]:
        quiet = self._followers[0].quiet
        return tuple(each for each in self._followers if quiet or not each.signal.fallback)


class _Follower:
    """Follows one signal."""

    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        self._tracker = RhythmTracker(signal.sight, floor=signal.floor)
        self._columns: dict[Layout, NDArray[np.intp]] = {}
        self._until_ns = 0
        self._placed: tuple[float, float] | None = None  # end of the last interval, and what happened since
        self._newest_s: float | None = None  # sample that was taken last
        self._silent = 0
        self._seen = False

    @property
    def quiet(self) -> bool:
        return self._tracker.level < self.signal.floor

    @property
    def step(self) -> Step | None:
        found, agreement = self._tracker.rhythm, self._tracker.agreement
        if found is None or agreement is None or self.quiet:
            return None
        return Step(
            period_s=found.period_s, strength=found.strength, confidence=agreement, source=self.signal.told
        )  # fmt: skip

    @property
    def reason(self) -> str:
        """Return why it tells no step; empty where this host does not have it."""
        if not self._seen:
            return ""
        if not self._tracker.enough:
            return "too little was seen yet"
        return "next to nothing happens" if self.quiet else "nothing repeats for long enough"

    def push(self, window: Window) -> None:
        found = False
        for block in window.blocks:
            if block.tier is self.signal.tier and len(columns := self._columns_of(block.layout)):
                found = self._take(block, columns) or found
        self._until_ns = window.end_ns
        self._silent = 0 if found else self._silent + 1
        if self._silent == _SILENT:
            self._tracker.push(np.array([np.nan]))

    def _take(self, block: SampleBlock, columns: NDArray[np.intp]) -> bool:
        """Take a block's samples since the last window; return whether there are any."""
        begin = max(int(block.times_ns.searchsorted(self._until_ns, side="right")) - 1, 0)
        times: NDArray[np.float64] = block.times_ns[begin:].astype(np.float64) * 1e-9
        if len(times) < 2:
            return False
        parted, self._newest_s = self._newest_s not in (None, times[0]), float(times[-1])
        counted = block.values[begin:, columns]
        steps = counted[1:] - counted[:-1]
        amounts = steps.sum(axis=1)
        if not np.isfinite(amounts).all():
            amounts = np.where(np.isfinite(steps), steps, 0.0).sum(axis=1)
        # A counter that went back has begun anew: what it did meanwhile is not known.
        if (
            parted
            or (times[1:] - times[:-1]).max() > max(_GAP_S, _GAP * self.signal.sight.interval_s)
            or amounts.min() < 0
        ):
            self._tracker.push(np.array([np.nan]))
            self._placed = None
        else:
            self._tracker.push(self._evenly(times, amounts))
        return True

    def _evenly(self, times: NDArray[np.float64], amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what happened in even intervals, since samples come late, or not at all.

        Args:
            times: shape (n + 1,), of the last sample before and of all new ones, seconds.
            amounts: shape (n,), what happened in between.
        """
        interval_s = self.signal.sight.interval_s
        until_s, left = self._placed or (float(times[0]), 0.0)
        known = np.concatenate(([until_s], times))
        counted = np.concatenate(([0.0, left], left + np.cumsum(amounts)))
        places = until_s + interval_s * np.arange(1, 1 + int((times[-1] - until_s) / interval_s + 1e-6))
        even: NDArray[np.float64] = np.interp(places, known, counted)
        if not len(places):
            self._placed = until_s, float(counted[-1])
            return even
        self._placed = float(places[-1]), float(counted[-1] - even[-1])
        even[1:] -= even[:-1].copy()
        return even

    def _columns_of(self, layout: Layout) -> NDArray[np.intp]:
        columns = self._columns.get(layout)
        if columns is None:
            found = [column for column, channel in enumerate(layout.channels) if self.signal.means(channel)]
            if len(self._columns) == _LAYOUTS:
                self._columns.clear()
            columns = self._columns[layout] = np.array(found, np.intp)
            self._seen = self._seen or bool(found)
        return columns
