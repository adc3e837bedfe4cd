"""All fingerprints against one window: who matches and why, who cannot be told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from unveil.errors import BadInputError
from unveil.matching.clauses import ANSWERS, Evidence, judge_fingerprint
from unveil.matching.companions import bindings
from unveil.matching.compile import compile_program
from unveil.matching.condition import UNKNOWN, YES
from unveil.matching.plan import Places, Plan, SeenReference, entities_by_kind
from unveil.matching.slopes import Slopes
from unveil.records.match import Match

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from unveil.matching.clauses import Expected
    from unveil.matching.compile import Answered, Program
    from unveil.matching.slopes import SeenSlopes
    from unveil.records.attribution import Attribution
    from unveil.records.entity import Entity, EntityKind
    from unveil.records.fact import FactTable
    from unveil.records.feature import FeatureLayout, FeatureVector
    from unveil.records.fingerprint import Fingerprint
    from unveil.records.match import Answer


@dataclass(frozen=True, slots=True, eq=False)
class _Verdicts:
    """The answers of one kind of entity: shape (fingerprints, entities), and who matches."""

    program: Program
    plan: Plan
    answered: Answered
    matching: tuple[tuple[Fingerprint, Entity], ...]

    @property
    def answers(self) -> NDArray[np.int8]:
        return self.answered.fingerprints

    def having(self, answer: int) -> Iterator[tuple[Fingerprint, Entity]]:
        return _having(answer, self.program, self.plan, self.answered)


class Unknowns:
    """The pairs of fingerprint name and entity that one window could not tell. Counting and asking are cheap."""

    __slots__ = ("_find", "_verdicts")

    def __init__(self, verdicts: Mapping[EntityKind, _Verdicts], find: Mapping[str, tuple[EntityKind, int]]) -> None:
        self._verdicts = verdicts
        self._find = find

    def __contains__(self, pair: object) -> bool:
        if not isinstance(pair, tuple) or len(pair) != 2:
            return False
        return _answer_of(self._verdicts, self._find, pair[0], pair[1]) == UNKNOWN

    def __iter__(self) -> Iterator[tuple[str, Entity]]:
        for verdicts in self._verdicts.values():
            for fingerprint, entity in verdicts.having(UNKNOWN):
                yield fingerprint.name, entity

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(verdicts.answers == UNKNOWN)) for verdicts in self._verdicts.values())

    def by_fingerprint(self) -> dict[str, int]:
        """Return on how many entities each fingerprint is unknown, those that are unknown on none left out."""
        return dict(Counter(name for name, _ in self))


class Matcher:
    """Evaluates fingerprints. The compiled form never changes; a changed knowledge base gets a matcher of its own.

    The newest window is kept, so that any fingerprint can be explained on any entity after the fact.
    """

    __slots__ = (
        "_evidence", "_expected", "_find", "_places", "_plans", "_programs", "_seen", "_shape", "_slope_rows",
        "_slopes", "_verdicts", "_wall_s", "fingerprints",
    )  # fmt: skip

    def __init__(self, fingerprints: Iterable[Fingerprint], *, before: Matcher | None = None) -> None:
        """Compile.

        Args:
            before: of the generation before, whose slopes go on.

        Raises:
            ConditionError: a condition does not parse or does not fit its clauses.
            BadInputError: two fingerprints of one name, or a clause that cannot be evaluated.
        """
        self.fingerprints = tuple(fingerprints)
        kinds: dict[EntityKind, list[Fingerprint]] = {}
        self._find: dict[str, tuple[EntityKind, int]] = {}
        for fingerprint in self.fingerprints:
            if fingerprint.name in self._find:
                raise BadInputError(f"two fingerprints are named {fingerprint.name!r}")
            members = kinds.setdefault(fingerprint.group_by, [])
            self._find[fingerprint.name] = (fingerprint.group_by, len(members))
            members.append(fingerprint)
        self._programs = {kind: compile_program(kind, members) for kind, members in kinds.items()}
        self._slope_rows = tuple(dict.fromkeys(row for program in self._programs.values() for row in program.slopes))
        self._slopes = Slopes()
        if before is not None:
            self._slopes.keep(before._slopes, {(row.feature, row.kind, row.over_s) for row in self._slope_rows})
        self._places: Places | None = None
        self._plans: dict[EntityKind, Plan] = {}
        self._shape: tuple[FeatureLayout, FactTable] | None = None
        self._verdicts: dict[EntityKind, _Verdicts] = {}
        self._evidence: Evidence | None = None
        self._expected: Expected | None = None
        self._seen = SeenReference()
        self._wall_s = 0.0

    def evaluate(
        self,
        vector: FeatureVector,
        facts: FactTable,
        expected: Expected | None = None,
        attribution: Attribution | None = None,
        *,
        wall_s: float | None = None,
    ) -> tuple[Match, ...]:
        """Return the matches of a window, with their reasons, in the order of the fingerprints of each kind.

        Args:
            vector: the features of the window.
            facts: the state of the host; read again only when it is another object.
            expected: what the host's own past makes expected; asked only for features that some clause needs, and not
                again when it is the same object as for the last window.
            attribution: what moved the verdict.
            wall_s: label of the matches, the end of the window where it is left out.
        """
        if expected is not self._expected:
            self._expected, self._seen = expected, SeenReference()
        seen = self._seen
        evidence = Evidence(vector=vector, facts=facts, expected=expected, attribution=attribution)
        values = self._plan(vector.layout, facts).values(vector, self._slopes)
        self._verdicts = {
            kind: self._verdict(kind, plan, plan.fill(values, evidence, seen)) for kind, plan in self._plans.items()
        }
        self._evidence = replace(evidence, expected=seen, risen=self.risen)
        self._wall_s = vector.wall_s if wall_s is None else wall_s
        return tuple(
            self._match(fingerprint, entity, verdicts.plan, self._evidence)
            for verdicts in self._verdicts.values()
            for fingerprint, entity in verdicts.matching
        )

    @property
    def risen(self) -> SeenSlopes:
        """Return the slopes as of the newest window."""
        return self._slopes.seen()

    @property
    def unknown(self) -> Unknowns:
        """Return what the newest window could not tell. Stays as it is when later windows come."""
        return Unknowns(self._verdicts, self._find)

    def answer(self, name: str, entity: Entity) -> Answer | None:
        """Return the answer of the newest window, None where it has no such fingerprint or entity."""
        found = _answer_of(self._verdicts, self._find, name, entity)
        return None if found is None else ANSWERS[found]

    def explain(self, name: str, entity: Entity, evidence: Evidence | None = None) -> Match | None:
        """Return a window's answer with its reasons, whatever it is; None as `answer`.

        Args:
            evidence: of an older window, as `evidence` was then; the newest where it is left out.
        """
        evidence = evidence or self._evidence
        if evidence is None or self.answer(name, entity) is None:
            return None
        kind, row = self._find[name]
        verdicts = self._verdicts[kind]
        return self._match(verdicts.program.fingerprints[row], entity, verdicts.plan, evidence)

    @property
    def evidence(self) -> Evidence | None:
        """Return what the newest window was held against, None before the first. It stays as it is."""
        return self._evidence

    def entities(self, name: str) -> tuple[Entity, ...]:
        """Return what a fingerprint was held against in the newest window; nothing where there is no such kind."""
        kind, _ = self._find.get(name, (None, 0))
        plan = None if kind is None else self._plans.get(kind)
        return () if plan is None else tuple(plan.entities)

    def _plan(self, layout: FeatureLayout, facts: FactTable) -> Places:
        """Find where everything stands, unless the host has the shape it had in the last window."""
        shape = self._shape
        if self._places is not None and shape is not None and shape[0] is layout and shape[1] is facts:
            return self._places
        places = self._places = Places(layout, self._slope_rows)
        there = entities_by_kind(layout, facts)
        self._plans = {
            kind: Plan(program, there[kind], places, facts) for kind, program in self._programs.items() if kind in there
        }
        self._shape = (layout, facts)
        return places

    def _verdict(self, kind: EntityKind, plan: Plan, rows: NDArray[np.float64]) -> _Verdicts:
        before = self._verdicts.get(kind)
        program = self._programs[kind]
        if before is not None and before.plan is not plan:
            before = None
        answered = program.run(rows, None if before is None else before.answered)
        if before is not None and answered is before.answered:
            return before
        return _Verdicts(program, plan, answered, tuple(_having(YES, program, plan, answered)))

    def _match(self, fingerprint: Fingerprint, entity: Entity, plan: Plan, evidence: Evidence) -> Match:
        around = plan.around[plan.column[entity]]
        answer, clauses = judge_fingerprint(fingerprint, around, evidence)
        return Match(
            window=evidence.vector.window,
            wall_s=self._wall_s if evidence is self._evidence else evidence.vector.wall_s,
            fingerprint=fingerprint.name,
            entity=entity,
            answer=answer,
            clauses=clauses,
            bindings=bindings(entity, evidence.facts),
        )


def _having(answer: int, program: Program, plan: Plan, answered: Answered) -> Iterator[tuple[Fingerprint, Entity]]:
    for row, column in np.argwhere(answered.fingerprints == answer).tolist():
        yield program.fingerprints[row], plan.entities[column]


def _answer_of(
    verdicts: Mapping[EntityKind, _Verdicts], find: Mapping[str, tuple[EntityKind, int]], name: str, entity: Entity
) -> int | None:
    kind, row = find.get(name, (None, 0))
    there = None if kind is None else verdicts.get(kind)
    column = None if there is None else there.plan.column.get(entity)
    return None if there is None or column is None else int(there.answers[row, column])
