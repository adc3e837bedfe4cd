"""A closer look: what a screen shows of one window, one run or one file beyond what the journal keeps.

Questions only. Each is bounded, because the watch loop answers between two ticks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.engine.knowledge_texts import KnowledgeTexts
from unveil.engine.past_windows import window_at
from unveil.errors import BadInputError
from unveil.matching.correlate import made_of
from unveil.records.codec import encode
from unveil.records.entity import parse_entity
from unveil.records.feature import FeatureId
from unveil.records.match import Answer
from unveil.records.run import RunState
from unveil.records.subsystem import Subsystem
from unveil.remediation.lifecycle import entered
from unveil.remediation.policy import BREAKER_FAILURES, gone_wrong

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.watched import Watched
    from unveil.records.entity import Entity
    from unveil.records.match import Episode, Match

MAX_EXPLAINED = 200
MAX_SERIES = 24
MAX_MEMBERS = 20
MAX_PAST = 200  # episodes looked through for what one that is over was made of
NEAR = 0.5  # of its clauses hold: a fingerprint that nearly matches
BREAKER_EVERY_S = 10.0
_RANK = {Answer.MATCH: 0, Answer.UNKNOWN: 1, Answer.NO_MATCH: 2}


class CloserLook:
    """Questions of screens about one watch."""

    def __init__(self, watch: Watched) -> None:
        self._watch = watch
        self._texts = KnowledgeTexts()
        self._breaker: tuple[float, dict[str, Any]] = (float("-inf"), {})
        self.questions: dict[str, Callable[..., Any]] = {
            "status": self.status,
            "near": self.near,
            "members": self.members,
            "series": self.series,
            "settings": self.settings,
            "verification": self.verification,
            "knowledge_text": self.knowledge_text,
            "draft": self.draft,
        }

    def status(self) -> dict[str, Any]:
        """Return how the watch is, and whether the breaker lets automation act."""
        now_s = self._watch.clock()
        at_s, told = self._breaker
        if not 0 <= now_s - at_s < BREAKER_EVERY_S:
            wrong = gone_wrong(self._watch.queries.runs(limit=50), now_s, self._watch.queries.resets())
            told = {"open": len(wrong) >= BREAKER_FAILURES, "failures": len(wrong), "most": BREAKER_FAILURES}
            self._breaker = (now_s, told)
        return {**self._watch.status(), "breaker": told}

    def members(self, *, episode: str) -> Any:
        """Return the episodes that one of a correlation is made of, and those of correlations that it is part of now.

        Answers ``{"of": [Episode], "part_of": [Episode]}``, at most ``MAX_MEMBERS`` of each. Of one that is over, the
        journal says what it was made of.
        """
        found, pipeline = self._watch.history.find_episode(episode), self._watch.pipeline
        opened, correlator = pipeline.episodes.open, pipeline.correlator
        around = [
            each
            for each in opened
            if any(member.id == found.id for member in correlator.members(each.fingerprint, each.entity))
        ]
        of = correlator.members(found.fingerprint, found.entity) if any(each.id == found.id for each in opened) else ()
        of = of or self._once_made_of(found)
        return encode({"of": of[:MAX_MEMBERS], "part_of": around[:MAX_MEMBERS]})

    def _once_made_of(self, found: Episode) -> tuple[Episode, ...]:
        correlations = self._watch.pipeline.correlator.correlations
        correlation = next((each for each in correlations if each.name == found.fingerprint), None)
        if correlation is None:
            return ()
        past = self._watch.queries.episodes(limit=MAX_PAST)
        return made_of(correlation, past, found.entity, since_s=found.started_s, until_s=found.last_s)

    def near(self, *, window: int | None = None, entity: str | None = None, limit: int = 20) -> Any:
        """Return the fingerprints that match, or nearly do, in a window (the newest when None), the nearest first.

        Answers ``{"window", "kept", "near": [{"match", "met", "of"}]}``; *kept* is false when what that window was
        judged by is no longer in memory.
        """
        pipeline = self._watch.pipeline
        newest = pipeline.latest
        number = window if window is not None else None if newest is None else newest.window.index
        evidence = None if number is None else pipeline.trail.evidence(number)
        if evidence is None:
            return {"window": number, "kept": False, "near": []}
        found = []
        left = MAX_EXPLAINED
        for fingerprint in pipeline.matcher.fingerprints:
            places = (parse(entity),) if entity else self._places(fingerprint.name, left)
            for place in places[:left]:
                left -= 1
                match = pipeline.matcher.explain(fingerprint.name, place, evidence)
                if match is not None and (close := _closeness(match)) >= NEAR:
                    found.append((_RANK[match.answer], -close, match))
        found.sort(key=lambda each: (each[0], each[1], each[2].fingerprint, str(each[2].entity)))
        near = [
            {"match": encode(match), "met": sum(each.answer is Answer.MATCH for each in match.clauses),
             "of": len(match.clauses)}
            for _, _, match in found[: max(1, min(limit, MAX_EXPLAINED))]
        ]  # fmt: skip
        return {"window": number, "kept": True, "near": near}

    def _places(self, fingerprint: str, most: int) -> tuple[Entity, ...]:
        """Return what a fingerprint is held against, what an open episode or the attribution names first."""
        pipeline = self._watch.pipeline
        there = pipeline.matcher.entities(fingerprint)
        if len(there) <= most:
            return there
        named = {each.entity for each in pipeline.episodes.open}
        if pipeline.latest is not None:
            named |= {each.feature.entity for each in pipeline.latest.attribution.features}
        return tuple(sorted(there, key=lambda each: each not in named))

    def series(self, *, features: list[str], until: int | None = None, limit: int = 120) -> list[Any]:
        """Return the newest values of features, up to a window: oldest first, absent ones as null.

        Args:
            features: names as they are written in an attribution: ``memory.dirty.mean``, ``gpu.util.mean[gpu:…]``.
        """
        if len(features) > MAX_SERIES:
            raise BadInputError(f"series: at most {MAX_SERIES} features at a time")
        latest, trail = self._watch.pipeline.latest, self._watch.pipeline.trail
        told = []
        for text in features:
            name, _, rest = text.partition("[")
            entity = parse(rest.removesuffix("]") or "host")
            points = trail.series(name, entity, until=until, limit=max(1, min(limit, 300)))
            expected = None if latest is None else latest.judgement.reference.expected(FeatureId(name, entity))
            told.append(
                {
                    "feature": text,
                    "from": points[0][0] if points else None,
                    "values": [encode(value) for _, value in points],
                    "expected": None if expected is None else encode(expected.centre),
                    "sigma": None if expected is None else encode(expected.sigma),
                }
            )
        return told

    def settings(self, *, id: str) -> list[Any]:  # noqa: A002  # the protocol's word
        """Return each setting that a run wrote: what was there before, what it wrote, what is there now, and by whom.

        *by* is the run that wrote it since, ``someone else`` when none of ours did, empty while it is as we left it.
        """
        run = self._watch.history.find_run(id)
        began = entered(run, RunState.APPLYING)
        later = [
            each
            for each in self._watch.queries.runs(limit=200)
            if began is not None and (step := entered(each, RunState.APPLYING)) is not None and step.at_s > began.at_s
        ]
        told = []
        for address, written in run.written.items():
            now = self._watch.settings.peek(address)
            same = now is not None and now.strip() == written.strip()
            by = next((f"run {each.id}" for each in later if address in each.written), "someone else")
            told.append(
                {
                    "address": address, "saved": run.saved.get(address), "written": written, "now": now,
                    "by": "" if same else "it cannot be read" if now is None else by,
                }
            )  # fmt: skip
        return told

    def verification(self, *, id: str) -> Any:  # noqa: A002
        """Return how far the verification of a run is, None when it is not being verified."""
        return encode(self._watch.runs.progress(self._watch.history.find_run(id).id))

    def knowledge_text(self, *, path: str) -> Any:
        """Return the text of a file of the knowledge base; see `KnowledgeTexts`."""
        return self._texts.ask(self._watch.knowledge.current.root, path)

    def draft(self, *, watch: int, index: int, name: str, owner: str, subsystem: str | None = None) -> Any:
        """Return the text of a fingerprint, and of its cases, drafted from a window of the journal. Writes nothing."""
        import datetime as dt
        import uuid

        from unveil.knowledge.drafting import Author, draft  # with the catalogue of what can be asked: not at start

        window = window_at(self._watch.history, f"{watch}:{index}")
        shares = window.attribution.subsystems
        chosen = subsystem or (max(shares, key=lambda each: shares[each]) if shares else "")
        if chosen not in set(Subsystem):
            raise BadInputError(f"{chosen[:40]!a} is no subsystem", hint=f"one of {', '.join(Subsystem)}")
        today = dt.datetime.fromtimestamp(self._watch.clock()).astimezone().date()
        author = Author(id=str(uuid.uuid4()), date=today.isoformat(), owner=owner)
        drawn = draft(name, Subsystem(chosen), author, window)
        return {"subsystem": chosen, "name": name, "fingerprint": drawn.fingerprint, "test": drawn.test}


def parse(text: str) -> Entity:
    """Return the entity that a text names.

    Raises:
        BadInputError: it names none.
    """
    try:
        return parse_entity(text)
    except ValueError as error:
        raise BadInputError(f"{text[:80]!a} names no entity", hint="host, or KIND:KEY, e.g. gpu:GPU-…") from error


def _closeness(match: Match) -> float:
    """Return the share of clauses that hold; what matches is near in any case."""
    if match.answer is Answer.MATCH:
        return 1.0
    return sum(each.answer is Answer.MATCH for each in match.clauses) / max(1, len(match.clauses))
