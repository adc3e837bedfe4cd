"""Watch labelled recordings as if they were live, in processes side by side, and keep what a backtest scores.

Nothing is carried out. Each action is decided by the policy that a live watch asks, and one that would have run is
taken to have been kept, so that cooldown and attempts hold the next ones back.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.detection.ensemble import EnsembleSettings
from unveil.detection.rule import DEFAULT_RULE
from unveil.engine.replaying import RecordedWatch
from unveil.engine.views import View
from unveil.errors import BadInputError, UnreadableError, UnveilError
from unveil.host.recording_parts import parts_of
from unveil.knowledge.backtest import Action, Fire, SeenWindow, Trace
from unveil.knowledge.inventory import groups_of
from unveil.knowledge.labels import labels_beside, read_labels
from unveil.knowledge.side_by_side import side_by_side
from unveil.knowledge.tuning import relabelled, variants
from unveil.records.match import EpisodeState
from unveil.records.remediation import Mode
from unveil.records.run import Run, RunState, Step
from unveil.records.verdict import State
from unveil.remediation import policy
from unveil.remediation.planner import plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from unveil.detection.ensemble import Ensemble
    from unveil.engine.pipeline import Outcome
    from unveil.knowledge.labels import Interval
    from unveil.records.match import Episode
    from unveil.records.remediation import Remediation

SITE = "site"
"""Profile that stands for what the knowledge base's inventory/profiles.yml says of the recorded host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One recording to watch.

    Attributes:
        profile: a mode as the site's ceiling, or ``site``.
        rule: which detectors decide; empty for the default.
        labelled: refuse a recording without labels; else nothing is known of it.
        names: what a label may be beside the fingerprints of the knowledge base.
        tuned: fingerprint, clause and thresholds: copies of the fingerprint, one a threshold, are watched instead.
        false_alarms_per_day: how often the rule may be wrong on an ordinary host.
        history: recordings of the same host that are watched before, oldest first; they are not scored.
        view: from where the host is looked at, in the history, too.
    """

    recording: str
    kb: str = ""
    profile: str = Mode.AUTO
    rule: str = ""
    seed: int = 0
    labelled: bool = True
    names: tuple[str, ...] = ()
    tuned: tuple[str, str, tuple[float, ...]] | None = None
    false_alarms_per_day: float = 24.0
    history: tuple[str, ...] = ()
    view: View = View.ALL


def watch_all(jobs: Sequence[Job], *, processes: int, done: Callable[[int], None]) -> tuple[Trace, ...]:
    """Watch recordings and return their traces in the order of the jobs.

    Args:
        processes: how many at a time; with one everything happens in this process.
        done: told how many are finished, each time one is.

    Raises:
        UnveilError: a recording or its labels cannot be read; the others are given up.
    """
    if processes <= 1 or len(jobs) == 1:
        traces = []
        for number, job in enumerate(jobs, 1):
            traces.append(watch_one(job))
            done(number)
        return tuple(traces)
    with side_by_side(carried, jobs, processes=processes) as futures:
        for number, future in enumerate(as_completed(futures), 1):
            unpacked(future.result())
            done(number)
        return tuple(unpacked(future.result()) for future in futures)


Carried = Trace | tuple[str, str | None]
"""A trace, or an error as what and hint: our exceptions do not travel between processes by themselves."""


def carried(job: Job) -> Carried:
    """Watch one recording in another process."""
    try:
        return watch_one(job)
    except UnveilError as error:
        return error.what, error.hint


def unpacked(result: Carried) -> Trace:
    """Return the trace, or raise the error, that came from another process."""
    if isinstance(result, Trace):
        return result
    raise UnreadableError(result[0], hint=result[1])


def labels_of(job: Job, fingerprints: Iterable[str]) -> tuple[Interval, ...]:
    """Return what was so when in a recording; nothing where it needs no labels and has none.

    Args:
        fingerprints: names in the knowledge base.

    Raises:
        UnreadableError: there is no recording, or no labels file beside it.
        BadInputError: the labels file is wrong.
    """
    recording = Path(job.recording)
    labels = labels_beside(recording)
    if not recording.exists() and not parts_of(recording):  # one that was interrupted is read from its parts
        raise UnreadableError(f"there is no recording {recording}")
    if job.labelled and labels is None:
        raise UnreadableError(f"{recording} has no labels beside it", hint=f"write {recording.stem}.labels.yml")
    return () if labels is None else read_labels(labels, {*job.names, *fingerprints})


def watch_one(job: Job) -> Trace:
    """Watch one recording.

    Raises:
        UnreadableError: there is no recording, no labels file beside it, or no usable knowledge base.
        BadInputError: the labels file is wrong.
    """
    settings = EnsembleSettings(rule=job.rule or DEFAULT_RULE, false_alarms_per_hour=job.false_alarms_per_day / 24)
    with closing(RecordedWatch(job.recording, kb=job.kb, settings=settings, seed=job.seed, view=job.view)) as watch:
        intervals = labels_of(job, (each.name for each in watch.knowledge.current.fingerprints))
        if (learnt := _learnt(job.history, job.kb, settings, job.seed, job.view)) is not None:
            watch.continue_with(learnt)
        if job.tuned is not None:
            intervals = _tune(watch, job.tuned, intervals)
        desk, seen = Desk(watch, job.profile), Seen(watch)
        for outcome in watch.outcomes():
            for episode in seen.take(outcome):
                desk.consider(episode, seen.windows[-1].end_s)
        return seen.trace(Path(job.recording).name, intervals, desk.actions)


def _tune(
    watch: RecordedWatch, tuned: tuple[str, str, tuple[float, ...]], intervals: tuple[Interval, ...]
) -> tuple[Interval, ...]:
    """Let copies of a fingerprint be watched instead of the knowledge base; return the intervals with their labels."""
    name, clause, values = tuned
    fingerprint = watch.knowledge.current.fingerprint(name)
    if fingerprint is None:
        raise BadInputError(f"no fingerprint {name!r} in this knowledge base")
    copies = variants(fingerprint, clause, values)
    watch.pipeline.replace_knowledge(copies, generation=1, wall_s=watch.clock())
    return relabelled(intervals, name, [each.name for each in copies])


@lru_cache(maxsize=1)  # a process mostly watches several recordings with one history
def _learnt(history: tuple[str, ...], kb: str, settings: EnsembleSettings, seed: int, view: View) -> Ensemble | None:
    """Return the detectors after they have seen a history; None without one."""
    learnt: Ensemble | None = None
    for path in history:
        with closing(RecordedWatch(path, kb=kb, settings=settings, seed=seed, view=view)) as watch:
            if learnt is not None:
                watch.continue_with(learnt)
            for _ in watch.outcomes():
                pass
            learnt = watch.pipeline.ensemble
    return learnt


class Seen:
    """What a backtest scores of a watch over a recording.

    Attributes:
        windows: those so far.
    """

    def __init__(self, watch: RecordedWatch) -> None:
        self.windows: list[SeenWindow] = []
        self._host = watch.host
        self._scored = {
            each.name for each in watch.pipeline.matcher.fingerprints
        }  # a correlation is no fault by itself
        self._clock = RecordedClock(watch.started_s)
        self._fires: list[Fire] = []

    def take(self, outcome: Outcome) -> tuple[Episode, ...]:
        """Take in what a window led to; return the episodes that fired with it."""
        start_s, end_s = self._clock.span(outcome)
        matched = frozenset(match.fingerprint for match in outcome.matches)
        state = outcome.judgement.verdict.state
        self.windows.append(
            SeenWindow(
                start_s=start_s, end_s=end_s, anomalous=state is State.ANOMALOUS, matched=matched,
                judged=state is not State.UNKNOWN,
            )
        )  # fmt: skip
        fired = tuple(
            each for each in outcome.changed if each.state is EpisodeState.FIRING and each.fingerprint in self._scored
        )
        for each in fired:
            started_s = self._clock.of_wall(each.started_s)
            self._fires.append(
                Fire(fingerprint=each.fingerprint, entity=str(each.entity), started_s=started_s, fired_s=end_s)
            )
        return fired

    def trace(self, recording: str, intervals: tuple[Interval, ...], actions: Iterable[Action] = ()) -> Trace:
        """Return it all, with what is known of the recording."""
        return Trace(
            recording=recording,
            seconds=self.windows[-1].end_s if self.windows else 0.0,
            windows=tuple(self.windows),
            fires=tuple(self._fires),
            actions=tuple(actions),
            intervals=intervals,
            host=self._host,
        )


class RecordedClock:
    """Seconds after the recording began, by the monotonic clock: a wall clock may have been set meanwhile."""

    def __init__(self, started_s: float) -> None:
        self._started_s = started_s
        self._zero_ns: float | None = None
        self._ends: dict[float, float] = {}

    def span(self, outcome: Outcome) -> tuple[float, float]:
        """Return when a window began and ended."""
        window = outcome.window
        if self._zero_ns is None:
            # Recordings without a start in their metadata begin with their first window.
            before_s = window.wall_s - self._started_s if self._started_s else (window.end_ns - window.start_ns) / 1e9
            self._zero_ns = window.end_ns - before_s * 1e9
        end_s = (window.end_ns - self._zero_ns) / 1e9
        self._ends[window.wall_s] = end_s
        return (window.start_ns - self._zero_ns) / 1e9, end_s

    def of_wall(self, wall_s: float) -> float:
        """Return the end of the window that had a wall clock."""
        return self._ends.get(wall_s, wall_s - self._started_s)


class Desk:
    """Where it is decided what would have been done."""

    def __init__(self, watch: RecordedWatch, profile: str) -> None:
        self._watch = watch
        self._profile = profile
        self._history: list[Run] = []
        self.actions: list[Action] = []

    def consider(self, episode: Episode, at_s: float) -> None:
        """Decide about an episode that has just fired."""
        fixes = self._watch.knowledge.current.fixes(episode.fingerprint)
        told = self._decide(episode, fixes[0]) if fixes else ("none", "it is reported only", ())
        outcome, reason, changes = told
        self.actions.append(
            Action(
                at_s=at_s, fingerprint=episode.fingerprint, entity=str(episode.entity),
                remediation=fixes[0].name if fixes else "", outcome=outcome, reason=reason, changes=changes,
            )
        )  # fmt: skip

    def _decide(self, episode: Episode, fix: Remediation) -> tuple[str, str, tuple[str, ...]]:
        watch, now_s = self._watch, self._watch.clock()
        ceiling = self._ceiling(fix)
        try:
            drawn = plan(
                fix, episode, facts=watch.facts, site=watch.knowledge.current.site, read=watch.settings.peek,
                baseline=watch.pipeline.recent, now_s=now_s, ceiling=ceiling,
            )  # fmt: skip
        except UnveilError as error:
            return "refused", error.what, ()
        changes = tuple(
            f"{each.address}: {(each.before or '?').strip()} → {each.after}"
            for each in drawn.changes
            if not each.coupled
        )
        decision = policy.decide(
            drawn, fix, ceiling, self._history, (), still_matching=True, now_s=now_s, intent=policy.Intent.PROPOSE,
            filters=watch.pipeline.exceptions, host=watch.host,
        )  # fmt: skip
        if not decision.allowed:
            alone = {Mode.OBSERVE: "observed", Mode.MANUAL: "person"}.get(decision.mode, "refused")
            return alone, "; ".join(decision.reasons), changes
        number = hashlib.sha256(f"{episode.id} {fix.name}".encode()).hexdigest()[:12]
        states = (RunState.PLANNED, RunState.APPLYING, RunState.KEPT)
        steps = tuple(Step(at_s=now_s, state=state, cause="backtest", actor="backtest") for state in states)
        self._history.append(Run(id=f"r{number}", plan=drawn, steps=steps, saved={}, written={}))
        return ("runs" if decision.mode is Mode.AUTO else "asks"), "; ".join(decision.notes), changes

    def _ceiling(self, fix: Remediation) -> Mode:
        if self._profile == SITE:
            current, host = self._watch.knowledge.current, self._watch.host
            return current.profiles.mode(fix.name, fix.mode, host=host, groups=groups_of(host, current.groups))
        return min(Mode(self._profile), fix.mode, key=tuple(Mode).index)
