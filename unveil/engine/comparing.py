"""Every detector over the same recordings, side by side: ours, the paper's and, where wanted, other people's.

One past for all: the histories are watched, by the default rule, which decides what is learned; all detectors are then
trained on that, once. From there on nothing is learned any more, so that no detector's verdict changes what another one
is compared with. Each stretch that is scored is held against the same reference, and each detector's scores go through
the same calibration. Without a history, a recording's own first windows are the past, until the reference is warm.
"""

from __future__ import annotations

import time
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.detection.catalogue import DETECTORS
from unveil.detection.ensemble import Ensemble, EnsembleSettings
from unveil.detection.training import fit
from unveil.engine.backtesting import RecordedClock, labels_of
from unveil.engine.peers import peers
from unveil.engine.replaying import RecordedWatch
from unveil.errors import UnreadableError, UnveilError
from unveil.knowledge.comparison import Compared, ComparedWindow
from unveil.knowledge.labels import labels_beside, read_workload
from unveil.knowledge.side_by_side import side_by_side
from unveil.records.verdict import State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from unveil.detection.detector import Arrays, Detector, DetectorKind, Score
    from unveil.detection.judgement import Judgement
    from unveil.engine.backtesting import Job


@dataclass(slots=True)
class Cost:
    """CPU time that a detector took to score windows."""

    windows: int = 0
    nanoseconds: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Timed:
    """A detector whose time is taken."""

    detector: Detector
    cost: Cost

    def score(self, z: NDArray[np.float64]) -> Score:
        begun = time.thread_time_ns()
        answer = self.detector.score(z)
        self.cost.nanoseconds += time.thread_time_ns() - begun
        self.cost.windows += 1
        return answer


def timed(kinds: Sequence[DetectorKind]) -> tuple[tuple[DetectorKind, ...], dict[str, Cost]]:
    """Return the same detectors, whose time is taken, and where it is counted."""
    costs = {kind.name: Cost() for kind in kinds}

    def one(kind: DetectorKind) -> DetectorKind:
        def restore(arrays: Arrays) -> Detector:
            return _Timed(kind.restore(arrays), costs[kind.name])

        return replace(kind, restore=restore)

    return tuple(one(kind) for kind in kinds), costs


def strengths(judgement: Judgement) -> dict[str, float]:
    """Return how far each detector is beyond its alarm level; above one it votes anomalous."""
    return {vote.detector: vote.score / max(vote.threshold, 1e-9) for vote in judgement.verdict.votes}


def train(ensemble: Ensemble, kinds: Sequence[DetectorKind], *, seed: int) -> None:
    """Train all detectors on what the ensemble has learned, in this process; nothing while it is warming up."""
    if ensemble.reference is not None and ensemble.reference.ready:
        ensemble.adopt(fit(ensemble.training_set(), seed=seed, kinds=tuple(kinds)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparingJob:
    """One recording to hold every detector against.

    Attributes:
        watched: which one, with what history, seed and false alarms a day.
        peers: other people's detectors, too.
    """

    watched: Job
    peers: bool = False


def compare_all(jobs: Sequence[ComparingJob], *, processes: int, done: Callable[[int], None]) -> tuple[Compared, ...]:
    """Hold every detector against recordings; see ``backtesting.watch_all``."""
    if processes <= 1 or len(jobs) == 1:
        found = []
        for number, job in enumerate(jobs, 1):
            found.append(compare_one(job))
            done(number)
        return tuple(found)
    with side_by_side(_carried, jobs, processes=processes) as futures:
        for number, future in enumerate(as_completed(futures), 1):
            _unpacked(future.result())
            done(number)
        return tuple(_unpacked(future.result()) for future in futures)


def _carried(job: ComparingJob) -> Compared | tuple[str, str | None]:
    try:
        return compare_one(job)
    except UnveilError as error:
        return error.what, error.hint


def _unpacked(result: Compared | tuple[str, str | None]) -> Compared:
    if isinstance(result, Compared):
        return result
    raise UnreadableError(result[0], hint=result[1])


def compare_one(job: ComparingJob) -> Compared:
    """Hold every detector against one recording.

    Raises:
        UnreadableError: there is no recording, no labels file beside it, or no usable knowledge base.
        BadInputError: the labels file is wrong.
    """
    watched = job.watched
    kinds, costs = timed((*DETECTORS, *(peers()[0] if job.peers else ())))
    settings = EnsembleSettings(false_alarms_per_hour=watched.false_alarms_per_day / 24)
    with closing(_watch(watched.recording, watched, settings, kinds)) as watch:
        intervals = labels_of(watched, (each.name for each in watch.knowledge.current.fingerprints))
        right = {each.name: each.subsystem.value for each in watch.knowledge.current.fingerprints}
        learnt = _learnt(replace(watched, recording=""), settings, job.peers)
        if learnt is not None:
            watch.continue_with(learnt)
        watch.pipeline.learning = learnt is None
        clock = RecordedClock(watch.started_s)
        windows = []
        for outcome in watch.outcomes():
            start_s, end_s = clock.span(outcome)
            judgement = outcome.judgement
            windows.append(
                ComparedWindow(
                    start_s=start_s, end_s=end_s, judged=judgement.verdict.state is not State.UNKNOWN,
                    strengths=strengths(judgement), severity=judgement.verdict.severity,
                    matched=frozenset(match.fingerprint for match in outcome.matches),
                    shares=tuple(outcome.attribution.subsystems.values()),
                )
            )  # fmt: skip
            ensemble = watch.pipeline.ensemble
            if watch.pipeline.learning and ensemble.reference is not None and ensemble.reference.ready:
                train(ensemble, kinds, seed=watched.seed)
                watch.pipeline.learning = False
    labels = labels_beside(Path(watched.recording))
    return Compared(
        recording=Path(watched.recording).name,
        workload="" if labels is None else read_workload(labels),
        seconds=windows[-1].end_s if windows else 0.0,
        windows=tuple(windows),
        intervals=intervals,
        right={
            label: where for each in intervals for label in each.labels if (where := each.subsystem or right.get(label))
        },
        cost_us={name: cost.nanoseconds / cost.windows / 1e3 for name, cost in costs.items() if cost.windows},
    )


def _watch(path: str, job: Job, settings: EnsembleSettings, kinds: tuple[DetectorKind, ...]) -> RecordedWatch:
    return RecordedWatch(path, kb=job.kb, settings=settings, seed=job.seed, kinds=kinds, trains=False, view=job.view)


@lru_cache(maxsize=2)  # a process compares several recordings with one history
def _learnt(past: Job, settings: EnsembleSettings, peered: bool) -> Ensemble | None:
    """Return the detectors after they have seen a job's history and were trained on it; None without one."""
    kinds = (*DETECTORS, *(peers()[0] if peered else ()))
    learnt: Ensemble | None = None
    for path in past.history:
        with closing(_watch(path, past, settings, kinds)) as watch:
            if learnt is not None:
                watch.continue_with(learnt)
            for _ in watch.outcomes():
                pass
            learnt = watch.pipeline.ensemble
    if learnt is not None:
        train(learnt, kinds, seed=past.seed)
    return learnt
