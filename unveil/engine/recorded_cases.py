"""Watch recordings for the cases of ``kb test`` that name one.

Windows, features, reference, matcher and episodes are those of a live watch. What tells no fingerprint anything is left
out: nothing is journalled, and models are trained only where a clause asks for a share of what they see.
"""

from __future__ import annotations

from collections import defaultdict
from importlib import resources
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.engine.backtesting import RecordedClock
from unveil.engine.pipeline import Pipeline
from unveil.engine.training import train_now
from unveil.errors import UnveilError
from unveil.host.recording_parts import parts_of
from unveil.host.replay import Replay
from unveil.knowledge.recorded_cases import DEMO, Moment, judge, unwatched
from unveil.records.fact import FactTable
from unveil.records.fingerprint import ShareClause
from unveil.records.match import Answer, EpisodeState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unveil.engine.pipeline import Outcome
    from unveil.knowledge.made_up import CaseResult
    from unveil.knowledge.recorded_cases import RecordedCase
    from unveil.records.entity import Entity
    from unveil.records.fingerprint import Fingerprint


def watch_cases(cases: Sequence[RecordedCase]) -> tuple[CaseResult, ...]:
    """Return the results of cases, in their order; each recording is watched once for all of its cases."""
    of: dict[str, list[RecordedCase]] = defaultdict(list)
    for case in cases:
        of[case.recording].append(case)
    found: dict[int, CaseResult] = {}
    for recording, those in of.items():
        try:
            results = _watch(recording, those)
        except UnveilError as error:
            results = [unwatched(case, error.what) for case in those]
        found |= {id(case): result for case, result in zip(those, results, strict=True)}
    return tuple(found[id(case)] for case in cases)


def _watch(recording: str, cases: Sequence[RecordedCase]) -> list[CaseResult]:
    path = resources.files("unveil.demo") / "recording.parquet" if recording == DEMO else Path(recording)
    if not path.is_file() and not parts_of(Path(str(path))):
        return [unwatched(case, f"there is no recording {path}") for case in cases]
    moments: list[list[Moment]] = [[] for _ in cases]
    ended_s = 0.0
    for start_s, end_s, pipeline in _windows(str(path), {case.fingerprint.name: case.fingerprint for case in cases}):
        ended_s = end_s
        for case, own in zip(cases, moments, strict=True):
            own.append(_moment(case, start_s, end_s, pipeline))
    return [judge(case, own, ended_s=ended_s) for case, own in zip(cases, moments, strict=True)]


def _windows(path: str, fingerprints: dict[str, Fingerprint]) -> Iterator[tuple[float, float, Pipeline]]:
    """Let the recorded time pass; yield each window's seconds, and the pipeline as it stands after it."""
    replay = Replay(path)
    numbers = count(1)
    pipeline = Pipeline(
        watch=1, fingerprints=fingerprints.values(), generation=1, new_id=lambda: f"e{next(numbers):012x}"
    )
    shares = any(isinstance(clause, ShareClause) for each in fingerprints.values() for clause in each.clauses)
    clock = RecordedClock(float(replay.metadata.get("started_s", 0.0)))
    facts = FactTable()
    for tick in replay:
        facts = tick.facts or facts
        outcomes: tuple[Outcome, ...] = pipeline.push(tick.blocks, wall_s=tick.wall_s, facts=facts)
        for outcome in outcomes:
            yield *clock.span(outcome), pipeline
        if shares and pipeline.ensemble.wants_training:
            pipeline.ensemble.adopt(train_now(pipeline.ensemble.training_set(), seed=0))


def _moment(case: RecordedCase, start_s: float, end_s: float, pipeline: Pipeline) -> Moment:
    name = case.fingerprint.name
    open_ = [each for each in pipeline.episodes.open if each.fingerprint == name]
    fires = any(
        each.state is EpisodeState.FIRING and case.entity in (None, each.entity) for each in open_
    )  # fmt: skip
    entities: Sequence[Entity] = pipeline.matcher.entities(name) if case.entity is None else (case.entity,)
    answers = {entity: pipeline.matcher.answer(name, entity) or Answer.UNKNOWN for entity in entities}
    answer = next((each for each in (Answer.MATCH, Answer.NO_MATCH) if each in answers.values()), Answer.UNKNOWN)
    shown = next((entity for entity, each in answers.items() if each is answer), None)
    explained = None if shown is None else pipeline.matcher.explain(name, shown)
    return Moment(
        start_s=start_s, end_s=end_s, answer=answer, fires=fires,
        clauses=() if explained is None else explained.clauses,
    )  # fmt: skip
