"""The cases beside a correlation: made-up episodes of fingerprints, held against the watcher's own correlator."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from unveil.knowledge.made_up import EPOCH_S, MADE_UP, CaseResult
from unveil.knowledge.parse import duration_s
from unveil.matching.correlate import Correlator
from unveil.matching.episodes import EpisodeTracker
from unveil.records.entity import HOST, parse_entity
from unveil.records.match import Answer, Episode, EpisodeState, Match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.yaml_positions import Document
    from unveil.records.correlation import Correlation
    from unveil.records.match import ClauseResult

HOST_NAME = "host"


def run_correlation_document(correlation: Correlation, document: Document) -> Iterator[CaseResult]:
    """Yield the result of each case of a test file that the schema admits. Windows come each second."""
    for index, case in enumerate(document.data["cases"]):
        got, clauses = _run(correlation, case)
        wrong = got != case["expect"]
        yield CaseResult(
            fingerprint=correlation.name,
            name=case["name"],
            file=document.file,
            line=document.at(("cases", index))[0],
            expected=case["expect"],
            got=str(got),
            failures=(f"expected {case['expect']}, got {got}",) if wrong else (),
            clauses=clauses,
        )


def _run(correlation: Correlation, case: Mapping[str, Any]) -> tuple[Answer, tuple[ClauseResult, ...]]:
    """Let the windows of a case pass; return what stands in the end, and the clauses of the newest match."""
    correlator = Correlator((correlation,))
    ids = count(1)
    tracker = EpisodeTracker((correlation,), new_id=lambda: f"e{next(ids):012x}")
    entity = parse_entity(case["entity"]) if "entity" in case else MADE_UP[correlation.group_by]
    spans = [_span(number, each) for number, each in enumerate(case["episodes"])]
    hosts = sorted({host for host, _ in spans}) or [HOST_NAME]
    clauses: tuple[ClauseResult, ...] = ()
    for second in range(int(duration_s(case["at"])) + 1):
        wall_s = EPOCH_S + second
        matches: tuple[Match, ...] = ()
        for host in hosts:
            open_now = [now for there, episode in spans if there == host and (now := _as_of(episode, wall_s))]
            matches = correlator.push(open_now, wall_s, window=second, host=host)
        tracker.push(matches, (), wall_s)
        clauses = next((match.clauses for match in matches if match.entity == entity), clauses)
    episode = tracker.find(correlation.name, entity)
    firing = episode is not None and episode.state is EpisodeState.FIRING
    return Answer.MATCH if firing else Answer.NO_MATCH, clauses


def _span(number: int, told: Mapping[str, Any]) -> tuple[str, Episode]:
    """Return the host of an episode, and the episode as it will have been in the end."""
    entity = parse_entity(told["entity"]) if "entity" in told else HOST
    start_s = EPOCH_S + duration_s(told.get("from", "0s"))
    end_s = EPOCH_S + duration_s(told["until"]) if "until" in told else float("inf")
    bindings = {**({} if entity == HOST else {str(entity.kind): entity.key}), **told.get("binds", {})}
    match = Match(
        window=0, wall_s=start_s, fingerprint=told["fingerprint"], entity=entity, answer=Answer.MATCH, clauses=(),
        bindings=bindings,
    )  # fmt: skip
    return told.get("host", HOST_NAME), Episode(
        id=f"e{number:012x}", fingerprint=told["fingerprint"], revision="", entity=entity, state=EpisodeState.FIRING,
        started_s=start_s, fired_s=start_s, last_s=end_s, cleared_s=None, windows=1, last=match,
    )  # fmt: skip


def _as_of(episode: Episode, wall_s: float) -> Episode | None:
    """Return an episode as it is at a time, None before it fires and after it last matched."""
    return replace(episode, last_s=wall_s) if episode.started_s <= wall_s <= episode.last_s else None
