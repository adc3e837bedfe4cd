"""Compare detectors on labelled recordings: what each combination finds, how soon, and how often it is wrong. Pure.

A window counts for an interval that it lies in entirely. In the time of a fault an anomalous window is right, in
healthy time it is a false one; a verdict that is unknown (warming up) is neither right nor false, but a faulty window
that it leaves out is missed. A run of anomalous windows that reaches into healthy time is one *false alarm*; it ends
with the next window that is not anomalous. How many a day is told over the healthy time that was judged: whoever is
still warming up cannot be wrong.

A *false episode* is one of a fingerprint that fired in healthy time and began there. One that began before, in the time
of a fault or in what follows it without a label, and fired when all was well again, outlasts a fault and is told apart.
Fingerprints need no warming up: their healthy time is all that windows cover.

Windows overlap and those of one recording resemble each other, so they are no independent trials: the interval of F1
is that of a bootstrap over whole recordings (Efron, "Bootstrap Methods", Ann. Statist. 1979), with a fixed seed.
The four figures beside it are those of the paper's Table 2 for any fingerprint, as ``knowledge.backtest`` defines them.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from unveil.knowledge.backtest import ANY, DAY_S, report
from unveil.knowledge.labels import HEALTHY
from unveil.knowledge.poisson import poisson_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from unveil.knowledge.backtest import SeenWindow, Trace

RESAMPLES = 1000
NO_FAULT, BEFORE, AFTER, AFTER_INERT = PLACES = (
    "no fault in the recording", "before its fault", "after its fault", "after one that cost nothing",
)  # fmt: skip
"""Where healthy windows are: an alarm that outlasts what was done to the host is another matter than one out of
nothing. What was done and cost nothing has no label, so it is a gap between healthy stretches."""


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
class FalseAlarms:
    """How often a healthy host was called anomalous.

    Attributes:
        watched_s: healthy time that was judged, in seconds.
        by_place: one of PLACES → the false alarms that begin to be false there.
    """

    watched_s: float
    by_place: dict[str, int]

    @property
    def count(self) -> int:
        """Return all of them."""
        return sum(self.by_place.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseEpisodes:
    """How often a fingerprint fired on a healthy host.

    Attributes:
        watched_s: healthy time that windows cover, in seconds.
        by_fingerprint: fingerprint → episodes that began and fired in healthy time; those that had none are left out.
        outlasting: fingerprint → those that fired in healthy time and began before it, in a fault or while it settled.
        a_day, most: the former a day, and how many there are at most, with 95 % confidence; None without healthy time.
    """

    watched_s: float
    by_fingerprint: dict[str, int]
    outlasting: dict[str, int]
    a_day: float | None
    most: float | None

    @property
    def count(self) -> int:
        """Return all that began in healthy time."""
        return sum(self.by_fingerprint.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionScore:
    """How one combination did over all recordings; None where there is nothing to take a figure from.

    Attributes:
        rule: the combination.
        allowed: false alarms a day that its thresholds were set for.
        view: from where the recordings were looked at; empty for the host itself.
        f1_low, f1_high: 95 % interval of ``counts.f1``, by bootstrap over recordings; None for fewer than three.
        false_alarms: runs of anomalous windows that reach into healthy time, over how much of it.
        false_a_day, false_low, false_high: the same per healthy day, with the 95 % interval.
        false_most: how many a day there are at most, with 95 % confidence: of none in T days, 3/T.
        false_episodes: of fingerprints that fired in healthy time.
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
    false_alarms: FalseAlarms
    false_a_day: float | None
    false_low: float | None
    false_high: float | None
    false_most: float | None
    false_episodes: FalseEpisodes
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
    firsts = [first for trace in traces for _, first in _firsts(trace)]
    told = [first for first in firsts if first is not None]
    figures = next(each for each in report(traces, fingerprints).scores if each.fingerprint == ANY)
    alarms = false_alarms(traces)
    few, many = poisson_interval(alarms.count)
    return DetectionScore(
        rule=rule,
        allowed=allowed,
        counts=sum(each, Counts()),
        f1_low=low,
        f1_high=high,
        false_alarms=alarms,
        false_a_day=a_day(alarms.count, alarms.watched_s),
        false_low=a_day(few, alarms.watched_s),
        false_high=a_day(many, alarms.watched_s),
        false_most=a_day(most(alarms.count), alarms.watched_s),
        false_episodes=false_episodes(traces, fingerprints),
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
        for window in _inside(trace, faulty=False):
            if window.judged:
                told[_place(trace, window)] += Counts(false=int(window.anomalous), quiet=int(not window.anomalous))
    return told


def _place(trace: Trace, window: SeenWindow) -> str:
    begins = [interval.from_s for interval in trace.intervals if interval.labels]
    if begins:
        return BEFORE if window.end_s <= min(begins) else AFTER
    in_order = pairwise(sorted((interval.from_s, interval.to_s) for interval in trace.intervals))
    ends_of_gaps = [begins_s for (_, ended_s), (begins_s, _) in in_order if ended_s < begins_s]
    return AFTER_INERT if any(each <= window.start_s for each in ends_of_gaps) else NO_FAULT


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


def false_alarms(traces: Sequence[Trace]) -> FalseAlarms:
    """Return the runs of anomalous windows that reach into healthy time; one lasts until a window is not anomalous."""
    watched_s, by_place = 0.0, dict.fromkeys(PLACES, 0)
    for trace in traces:
        counted = False
        for window, healthy_s in _healthy_time(trace):
            counted = counted and window.anomalous
            if healthy_s is not None and window.judged:
                watched_s += healthy_s
                if window.anomalous and not counted:
                    by_place[_place(trace, window)] += 1
                    counted = True
    return FalseAlarms(watched_s=watched_s, by_place=by_place)


def false_episodes(traces: Sequence[Trace], fingerprints: Iterable[str]) -> FalseEpisodes:
    """Return the episodes that fired in healthy time.

    Args:
        fingerprints: those that count.
    """
    known, false, outlasting = frozenset(fingerprints), Counter[str](), Counter[str]()
    for trace in traces:
        starts = {window.end_s: window.start_s for window in trace.windows}
        for fire in trace.fires:
            fired_in = next((each for each in trace.intervals if each.from_s <= fire.fired_s <= each.to_s), None)
            if fire.fingerprint in known and fired_in is not None and not fired_in.labels:
                within = fired_in.from_s <= starts.get(fire.started_s, fire.started_s)
                (false if within else outlasting)[fire.fingerprint] += 1
    watched_s = sum(healthy_s or 0.0 for trace in traces for _, healthy_s in _healthy_time(trace))
    return FalseEpisodes(
        watched_s=watched_s,
        by_fingerprint=dict(sorted(false.items())),
        outlasting=dict(sorted(outlasting.items())),
        a_day=a_day(false.total(), watched_s),
        most=a_day(most(false.total()), watched_s),
    )


def a_day(count: float, watched_s: float) -> float | None:
    """Return how many a day so many in some time are; None without time."""
    return count * DAY_S / watched_s if watched_s else None


def most(count: int) -> float:
    """Return how many there are at most, with 95 % confidence, where so many were counted; of none, three."""
    return poisson_interval(count, confidence=0.9)[1]


def _healthy_time(trace: Trace) -> Iterator[tuple[SeenWindow, float | None]]:
    """Yield each window with the seconds of healthy time that it adds to those before; None where it is not in any."""
    healthy = set(map(id, _inside(trace, faulty=False)))
    before_s = None
    for window in trace.windows:
        length_s = window.end_s - window.start_s  # a window tells of the time since the one before
        new_s = length_s if before_s is None else min(window.end_s - before_s, length_s)
        yield window, new_s if id(window) in healthy else None
        before_s = window.end_s


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
