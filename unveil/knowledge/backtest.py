"""Score what a watch over labelled recordings said. Pure: traces in, figures out.

The four figures are those of the paper's Table 2. With D the windows that the detectors call anomalous and S those
that the fingerprint matches, both in the time labelled with its fault:

============ ====================================================================================================
hit rate     |D and S| / |D|: how much of what was detected is explained
coverage     |D and S| / |S|: how much of what was recognised was detected, too
agreement    Dice's coefficient 2 |D and S| / (|D| + |S|), the mean over recordings
contaminated |D and S| / |D| in healthy time: how much of the false alarms is taken for this fault
============ ====================================================================================================

A window counts for an interval that it lies in entirely, so that none is half of one and half of the other. A fire
belongs to the fault in whose time the episode's first window began or ended; the time that no label covers is not
judged. False fires are those in healthy time, per host and day, with the interval of a Poisson count.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import fmean, median
from typing import TYPE_CHECKING

from unveil.knowledge.labels import HEALTHY
from unveil.knowledge.poisson import poisson_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from unveil.knowledge.labels import Expectation, Interval

DAY_S = 86400.0
ANY = "any fingerprint"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWindow:
    """One window: seconds after the recording began, the verdict, and the fingerprints that matched.

    Attributes:
        judged: False while the verdict is unknown, e.g. warming up.
    """

    start_s: float
    end_s: float
    anomalous: bool
    matched: frozenset[str]
    judged: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """An episode that fired: when its first window ended, and when it fired."""

    fingerprint: str
    entity: str
    started_s: float
    fired_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What would have been done about a fire, had the host been watched.

    Attributes:
        remediation: empty when there is none.
        outcome: ``runs`` (by itself), ``asks`` (a person to approve it), ``person`` (only a person may plan it),
            ``observed`` (the profile allows nothing), ``refused`` or ``none``.
        changes: settings that would change, before and after.
    """

    at_s: float
    fingerprint: str
    entity: str
    remediation: str
    outcome: str
    reason: str = ""
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A recording as it was watched, with what is known of it."""

    recording: str
    seconds: float
    windows: tuple[SeenWindow, ...]
    fires: tuple[Fire, ...]
    actions: tuple[Action, ...]
    intervals: tuple[Interval, ...]
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The figures of one fingerprint, None where there is nothing to take them from.

    Attributes:
        intervals, found: labelled with its fault; those in which it fired.
        first_s: seconds from the start of each found interval to its first fire.
        fires, other_fires, false_fires: in its own time, in that of other faults, in healthy time.
        false_per_day, false_low, false_high: false fires per host-day with the 95 % interval.
    """

    fingerprint: str
    intervals: int
    found: int
    first_s: tuple[float, ...]
    fires: int
    other_fires: int
    false_fires: int
    hit_rate: float | None
    coverage: float | None
    agreement: float | None
    contamination: float | None
    false_per_day: float | None
    false_low: float | None
    false_high: float | None

    @property
    def first_median_s(self) -> float | None:
        """Return the median time to the first fire."""
        return median(self.first_s) if self.first_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestReport:
    """All figures.

    Attributes:
        healthy_s: labelled healthy, over all recordings.
        scores: by fingerprint; the last is that of any fingerprint together.
        confusion: label → fingerprint → fires in its time; ``healthy`` is a label, too.
        missed: what was labelled and did not fire.
        unexpected: fires in time that is labelled otherwise.
    """

    recordings: tuple[str, ...]
    healthy_s: float
    scores: tuple[Score, ...]
    confusion: Mapping[str, Mapping[str, int]]
    actions: Mapping[str, tuple[Action, ...]]
    missed: tuple[str, ...]
    unexpected: tuple[str, ...]


def report(traces: Sequence[Trace], fingerprints: Sequence[str]) -> BacktestReport:
    """Return the figures of all fingerprints over all recordings."""
    confusion: dict[str, Counter[str]] = {}
    unexpected = []
    for trace in traces:
        for fire in trace.fires:
            labels = labels_of(trace, fire)
            for label in labels or ():
                confusion.setdefault(label, Counter())[fire.fingerprint] += 1
            if labels and fire.fingerprint not in labels:
                during = "healthy time" if labels == {HEALTHY} else f"the time of {', '.join(sorted(labels))}"
                where = f"{fire.fingerprint} on {fire.entity} at {fire.fired_s:.0f} s"
                unexpected.append(f"{trace.recording}: {where}, in {during}")
    missed = [
        f"{trace.recording}: {name} from {interval.from_s:g} s"
        for trace in traces
        for interval in trace.intervals
        for name in sorted(interval.labels)
        if name in fingerprints and not _first(trace, interval, name)
    ]
    return BacktestReport(
        recordings=tuple(trace.recording for trace in traces),
        healthy_s=sum(_healthy_s(trace) for trace in traces),
        scores=(*(_score(traces, {name}, name) for name in fingerprints), _score(traces, set(fingerprints), ANY)),
        confusion={label: dict(sorted(fires.items())) for label, fires in sorted(confusion.items())},
        actions={trace.recording: trace.actions for trace in traces},
        missed=tuple(missed),
        unexpected=tuple(unexpected),
    )


def labels_of(trace: Trace, fire: Fire) -> frozenset[str]:
    """Return what was so when an episode began: the faults, else ``healthy``, else nothing (not labelled)."""
    start_s = next((each.start_s for each in trace.windows if each.end_s == fire.started_s), fire.started_s)
    touched = [each for each in trace.intervals if each.from_s < fire.started_s and start_s < each.to_s]
    faults = frozenset(label for each in touched for label in each.labels)
    inside = any(each.from_s <= start_s and fire.started_s <= each.to_s for each in touched if not each.labels)
    return faults or (frozenset({HEALTHY}) if inside else frozenset())


def unmet(expectations: Iterable[Expectation], traces: Sequence[Trace]) -> Iterator[str]:
    """Yield each expectation that does not hold, in words."""
    for wanted in expectations:
        chosen = [each for each in traces if not wanted.recording or fnmatchcase(each.recording, wanted.recording)]
        where = f"{wanted.fingerprint}{f' in {wanted.recording}' if wanted.recording else ''}"
        if not chosen:
            yield f"{where}: no such recording"
            continue
        fires = sum(1 for trace in chosen for fire in trace.fires if fire.fingerprint == wanted.fingerprint)
        if wanted.at_least is not None and fires < wanted.at_least:
            yield f"{where}: {fires} fires, at least {wanted.at_least} expected"
        if wanted.at_most is not None and fires > wanted.at_most:
            yield f"{where}: {fires} fires, at most {wanted.at_most} expected"
        if wanted.first_within_s is not None:
            yield from _late(wanted, chosen, where)


def _late(wanted: Expectation, traces: Sequence[Trace], where: str) -> Iterator[str]:
    limit_s = wanted.first_within_s
    assert limit_s is not None
    labelled = [(t, each) for t in traces for each in t.intervals if wanted.fingerprint in each.labels]
    if not labelled:
        yield f"{where}: no interval has its label, so nothing is within {limit_s:g} s"
    for trace, interval in labelled:
        found = _first(trace, interval, wanted.fingerprint)
        place = f"{where}: {trace.recording} from {interval.from_s:g} s"
        if found is None:
            yield f"{place}: it never fired, within {limit_s:g} s expected"
        elif found.fired_s - interval.from_s > limit_s:
            yield f"{place}: fired after {found.fired_s - interval.from_s:.1f} s, within {limit_s:g} s expected"


def _first(trace: Trace, interval: Interval, name: str | None) -> Fire | None:
    """Return the first fire of a fingerprint (of any when None) whose episode began in an interval."""
    starts = {each.end_s: each.start_s for each in trace.windows}
    for fire in trace.fires:
        start_s = starts.get(fire.started_s, fire.started_s)
        if name in (None, fire.fingerprint) and interval.from_s < fire.started_s and start_s < interval.to_s:
            return fire
    return None


def _healthy_s(trace: Trace) -> float:
    return sum(min(each.to_s, trace.seconds) - each.from_s for each in trace.intervals if not each.labels)


def _score(traces: Sequence[Trace], names: set[str], title: str) -> Score:
    own = [(trace, each) for trace in traces for each in trace.intervals if _own(each.labels, names, title)]
    firsts = [
        fire.fired_s - interval.from_s
        for trace, interval in own
        if (fire := _first(trace, interval, None if title == ANY else title))
    ]
    fires = [labels_of(trace, fire) for trace in traces for fire in trace.fires if fire.fingerprint in names]
    false = sum(labels == {HEALTHY} for labels in fires)
    true = sum(bool(_own(labels, names, title)) for labels in fires)
    overlaps = [
        _overlap(trace, names, [each for each in trace.intervals if _own(each.labels, names, title)])
        for trace in traces
        if any(t is trace for t, _ in own)
    ]
    detected, matched, both = (sum(column) for column in zip(*overlaps, strict=True)) if overlaps else (0, 0, 0)
    healthy = [_overlap(trace, names, [each for each in trace.intervals if not each.labels]) for trace in traces]
    alarms, taken = sum(each[0] for each in healthy), sum(each[2] for each in healthy)
    days = sum(_healthy_s(trace) for trace in traces) / DAY_S
    low, high = poisson_interval(false)
    return Score(
        fingerprint=title,
        intervals=len(own),
        found=len(firsts),
        first_s=tuple(firsts),
        fires=true,
        other_fires=sum(bool(labels - names - {HEALTHY}) and not _own(labels, names, title) for labels in fires),
        false_fires=false,
        hit_rate=both / detected if detected else None,
        coverage=both / matched if matched else None,
        agreement=_agreement(overlaps),
        contamination=taken / alarms if alarms else None,
        false_per_day=false / days if days else None,
        false_low=low / days if days else None,
        false_high=high / days if days else None,
    )


def _agreement(overlaps: Sequence[tuple[int, int, int]]) -> float | None:
    told = [2 * both / (detected + matched) for detected, matched, both in overlaps if detected + matched]
    return fmean(told) if told else None


def _own(labels: frozenset[str], names: set[str], title: str) -> frozenset[str]:
    """Return the faults that a fingerprint is for. All together are for every fault, also for one that none answers."""
    return labels - {HEALTHY} if title == ANY else labels & names


def _overlap(trace: Trace, names: set[str], chosen: Sequence[Interval]) -> tuple[int, int, int]:
    """Return how many windows of some intervals are detected, matched, and both."""
    detected = matched = both = 0
    for window in trace.windows:
        if any(each.from_s <= window.start_s and window.end_s <= each.to_s for each in chosen):
            matches = bool(window.matched & names)
            detected += window.anomalous
            matched += matches
            both += window.anomalous and matches
    return detected, matched, both
