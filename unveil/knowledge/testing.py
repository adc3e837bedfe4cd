"""``kb test``: run the cases beside each fingerprint through the very matcher, tracker and planner of the watcher.

A case gives features window by window, facts, a reference and shares; it says which answer must stand at a time, and
may say what the plan would be. No host, no clock, no root: milliseconds a case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.errors import UnveilError
from unveil.knowledge.catalogues import catalogues
from unveil.knowledge.content import FINGERPRINTS
from unveil.knowledge.correlation_testing import run_correlation_document
from unveil.knowledge.loading import load
from unveil.knowledge.made_up import EPOCH_S, MADE_UP, CaseResult
from unveil.knowledge.pack import read_pack
from unveil.knowledge.parse import duration_s, fact_value
from unveil.knowledge.recorded_cases import RecordedCase, recorded_cases
from unveil.knowledge.series import parse_series, value_at
from unveil.knowledge.yaml_positions import read_yaml
from unveil.matching.episodes import EpisodeTracker
from unveil.matching.matcher import Matcher
from unveil.records.attribution import Attribution, FeatureShare
from unveil.records.correlation import Correlation
from unveil.records.entity import HOST, Entity, EntityKind, parse_entity
from unveil.records.fact import Fact, FactTable
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.fingerprint import FactClause, FeatureClause, Fingerprint
from unveil.records.match import Answer, ClauseResult, Episode, EpisodeState
from unveil.records.subsystem import Subsystem
from unveil.remediation import planner

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.knowledge.yaml_positions import Document
    from unveil.records.problem import Problem
    from unveil.records.remediation import Remediation
    from unveil.records.run import Plan

    Subject = Fingerprint | Correlation
    Watch = Callable[[Sequence[RecordedCase]], tuple[CaseResult, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """All cases that were run.

    Attributes:
        problems: why nothing was run: the knowledge base cannot be loaded.
        untested: fingerprints without a case.
    """

    __test__ = False  # not a test of pytest's, whatever its name

    cases: tuple[CaseResult, ...] = ()
    problems: tuple[Problem, ...] = ()
    untested: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """Return the cases that failed."""
        return tuple(case for case in self.cases if not case.passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A knowledge base that can be loaded, and the test files by the fingerprint or correlation they stand beside."""

    knowledge: KnowledgeBase
    documents: Mapping[str, Document]
    root: Path = Path()

    def fingerprints(self, names: Container[str] | None = None) -> tuple[Fingerprint, ...]:
        """Return the fingerprints of these names, all when None."""
        return tuple(each for each in self.knowledge.fingerprints if names is None or each.name in names)

    def subjects(self, names: Container[str] | None = None) -> tuple[Subject, ...]:
        """Return the fingerprints and correlations of these names, all when None."""
        everything: tuple[Subject, ...] = (*self.knowledge.fingerprints, *self.knowledge.correlations)
        return tuple(each for each in everything if names is None or each.name in names)


def read_suite(root: str | Path) -> tuple[Suite | None, tuple[Problem, ...]]:
    """Return a knowledge base with its cases, or None and why it cannot be loaded."""
    loaded = load(root)
    if loaded.knowledge is None:
        return None, loaded.errors
    return Suite(knowledge=loaded.knowledge, documents=_documents(Path(root)), root=Path(root)), ()


def run_tests(root: str | Path, names: Container[str] | None = None) -> TestReport:
    """Run the cases of a knowledge base.

    Args:
        root: the folder that holds fingerprints/.
        names: fingerprints to test; all when None.
    """
    suite, problems = read_suite(root)
    return TestReport(problems=problems) if suite is None else run_suite(suite, names)


def run_suite(suite: Suite, names: Container[str] | None = None, watch: Watch | None = None) -> TestReport:
    """Run cases that were read; see `run_tests`.

    Args:
        watch: who watches recordings for the cases that name one; without it they are left out.
    """
    wanted = suite.subjects(names)
    cases = tuple(
        case
        for subject in wanted
        if subject.name in suite.documents
        for case in run_document(suite.knowledge, subject, suite.documents[subject.name])
    )
    if watch is not None:
        cases += watch([case for each in suite.fingerprints(names) for case in _recorded(suite, each)])
    tested = {case.fingerprint for case in cases}
    return TestReport(cases=cases, untested=tuple(each.name for each in wanted if each.name not in tested))


def _recorded(suite: Suite, fingerprint: Fingerprint) -> Iterator[RecordedCase]:
    if (document := suite.documents.get(fingerprint.name)) is not None:
        yield from recorded_cases(fingerprint, document, suite.root)


def _documents(root: Path) -> dict[str, Document]:
    pack = read_pack(root)
    read = (read_yaml(pack.shown(path), pack.files[path]) for path in pack.under(FINGERPRINTS, ".test.yml"))
    return {document.data.get("fingerprint") or document.data["correlation"]: document for document in read}


def run_document(knowledge: KnowledgeBase, subject: Subject, document: Document) -> Iterator[CaseResult]:
    """Yield the result of each case of a test file that the schema admits, but of those that name a recording."""
    if isinstance(subject, Correlation):
        yield from run_correlation_document(subject, document)
        return
    fingerprint = subject
    interval_s = duration_s(document.data.get("interval", "1s"))
    for index, case in enumerate(document.data["cases"]):
        if "recording" in case:
            continue
        world = _World(fingerprint, case)
        world.run(windows=int(duration_s(case["at"]) / max(interval_s, 0.001) + 0.5) + 1, interval_s=interval_s)
        yield CaseResult(
            fingerprint=fingerprint.name,
            name=case["name"],
            file=document.file,
            line=document.at(("cases", index))[0],
            expected=case["expect"],
            got=str(world.answer()),
            failures=tuple(_failures(knowledge, world, case)),
            clauses=world.clauses,
            planned=case.get("plan", {}).get("remediation", ""),
        )


@dataclass(slots=True)
class _Reference:
    """What the case says this host's past makes expected."""

    known: dict[tuple[str, Entity], tuple[float, float]] = field(default_factory=dict)

    def lookup(self, name: str, entity: Entity) -> tuple[float, float] | None:
        return self.known.get((name, entity))


class _World:
    """A made-up host on which one case happens."""

    def __init__(self, fingerprint: Fingerprint, case: Mapping[str, Any]) -> None:
        self.fingerprint = fingerprint
        group_by = fingerprint.group_by
        self.entity = parse_entity(case["entity"]) if "entity" in case else MADE_UP[group_by]
        self.series = {
            self._feature(name): parse_series(str(text)) if isinstance(text, str) else (float(text),) * 10_000
            for name, text in case.get("features", {}).items()
        }
        facts = {(name, where): fact for fact, name, where in map(self._fact, *_pairs(case.get("facts", {})))}
        for clause in fingerprint.clauses:  # what a case does not give is absent, with its entity still there
            place = self._place(clause)
            if isinstance(clause, FeatureClause):
                self.series.setdefault(FeatureId(clause.feature, place), (float("nan"),))
                if clause.per:
                    below = HOST if clause.per_entity is EntityKind.HOST else place
                    self.series.setdefault(FeatureId(clause.per, below), (float("nan"),))
            elif isinstance(clause, FactClause):
                absent = Fact(name=clause.fact, entity=place, value=None, reason="the case does not give it")
                facts.setdefault((clause.fact, place), absent)
        self.settings: Mapping[str, str] | None = case.get("settings")
        self.facts = FactTable(tuple(facts.values()), dict(self.settings or {}))
        self.reference = _Reference()
        for name, expected in case.get("reference", {}).items():
            feature = self._feature(name)
            self.reference.known[(feature.name, feature.entity)] = (expected["expected"], expected["sigma"])
        self.shares: Mapping[str, float] = case.get("shares", {})
        self.vector: FeatureVector | None = None
        self.last = Answer.UNKNOWN
        self.episode: Episode | None = None
        self.clauses: tuple[ClauseResult, ...] = ()

    def run(self, *, windows: int, interval_s: float) -> None:
        """Let the windows pass."""
        layout = FeatureLayout(tuple(self.series))
        matcher = Matcher((self.fingerprint,))
        ids = count(1)
        tracker = EpisodeTracker((self.fingerprint,), new_id=lambda: f"e{next(ids):012x}")
        for index in range(windows):
            wall_s = EPOCH_S + index * interval_s
            values = np.array([value_at(series, index) for series in self.series.values()], dtype=np.float64)
            self.vector = FeatureVector(window=index, wall_s=wall_s, layout=layout, values=values)
            matches = matcher.evaluate(self.vector, self.facts, self.reference, self._attribution(index))
            tracker.push(matches, matcher.unknown, wall_s)
        self.last = matcher.answer(self.fingerprint.name, self.entity) or Answer.UNKNOWN
        self.episode = tracker.find(self.fingerprint.name, self.entity)
        explained = matcher.explain(self.fingerprint.name, self.entity)
        self.clauses = () if explained is None else explained.clauses

    def answer(self) -> Answer:
        """Return what stands in the end: an episode that fires is a match, else what the last window says."""
        if self.episode is not None and self.episode.state is EpisodeState.FIRING:
            return Answer.MATCH
        return Answer.UNKNOWN if self.last is Answer.UNKNOWN else Answer.NO_MATCH

    def _feature(self, written: str) -> FeatureId:
        name, bracket, entity = written.removesuffix("]").partition("[")
        return FeatureId(name, parse_entity(entity) if bracket else self._of_kind("feature", name))

    def _fact(self, written: str, value: Any) -> tuple[Fact, str, Entity]:
        name, bracket, entity = written.removesuffix("]").partition("[")
        where = parse_entity(entity) if bracket else self._of_kind("fact", name)
        setting = None
        if isinstance(value, dict):
            value, setting = value["value"], value.get("setting")
        reason = "the case says so" if value is None else None
        told = None if value is None else fact_value(value)
        return Fact(name=name, entity=where, value=told, reason=reason, setting=setting), name, where

    def _of_kind(self, what: str, name: str) -> Entity:
        kind = catalogues().kind_of(what, name) or EntityKind.HOST
        return self.entity if kind is self.entity.kind else MADE_UP[kind]

    def _place(self, clause: Any) -> Entity:
        kind = getattr(clause, "entity", None) or self.fingerprint.group_by
        return self.entity if kind is self.entity.kind else MADE_UP[kind]

    def _attribution(self, window: int) -> Attribution | None:
        if not self.shares:
            return None
        given = {Subsystem(name): float(share) for name, share in self.shares.items()}
        others = [subsystem for subsystem in Subsystem if subsystem not in given]
        rest = max(0.0, 1.0 - sum(given.values())) / max(1, len(others))
        shares = {subsystem: given.get(subsystem, rest) for subsystem in Subsystem}
        features = tuple(
            FeatureShare(
                feature=FeatureId(f"{subsystem}.made_up.mean"), subsystem=subsystem, share=share,
                value=share, expected=0.0, sigma=1.0,
            )
            for subsystem, share in shares.items()
        )  # fmt: skip
        return Attribution(window=window, features=features, subsystems=shares)


def _pairs(mapping: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    return tuple(mapping), tuple(mapping.values())


def _failures(knowledge: KnowledgeBase, world: _World, case: Mapping[str, Any]) -> Iterator[str]:
    got = world.answer()
    if got != case["expect"]:
        yield f"expected {case['expect']}, got {got}{_why(world)}"
    answers = {clause.name: clause.answer for clause in world.clauses}
    for name, expected in case.get("clauses", {}).items():
        if answers.get(name) != expected:
            yield f"clause {name}: expected {expected}, got {answers.get(name, 'no such clause')}"
    if "plan" in case:
        yield from _plan_failures(knowledge, world, case)


def _why(world: _World) -> str:
    if world.answer() is Answer.NO_MATCH and world.episode is not None:
        held_s = world.episode.last_s - world.episode.started_s
        return f" (pending for {held_s:g} s of {world.fingerprint.hold_s:g} s)"
    if world.answer() is Answer.UNKNOWN:
        unknown = [clause.name for clause in world.clauses if clause.answer is Answer.UNKNOWN]
        return f" (unknown: {', '.join(unknown)})"
    return ""


def _plan_failures(knowledge: KnowledgeBase, world: _World, case: Mapping[str, Any]) -> Iterator[str]:
    wanted = case["plan"]
    remediation = knowledge.remediation(wanted["remediation"])
    if remediation is None or wanted["remediation"] not in world.fingerprint.remediations:
        yield f"plan: {world.fingerprint.name} has no remediation {wanted['remediation']!r}"
        return
    if world.episode is None or world.vector is None:
        yield "plan: there is no episode to plan for"
        return
    try:
        plan = _planned(knowledge, world, case, remediation)
    except UnveilError as error:
        yield f"plan: {error.what}{f' ({error.hint})' if error.hint else ''}"
        return
    for name, value in wanted.get("variables", {}).items():
        if name not in plan.variables or plan.variables[name] != fact_value(value):
            yield f"plan: variable {name} is {plan.variables.get(name)!r}, expected {fact_value(value)!r}"
    if "settings" in wanted:
        changes = {change.address: change.after for change in plan.changes if not change.coupled}
        for address in sorted(set(changes) | set(wanted["settings"])):
            if address not in changes:
                yield f"plan: {address} would not change"
            elif address not in wanted["settings"]:
                yield f"plan: {address} would change, too, to {changes[address]!r}"
            elif changes[address] != wanted["settings"][address]:
                yield f"plan: {address} would become {changes[address]!r}, expected {wanted['settings'][address]!r}"


def _planned(knowledge: KnowledgeBase, world: _World, case: Mapping[str, Any], remediation: Remediation) -> Plan:
    """Return what a fix would do about the episode of a case.

    Raises:
        UnveilError: the plan refuses itself.
    """
    assert world.episode is not None
    assert world.vector is not None
    settings = world.settings
    site = {**knowledge.site, **{name: fact_value(value) for name, value in case.get("site", {}).items()}}
    return planner.plan(
        remediation,
        world.episode,
        facts=world.facts,
        site=site,
        # Without a say on settings every one is there and empty; with one, only those that are named.
        read=lambda address: "" if settings is None else settings.get(address),
        baseline=world.vector.get,
        now_s=EPOCH_S,
    )


def plans(suite: Suite, names: Container[str] | None = None) -> Iterator[Plan]:
    """Yield one plan of each remediation of which a case names the settings before, in the order of fingerprints."""
    met: set[str] = set()
    for fingerprint in suite.fingerprints(names):
        document = suite.documents.get(fingerprint.name)
        for case in document.data["cases"] if document is not None else ():
            remediation = suite.knowledge.remediation(case.get("plan", {}).get("remediation", ""))
            if remediation is None or remediation.name in met or not case.get("settings"):
                continue
            interval_s = duration_s(document.data.get("interval", "1s")) if document is not None else 1.0
            world = _World(fingerprint, case)
            world.run(windows=int(duration_s(case["at"]) / max(interval_s, 0.001) + 0.5) + 1, interval_s=interval_s)
            if world.episode is not None:
                met.add(remediation.name)
                yield _planned(suite.knowledge, world, case, remediation)
