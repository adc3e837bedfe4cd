"""Compare detectors that were held against one past: F1 at equal false-alarm shares, who named the right part. Pure.

A detector's *strength* in a window is its evidence over its alarm level. For an OR it is the largest of its members',
for *k of n* the k-th largest, and a window counts with the lesser of its own strength and that of the window before, as
a verdict has to hold for two.

At an *equal false-alarm share* each combination alarms above the least strength that no larger a share of healthy
windows exceeds. That threshold is taken from the healthy windows of the very recordings that are scored, for all alike
and never from a faulty one: it ranks detectors, and promises nothing. What each makes of its own calibration, without
having seen these recordings, stands beside it. Intervals come from a bootstrap over whole recordings in which the
thresholds are found anew each time; that of a difference is over the same draws of both, so that it is paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from unveil.knowledge.evaluation import Counts
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from unveil.knowledge.labels import Interval

RESAMPLES = 500
NEVER = -1.0  # strength of a window that was not judged


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedWindow:
    """One window as all detectors saw it.

    Attributes:
        judged: False while the reference is warming up.
        strengths: detector → evidence over its alarm level; a detector that was not trained is not in it.
        severity: evidence of the default rule.
        matched: fingerprints that matched.
        shares: of the six subsystems in what the default rule says, in their order; empty when it says nothing.
    """

    start_s: float
    end_s: float
    judged: bool
    strengths: Mapping[str, float]
    severity: float = 0.0
    matched: frozenset[str] = frozenset()
    shares: tuple[float, ...] = ()

    def leading(self) -> str:
        """Return the subsystem with the largest share; nothing where there are none."""
        if not self.shares or max(self.shares) <= 0:
            return ""
        return list(Subsystem)[self.shares.index(max(self.shares))].value


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One recording as all detectors saw it.

    Attributes:
        workload: what ran, as its labels say; may be empty.
        right: label → the subsystem that it belongs to, where that is known.
        cost_us: detector → CPU microseconds for one window, contributions included.
    """

    recording: str
    workload: str
    seconds: float
    windows: tuple[ComparedWindow, ...]
    intervals: tuple[Interval, ...]
    right: Mapping[str, str]
    cost_us: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Detectors of which *needed* have to alarm."""

    name: str
    members: tuple[str, ...]
    needed: int = 1

    def strength(self, strengths: Mapping[str, float]) -> float:
        """Return the k-th largest of the members' strengths; *NEVER* where too few have any."""
        told = sorted((strengths[name] for name in self.members if name in strengths), reverse=True)
        return told[self.needed - 1] if len(told) >= self.needed else NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class AtShare:
    """How a combination does at one share of false alarms.

    Attributes:
        share: of healthy windows that may alarm.
        counts: over all recordings.
        f1_low, f1_high: 95 % interval of F1; None for fewer than three recordings.
        behind_low, behind_high: 95 % interval of *F1 of ours less F1 of this one*; None likewise, and for ours.
    """

    share: float
    counts: Counts
    f1_low: float | None = None
    f1_high: float | None = None
    behind_low: float | None = None
    behind_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one combination does.

    Attributes:
        calibrated: counts at its own alarm levels.
        at: by share, in the order asked.
        cost_us: CPU microseconds for one window, all its members; None where one was never asked.
        by_workload: workload → counts at the last but one share asked (or the only one).
    """

    combination: str
    calibrated: Counts
    at: tuple[AtShare, ...]
    cost_us: float | None
    by_workload: Mapping[str, Counts]


def standings(
    runs: Sequence[Compared], chosen: Sequence[Combination], shares: Sequence[float], *, ours: str
) -> tuple[Standing, ...]:
    """Return how combinations do, in their order.

    Args:
        shares: of healthy windows that may alarm.
        ours: name of the combination that the others are held against.
    """
    tables = {each.name: [_windows(run, each) for run in runs] for each in chosen}
    draws = _draws(len(runs))
    resampled = {
        (name, share): [_f1(_at(_pick(table, draw), share)) for draw in draws]
        for name, table in tables.items()
        for share in shares
    }
    found = []
    for each in chosen:
        table = tables[each.name]
        told = tuple(
            _at_share(table, share, resampled[each.name, share], None if each.name == ours else resampled[ours, share])
            for share in shares
        )
        main = shares[max(len(shares) - 2, 0)]
        level = _level(table, main)
        found.append(
            Standing(
                combination=each.name,
                calibrated=_counts(table, 1.0),
                at=told,
                cost_us=_cost(runs, each),
                by_workload={
                    workload: _counts(
                        [t for t, run in zip(table, runs, strict=True) if run.workload == workload], level
                    )
                    for workload in sorted({run.workload for run in runs})
                },
            )
        )
    return tuple(found)


def _cost(runs: Sequence[Compared], combination: Combination) -> float | None:
    each = [[run.cost_us[name] for run in runs if name in run.cost_us] for name in combination.members]
    return sum(float(np.median(told)) for told in each) if all(each) else None


Faulty = tuple["NDArray[np.float64]", "NDArray[np.float64]"]
"""Strengths of one recording's faulty windows, and of its healthy ones that were judged."""


def held(run: Compared, combination: Combination) -> list[float]:
    """Return a combination's strength in each window of a recording, as far as it held for two."""
    raw = [combination.strength(window.strengths) if window.judged else NEVER for window in run.windows]
    return [NEVER, *(min(before, now) for before, now in pairwise(raw))][: len(raw)]


def _windows(run: Compared, combination: Combination) -> Faulty:
    strengths = held(run, combination)
    faulty, healthy = [], []
    for window, strength in zip(run.windows, strengths, strict=True):
        labels = labels_around(run, window)
        if labels:
            faulty.append(strength)
        elif labels is not None and window.judged:
            healthy.append(strength)
    return np.array(faulty), np.array(healthy)


def labels_around(run: Compared, window: ComparedWindow) -> frozenset[str] | None:
    """Return the faults of the time that a window lies in entirely; empty when healthy, None when not labelled."""
    around = [each for each in run.intervals if each.from_s <= window.start_s and window.end_s <= each.to_s]
    return frozenset(label for each in around for label in each.labels) if around else None


def _level(table: Sequence[Faulty], share: float) -> float:
    """Return the least strength that no larger a share of healthy windows exceeds."""
    healthy = np.concatenate([each[1] for each in table]) if table else np.empty(0)
    if not len(healthy):
        return 1.0
    allowed = int(share * len(healthy))
    return float(np.partition(healthy, len(healthy) - 1 - allowed)[len(healthy) - 1 - allowed])


def _counts(table: Sequence[Faulty], level: float) -> Counts:
    level = max(level, NEVER)
    found = sum(int((faulty > level).sum()) for faulty, _ in table)
    false = sum(int((healthy > level).sum()) for _, healthy in table)
    return Counts(
        found=found,
        missed=sum(len(faulty) for faulty, _ in table) - found,
        false=false,
        quiet=sum(len(healthy) for _, healthy in table) - false,
    )


def _at(table: Sequence[Faulty], share: float) -> Counts:
    return _counts(table, _level(table, share))


def _f1(counts: Counts) -> float:
    return counts.f1 if counts.f1 is not None else float("nan")


def _draws(runs: int) -> list[NDArray[np.intp]]:
    if runs < 3:  # two recordings drawn anew are mostly the same two
        return []
    random = np.random.default_rng(0)
    return [random.integers(0, runs, runs) for _ in range(RESAMPLES)]


def _pick(table: Sequence[Faulty], draw: NDArray[np.intp]) -> list[Faulty]:
    return [table[index] for index in draw.tolist()]


def _at_share(table: Sequence[Faulty], share: float, resampled: list[float], ours: list[float] | None) -> AtShare:
    low, high = _interval(resampled)
    behind = (None, None) if ours is None else _interval([a - b for a, b in zip(ours, resampled, strict=True)])
    return AtShare(
        share=share, counts=_at(table, share), f1_low=low, f1_high=high, behind_low=behind[0], behind_high=behind[1]
    )


def _interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    told = np.array([value for value in values if not isnan(value)])
    if not len(told):
        return None, None
    return float(np.quantile(told, 0.025)), float(np.quantile(told, 0.975))


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Whose fault the default rule says it is, over the windows of one fault that it detected.

    Attributes:
        right: the subsystem that the fault belongs to; empty where nobody says so.
        windows: that were detected.
        first: subsystem → windows in which it had the largest share.
        shares: mean share of each subsystem, in their order.
    """

    label: str
    right: str
    windows: int
    first: Mapping[str, int]
    shares: tuple[float, ...]

    @property
    def right_share(self) -> float | None:
        """Return the share of detected windows that name the right subsystem first."""
        return self.first.get(self.right, 0) / self.windows if self.windows and self.right else None


HEALTHY_TIME = "(healthy time)"


def named(runs: Sequence[Compared], combination: Combination) -> tuple[Named, ...]:
    """Return for each fault what its detected windows were attributed to; last, the false alarms of healthy time."""
    windows: dict[str, list[ComparedWindow]] = {}
    right: dict[str, str] = {}
    for run in runs:
        right |= run.right
        for window, strength in zip(run.windows, held(run, combination), strict=True):
            labels = labels_around(run, window)
            if labels is not None:
                for label in labels or {HEALTHY_TIME}:
                    windows.setdefault(label, [])
                    if strength > 1.0 and window.shares:
                        windows[label].append(window)
    order = sorted(windows, key=lambda label: (label == HEALTHY_TIME, label))
    return tuple(_named(label, right.get(label, ""), windows[label]) for label in order)


def _named(label: str, right: str, windows: Sequence[ComparedWindow]) -> Named:
    first: dict[str, int] = {}
    for window in windows:
        first[window.leading()] = first.get(window.leading(), 0) + 1
    means = np.mean([window.shares for window in windows], axis=0).tolist() if windows else []
    return Named(label=label, right=right, windows=len(windows), first=first, shares=tuple(means))
