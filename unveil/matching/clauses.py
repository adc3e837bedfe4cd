"""One clause on one entity, with the reason: what was asked, what was there, what follows.

The slow and plain twin of the arrays in `compile`: it explains matches, and the tests hold the arrays against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from unveil.matching.condition import NO, UNKNOWN, YES, parse_condition
from unveil.records.entity import HOST, Entity
from unveil.records.fingerprint import FactClause, FeatureClause
from unveil.records.match import Answer, ClauseResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.attribution import Attribution
    from unveil.records.entity import EntityKind
    from unveil.records.fact import FactTable, FactValue
    from unveil.records.feature import FeatureVector
    from unveil.records.fingerprint import Clause, Fingerprint, ShareClause
    from unveil.records.subsystem import Subsystem

ANSWERS: Mapping[int, Answer] = {NO: Answer.NO_MATCH, UNKNOWN: Answer.UNKNOWN, YES: Answer.MATCH}
"""The three answers by their number."""

_NUMBER = {Answer.NO_MATCH: NO, Answer.UNKNOWN: UNKNOWN, Answer.MATCH: YES}


class Expected(Protocol):
    """What this host's own past makes expected."""

    def lookup(self, name: str, entity: Entity) -> tuple[float, float] | None:
        """Return centre and standard deviation of a feature in its own unit, None while there is no reference."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that one window brings.

    Attributes:
        expected: None while there is no reference at all.
        attribution: None or empty while there is nothing to attribute.
    """

    vector: FeatureVector
    facts: FactTable
    expected: Expected | None = None
    attribution: Attribution | None = None


def compare(value: float, operator: str, threshold: float) -> bool:
    """Return whether ``value operator threshold`` holds, for ``lt lte gt gte eq neq``."""
    match operator:
        case "lt":
            return value < threshold
        case "lte":
            return value <= threshold
        case "gt":
            return value > threshold
        case "gte":
            return value >= threshold
        case "eq":
            return value == threshold
        case "neq":
            return value != threshold
    raise ValueError(f"no such operator: {operator}")


def fact_holds(value: FactValue, operator: str, operand: FactValue) -> bool | None:
    """Return whether a fact is as asked; None when the two cannot be compared (text with a number).

    ``in`` holds for a fact that is a list when one of its elements is listed, ``not_in`` when none is; ``eq`` and
    ``neq`` compare whole lists, in any order.
    """
    if operator in ("in", "not_in"):
        wanted = {text_of(item) for item in operand} if isinstance(operand, tuple) else {text_of(operand)}
        there = {text_of(item) for item in value} if isinstance(value, tuple) else {text_of(value)}
        return wanted.isdisjoint(there) is (operator == "not_in")
    if _is_number(value) and _is_number(operand):
        return compare(float(value), operator, float(operand))  # type: ignore[arg-type]  # both are numbers
    if type(value) is not type(operand) or operator not in ("eq", "neq"):
        return None
    same = set(value) == set(operand) if isinstance(value, tuple) and isinstance(operand, tuple) else value == operand
    return same is (operator == "eq")


def deviation(value: float, centre: float, sigma: float) -> float:
    """Return the signed distance from the reference in standard deviations; NaN where the reference has no spread."""
    return (value - centre) / sigma if sigma > 0 else math.nan


def text_of(value: FactValue) -> str:
    """Return a fact as text: whole numbers without a point, lists with commas."""
    if isinstance(value, tuple):
        return ", ".join(text_of(item) for item in value)
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else f"{value:.10g}"


def judge(
    clause: Clause, around: Mapping[EntityKind, Entity], group_by: EntityKind, evidence: Evidence
) -> ClauseResult:
    """Return the answer of one clause.

    Args:
        around: the entity and its companions, by kind.
        group_by: the kind a clause is about that names none.
        evidence: what the window brings.
    """
    if not isinstance(clause, FeatureClause | FactClause):
        return _judge_share(clause, evidence.attribution)
    kind = clause.entity or group_by
    entity = around.get(kind)
    if isinstance(clause, FactClause):
        return _judge_fact(clause, entity, kind, evidence.facts)
    return _judge_feature(clause, entity, kind, evidence)


def judge_fingerprint(
    fingerprint: Fingerprint, around: Mapping[EntityKind, Entity], evidence: Evidence
) -> tuple[Answer, tuple[ClauseResult, ...]]:
    """Return the answer of a fingerprint on an entity, and of each of its clauses.

    Raises:
        ConditionError: the condition does not fit the clauses.
    """
    results = tuple(judge(clause, around, fingerprint.group_by, evidence) for clause in fingerprint.clauses)
    answers = {result.name: np.asarray(_NUMBER[result.answer], dtype=np.int8) for result in results}
    return ANSWERS[int(parse_condition(fingerprint.condition).evaluate(answers))], results


def _judge_feature(clause: FeatureClause, entity: Entity | None, kind: EntityKind, evidence: Evidence) -> ClauseResult:
    subject = f"feature {clause.feature}"
    relative = clause.operator in ("up", "down")
    threshold = f"{clause.threshold:g} sigma" if relative else f"{clause.threshold:.10g}"
    if entity is None:
        return _absent(clause, subject, threshold, f"no {kind} is known to belong to it")
    value = evidence.vector.get(clause.feature, entity)
    if value is None:
        return _absent(clause, subject, threshold, _not_measured(clause.feature, entity))
    if not relative:
        return _told(clause, subject, threshold, value, compare(value, clause.operator, clause.threshold))
    found = None if evidence.expected is None else evidence.expected.lookup(clause.feature, entity)
    if found is None:
        return _absent(clause, subject, threshold, "there is no reference for it yet", value)
    centre, sigma = found
    distance = deviation(value, centre, sigma)
    if math.isnan(distance):
        return _absent(clause, subject, threshold, "its reference has no spread", value)
    holds = distance >= clause.threshold if clause.operator == "up" else -distance >= clause.threshold
    return _told(clause, subject, f"{threshold} from {centre:.6g} ± {sigma:.3g}", value, holds)


def _judge_fact(clause: FactClause, entity: Entity | None, kind: EntityKind, facts: FactTable) -> ClauseResult:
    subject, threshold = f"fact {clause.fact}", text_of(clause.operand)
    if entity is None:
        return _absent(clause, subject, threshold, f"no {kind} is known to belong to it")
    fact = facts.find(clause.fact, entity)
    if fact is None or fact.value is None:
        why = fact.reason if fact is not None and fact.reason else f"the host does not tell {clause.fact} of {entity}"
        return _absent(clause, subject, threshold, why)
    shown = float(fact.value) if _is_number(fact.value) else text_of(fact.value)  # type: ignore[arg-type]  # a number
    holds = fact_holds(fact.value, clause.operator, clause.operand)
    if holds is None:
        return _absent(clause, subject, threshold, f"{text_of(fact.value)!r} cannot be compared with it", shown)
    return _told(clause, subject, threshold, shown, holds)


def _judge_share(clause: ShareClause, attribution: Attribution | None) -> ClauseResult:
    subject, threshold = f"share {clause.subsystem}", f"{clause.threshold:.10g}"
    value = share_of(clause.subsystem, attribution)
    if math.isnan(value):
        return _absent(clause, subject, threshold, "there is nothing to attribute in this window")
    return _told(clause, subject, threshold, value, compare(value, clause.operator, clause.threshold))


def share_of(subsystem: Subsystem, attribution: Attribution | None) -> float:
    """Return a subsystem's share in the attribution, NaN where there is none."""
    if attribution is None or not attribution.features:
        return math.nan
    return attribution.subsystems.get(subsystem, math.nan)


def _told(clause: Clause, subject: str, threshold: str, value: float | str, holds: bool) -> ClauseResult:
    return ClauseResult(
        name=clause.name,
        subject=subject,
        operator=clause.operator,
        threshold=threshold,
        value=value,
        answer=Answer.MATCH if holds else Answer.NO_MATCH,
    )


def _absent(
    clause: Clause, subject: str, threshold: str, reason: str, value: float | str | None = None
) -> ClauseResult:
    return ClauseResult(
        name=clause.name,
        subject=subject,
        operator=clause.operator,
        threshold=threshold,
        value=value,
        answer=Answer.NO_MATCH if clause.optional else Answer.UNKNOWN,
        reason=f"{reason}; optional, so it counts as no" if clause.optional else reason,
    )


def _not_measured(feature: str, entity: Entity) -> str:
    return f"the host does not give {feature}" + ("" if entity == HOST else f" of {entity}")


def _is_number(value: FactValue) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)
