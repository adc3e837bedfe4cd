"""One clause on one entity, with the reason: what was asked, what was there, what follows.

The slow and plain twin of the arrays in `compile`: it explains matches, and the tests hold the arrays against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from unveil.matching.condition import NO, UNKNOWN, YES, parse_condition
from unveil.matching.peers import expected_of, likeness
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fingerprint import FactClause, FeatureClause
from unveil.records.match import Answer, ClauseResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from unveil.records.attribution import Attribution
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


class Risen(Protocol):
    """How fast features rose until this window."""

    def slope(self, name: str, entity: Entity, over_s: float) -> float | None:
        """Return a feature's slope per second over a time, None while it is unknown."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that one window brings.

    Attributes:
        expected: None while there is no reference at all.
        attribution: None or empty while there is nothing to attribute.
        risen: None where no window came before.
    """

    vector: FeatureVector
    facts: FactTable
    expected: Expected | None = None
    attribution: Attribution | None = None
    risen: Risen | None = None


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


def deviation(value: float, centre: float, sigma: float, unit: str = "sigma") -> float:
    """Return the signed distance from what is expected: in standard deviations, or as a part of it (``ratio``).

    NaN where the reference has no spread. Anything is infinitely far, as a part, from an expected zero but zero.
    """
    if unit == "sigma":
        return (value - centre) / sigma if sigma > 0 else math.nan
    if centre == 0:
        return math.copysign(math.inf, value) if value else 0.0
    return (value - centre) / abs(centre)


def deviations(
    values: NDArray[np.float64], centre: NDArray[np.float64], sigma: NDArray[np.float64], as_part: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return `deviation` of many, NaN where a value, a centre or a sigma is.

    Args:
        as_part: which are told as a part of what is expected.
    """
    with np.errstate(all="ignore"):
        away = values - centre
        found = np.where(sigma > 0, away / sigma, np.nan)
        if as_part.any():
            far = np.where(values == 0, 0.0, np.copysign(np.inf, values))
            found = np.where(as_part, np.where(centre == 0, far, away / np.abs(centre)), found)
    found[np.isnan(values)] = np.nan
    return found


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
    subject, threshold = subject_of(clause), threshold_of(clause)
    if entity is None:
        return _absent(clause, subject, threshold, f"no {kind} is known to belong to it")
    value, why = _measured(clause, entity, evidence)
    if value is None:
        return _absent(clause, subject, threshold, why)
    if clause.operator not in ("up", "down"):
        return _told(clause, subject, threshold, value, compare(value, clause.operator, clause.threshold))
    found, named, why = _expected(clause, entity, evidence)
    if found is None:
        return _absent(clause, subject, threshold, why, value)
    distance = deviation(value, *found, clause.unit)
    if math.isnan(distance):
        why = "too few peers or none that differ" if clause.against == "peers" else "its reference has no spread"
        return _absent(clause, subject, threshold, why, value)
    holds = distance >= clause.threshold if clause.operator == "up" else -distance >= clause.threshold
    centre = f"{found[0]:.6g}" if clause.unit == "ratio" else f"{found[0]:.6g} ± {found[1]:.3g}"
    return _told(clause, subject, f"{threshold} from {named}{centre}", value, holds)


def subject_of(clause: FeatureClause) -> str:
    """Return what a clause compares: a feature, a ratio of two, a slope."""
    if clause.per:
        return f"ratio {clause.feature} per {clause.per}"
    return f"slope {clause.feature} over {clause.slope_s:g}s" if clause.slope_s else f"feature {clause.feature}"


def threshold_of(clause: FeatureClause) -> str:
    """Return what a clause compares with: a number, or a distance."""
    if clause.operator not in ("up", "down"):
        return f"{clause.threshold:.10g}"
    return f"{100 * clause.threshold:.6g} %" if clause.unit == "ratio" else f"{clause.threshold:g} sigma"


def _measured(clause: FeatureClause, entity: Entity, evidence: Evidence) -> tuple[float | None, str]:
    """Return what is compared of an entity, or None and why it is absent."""
    value = evidence.vector.get(clause.feature, entity)
    if value is None:
        return None, _not_measured(clause.feature, entity)
    if clause.slope_s:
        risen = None if evidence.risen is None else evidence.risen.slope(clause.feature, entity, clause.slope_s)
        return risen, f"it has not been watched for {clause.slope_s:g} s yet"
    if not clause.per:
        return value, ""
    other = HOST if clause.per_entity is EntityKind.HOST else entity
    below = evidence.vector.get(clause.per, other)
    if below is None:
        return None, _not_measured(clause.per, other)
    return (None, f"{clause.per} is zero") if below == 0 else (value / below, "")


def _expected(clause: FeatureClause, entity: Entity, evidence: Evidence) -> tuple[tuple[float, float] | None, str, str]:
    """Return centre and spread of what is expected, what it is of, and why there is none."""
    if clause.against != "peers":
        found = None if evidence.expected is None else evidence.expected.lookup(clause.feature, entity)
        return found, "", "there is no reference for it yet"
    alike = likeness(entity, evidence.facts)
    peers = [
        value
        for feature in evidence.vector.layout.ids
        if feature.name == clause.feature and feature.entity.kind is entity.kind and feature.entity != entity
        if likeness(feature.entity, evidence.facts) == alike
        and (value := _measured(clause, feature.entity, evidence)[0]) is not None
    ]
    return expected_of(peers), f"the median of {len(peers)} peers, ", f"no other {entity.kind} like it has a value"


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
