"""Compare detectors on labelled recordings: what each combination finds, how soon, and how often it is wrong. Pure.

A window counts for an interval that it lies in entirely. In the time of a fault an anomalous window is right, in
healthy time it is a false alarm; a verdict that is unknown (warming up) is neither right nor a false alarm, but a
faulty window that it leaves out is missed. A run of false alarms counts as one false episode.

Windows overlap and those of one recording resemble each other, so they are no independent trials: the interval of F1
is that of a bootstrap over whole recordings (Efron, "Bootstrap Methods", Ann. Statist. 1979), with a fixed seed.
The four figures beside it are those of the paper's Table 2 for any fingerprint, as ``knowledge.backtest`` defines them.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from unveil.knowledge.backtest import ANY, DAY_S, report
from unveil.knowledge.labels import HEALTHY
from unveil.knowledge.poisson import poisson_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unveil.knowledge.backtest import SeenWindow, Trace

RESAMPLES = 1000
NO_FAULT, BEFORE, AFTER = PLACES = ("no fault in the recording", "before its fault", "after its fault")
"""Where healthy windows are: an alarm that outlasts its fault is another matter than one out of nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Windows of one recording (or several), by what was so and what was said.

    Attributes:
        found, missed: faulty windows that were called anomalous, and that were not.
        false, quiet: healthy windows that were called anomalous, and that were not.
    """

    found: int = 0
    missed: int = 0
    false: int = 0
    quiet: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Return both together."""
        return Counts(
            found=self.found + other.found,
            missed=self.missed + other.missed,
            false=self.false + other.false,
            quiet=self.quiet + other.quiet,
        )

    @property
    def precision(self) -> float | None:
        """Return the share of alarms that were right; None without an alarm."""
        return self.found / (self.found + self.false) if self.found + self.false else None

    @property
    def recall(self) -> float | None:
        """Return the share of faulty windows that were found; None without a fault."""
        return self.found / (self.found + self.missed) if self.found + self.missed else None

    @property
    def f1(self) -> float | None:
        """Return the harmonic mean of precision and recall; None without a fault."""
        if not self.found + self.missed:
            return None
        return 2 * self.found / (2 * self.found + self.missed + self.false)

    @property
    def false_share(self) -> float | None:
        """Return the share of healthy windows that alarmed; None without healthy time."""
        return self.false / (self.false + self.quiet) if self.false + self.quiet else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The windows of one fault, over all recordings, or those of healthy time.

    Attributes:
        windows: all of them.
        detected, matched, both: anomalous, matched by any fingerprint, and both at once.
        by_fingerprint: fingerprint → windows that it matched.
    """

    windows: int
    detected: int
    matched: int
    both: int
    by_fingerprint: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionScore:
    """How one combination did over all recordings; None where there is nothing to take a figure from.

    Attributes:
        rule: the combination.
        allowed: false alarms a day that its thresholds were set for.
        view: from where the recordings were looked at; empty for the host itself.
        f1_low, f1_high: 95 % interval of ``counts.f1``, by bootstrap over recordings; None for fewer than three.
        false_a_day, false_low, false_high: runs of false alarms per healthy day, with the 95 % interval.
        first_s: median seconds from the start of a fault to the end of its first anomalous window.
        seen, faults: faulty intervals with an anomalous window, and all of them.
        by_label: fault → its counts.
        first_by_label: fault → median seconds to its first anomalous window; None where there was none.
        by_recording: recording → its counts: the lead-in of a fault and a busy neighbour are not lost in the sum.
        false_by_place: one of PLACES → the healthy windows there.
        hit_rate, coverage, agreement, contamination: Table 2 of the paper.
        matched: fault → what was matched in its time; ``healthy`` is one, too.
    """

    rule: str
    allowed: float
    counts: Counts
    f1_low: float | None
    f1_high: float | None
    false_a_day: float | None
    false_low: float | None
    false_high: float | None
    first_s: float | None
    seen: int
    faults: int
    by_label: dict[str, Counts]
    first_by_label: dict[str, float | None]
    by_recording: dict[str, Counts]
    false_by_place: dict[str, Counts]
    hit_rate: float | None
    coverage: float | None
    agreement: float | None
    contamination: float | None
    matched: dict[str, Matched]
    view: str = ""

    @property
    def label(self) -> str:
        """Return what tells it from the others: the combination, and the view."""
        return f"{self.rule}, {self.view}" if self.view else self.rule


def score(
    rule: str, allowed: float, traces: Sequence[Trace], fingerprints: Sequence[str], *, view: str = ""
) -> DetectionScore:
    """Return how a combination did.

    Args:
        traces: the recordings as watched with it.
        fingerprints: names of those that were held against them.
        view: from where they were looked at; empty for the host itself.
    """
    each = [_counts(trace) for trace in traces]
    low, high = _bootstrap(each)
    healthy_days = sum(_seconds(trace, faulty=False) for trace in traces) / DAY_S
    episodes = sum(_false_episodes(trace) for trace in traces)
    few, many = poisson_interval(episodes)
    firsts = [first for trace in traces for _, first in _firsts(trace)]
    told = [first for first in firsts if first is not None]
    figures = next(each for each in report(traces, fingerprints).scores if each.fingerprint == ANY)
    return DetectionScore(
        rule=rule,
        allowed=allowed,
        counts=sum(each, Counts()),
        f1_low=low,
        f1_high=high,
        false_a_day=episodes / healthy_days if healthy_days else None,
        false_low=few / healthy_days if healthy_days else None,
        false_high=many / healthy_days if healthy_days else None,
        first_s=median(told) if told else None,
        seen=len(told),
        faults=len(firsts),
        by_label=_by_label(traces),
        first_by_label=_first_by_label(traces),
        by_recording={trace.recording: counts for trace, counts in zip(traces, each, strict=True)},
        false_by_place=_false_by_place(traces),
        hit_rate=figures.hit_rate,
        coverage=figures.coverage,
        agreement=figures.agreement,
        contamination=figures.contamination,
        matched=_matched(traces, frozenset(fingerprints)),
        view=view,
    )


def _inside(trace: Trace, *, faulty: bool) -> Iterator[SeenWindow]:
    """Yield the windows that lie entirely in a faulty interval, or in a healthy one."""
    chosen = [each for each in trace.intervals if bool(each.labels) is faulty]
    for window in trace.windows:
        if any(each.from_s <= window.start_s and window.end_s <= each.to_s for each in chosen):
            yield window


def _counts(trace: Trace) -> Counts:
    faulty = [window.anomalous for window in _inside(trace, faulty=True)]
    healthy = [window.anomalous for window in _inside(trace, faulty=False) if window.judged]
    return Counts(
        found=sum(faulty), missed=len(faulty) - sum(faulty), false=sum(healthy), quiet=len(healthy) - sum(healthy)
    )


def _false_by_place(traces: Sequence[Trace]) -> dict[str, Counts]:
    told = dict.fromkeys(PLACES, Counts())
    for trace in traces:
        begins = [interval.from_s for interval in trace.intervals if interval.labels]
        for window in _inside(trace, faulty=False):
            if window.judged:
                place = NO_FAULT if not begins else BEFORE if window.end_s <= min(begins) else AFTER
                told[place] += Counts(false=int(window.anomalous), quiet=int(not window.anomalous))
    return told


def _by_label(traces: Sequence[Trace]) -> dict[str, Counts]:
    told: dict[str, Counts] = {}
    for trace in traces:
        for interval in trace.intervals:
            inside = [w.anomalous for w in trace.windows if interval.from_s <= w.start_s and w.end_s <= interval.to_s]
            for label in interval.labels:
                own = Counts(found=sum(inside), missed=len(inside) - sum(inside))
                told[label] = told.get(label, Counts()) + own
    return dict(sorted(told.items()))


def _matched(traces: Sequence[Trace], fingerprints: frozenset[str]) -> dict[str, Matched]:
    inside: dict[str, list[SeenWindow]] = {}
    for trace in traces:
        for interval in trace.intervals:
            own = [w for w in trace.windows if interval.from_s <= w.start_s and w.end_s <= interval.to_s]
            for label in interval.labels or (HEALTHY,):
                inside.setdefault(label, []).extend(own)
    return {
        label: Matched(
            windows=len(windows),
            detected=sum(w.anomalous for w in windows),
            matched=sum(bool(w.matched & fingerprints) for w in windows),
            both=sum(w.anomalous and bool(w.matched & fingerprints) for w in windows),
            by_fingerprint=dict(Counter(name for w in windows for name in sorted(w.matched & fingerprints))),
        )
        for label, windows in sorted(inside.items())
    }


def _bootstrap(each: Sequence[Counts]) -> tuple[float | None, float | None]:
    """Return the 95 % interval of F1 when recordings are drawn anew, with replacement."""
    if len(each) < 3:  # two recordings drawn anew are mostly the same two
        return None, None
    draw = random.Random(0)  # noqa: S311  # a resampling, reproducible
    values = sorted(
        value for _ in range(RESAMPLES) if (value := sum(draw.choices(each, k=len(each)), Counts()).f1) is not None
    )
    if not values:
        return None, None
    return values[int(0.025 * len(values))], values[min(int(0.975 * len(values)), len(values) - 1)]


def _seconds(trace: Trace, *, faulty: bool) -> float:
    return sum(
        max(0.0, min(each.to_s, trace.seconds) - each.from_s) for each in trace.intervals if bool(each.labels) is faulty
    )


def _false_episodes(trace: Trace) -> int:
    episodes, before = 0, False
    for window in _inside(trace, faulty=False):
        episodes += window.anomalous and not before
        before = window.anomalous
    return episodes


def _first_by_label(traces: Sequence[Trace]) -> dict[str, float | None]:
    told: dict[str, list[float]] = {}
    for trace in traces:
        for labels, first in _firsts(trace):
            for label in labels:
                told.setdefault(label, []).extend([] if first is None else [first])
    return {label: median(firsts) if firsts else None for label, firsts in sorted(told.items())}


def _firsts(trace: Trace) -> Iterator[tuple[frozenset[str], float | None]]:
    """Yield, for each faulty interval, when its first anomalous window ended; None where there was none."""
    for interval in trace.intervals:
        if interval.labels:
            ends = (w.end_s for w in trace.windows if w.anomalous and interval.from_s <= w.start_s < interval.to_s)
            first = next(ends, None)
            yield interval.labels, None if first is None else first - interval.from_s
