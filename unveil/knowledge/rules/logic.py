"""Can it ever be, and can it ever not be? Conditions that contradict themselves, and clauses that say nothing.

What clauses ask of one thing (a feature of one entity, a fact, a share) is laid on one line: only the values at and
between their thresholds can be told apart. All combinations of those are tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.features.feature import SHARE
from unveil.knowledge.catalogues import catalogues
from unveil.knowledge.checks import finding
from unveil.knowledge.formats.fingerprint import FACT_OPERATORS, NUMERIC
from unveil.matching.clauses import compare, fact_holds
from unveil.matching.condition import NO, YES, ConditionError, parse_condition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.yaml_positions import Document
    from unveil.records.problem import Problem

MAX_COMBINATIONS = 20_000
_MEASURED = (".rate", ".mean", ".std", ".slope", ".unevenness")  # no two windows share these to the last digit
_ENDS = {SHARE: (0, 1)}  # what even a measured value may equal
_OTHER = "\0 any other text"  # no clause can name it


@dataclass(frozen=True, slots=True)
class _Case:
    """One way in which the clauses about one thing can be answered.

    Attributes:
        least: of a share, the smallest value that answers so; 0 of everything else.
    """

    answers: tuple[tuple[str, bool], ...]
    least: float = 0.0


def check_logic(document: Document) -> Iterator[Problem]:
    """Yield what is wrong with the logic of a fingerprint whose condition can be read."""
    signature = document.data["signature"]
    clauses: dict[str, dict[str, Any]] = signature["clauses"]
    for name, clause in clauses.items():
        yield from _empty(document, name, clause)
    try:
        expression = parse_condition(signature["condition"]).bind(tuple(clauses))
    except ConditionError:
        return  # K202 and K217 have said so
    things: dict[tuple[object, ...], dict[str, dict[str, Any]]] = {}
    for name, clause in clauses.items():
        things.setdefault(_thing(name, clause), {})[name] = clause
    cases = [_cases(each) for each in things.values()]
    if math.prod(map(len, cases)) > MAX_COMBINATIONS:
        return
    rows = list(product(*cases))
    answers = {
        name: np.array([dict(row[at].answers)[name] for row in rows], dtype=np.int8) * np.int8(2) + np.int8(NO)
        for at, members in enumerate(things.values())
        for name in members
    }
    holds = expression.evaluate(answers) == YES
    possible = np.array([sum(case.least for case in row) <= 1 for row in rows])
    path = ("signature", "condition")
    if not holds.any():
        yield finding("K206", document, path, "it can never hold: its clauses contradict each other")
    elif not (holds & possible).any():
        yield finding("K212", document, path, "it can never hold: the shares it asks for are more than the whole")
    elif holds[possible].all():
        yield finding("K206", document, path, "it always holds: whatever the clauses answer")


def _empty(document: Document, name: str, clause: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a comparison that always or never holds, or that only chance decides (K207)."""
    path = ("signature", "clauses", name)
    feature = catalogues().features.get(clause.get("feature", ""))
    operator = next((key for key in NUMERIC if key in clause), None)
    if feature is None or operator is None or {"per", "slope_over"} & clause.keys():
        return
    bound = clause[operator]
    if not feature.low <= bound <= feature.high:
        return  # K205 has said so
    always = (operator == "gte" and bound == feature.low) or (operator == "lte" and bound == feature.high)
    never = (operator == "lt" and bound == feature.low) or (operator == "gt" and bound == feature.high)
    if always or never:
        what = f"{feature.name} {operator} {bound:g} {'always' if always else 'never'} holds"
        hint = f"it lies between {feature.low:g} and {feature.high:g}"
        yield finding("K207", document, (*path, operator), what, hint)
    elif operator in ("eq", "neq") and feature.name.endswith(_MEASURED) and bound not in _ENDS.get(feature.unit, (0,)):
        what = f"{feature.name} is measured: to equal {bound:g} is chance"
        yield finding("K207", document, (*path, operator), what, "a bound, or two", on_key=True)


def _thing(name: str, clause: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what a clause is about: clauses about the same depend on each other."""
    if "share" in clause:
        return "share", clause["share"]
    if "fact" in clause:
        fact = catalogues().facts.get(clause["fact"])
        alone = name if fact is None or fact.type == "list" else ""  # one list may hold this and that
        return "fact", clause["fact"], clause.get("entity"), alone
    return (
        "feature", clause["feature"], clause.get("entity"), clause.get("per"), clause.get("slope_over"),
        "deviates" in clause, clause.get("against", "past"), "by_ratio" in clause,
    )  # fmt: skip


def _cases(clauses: Mapping[str, Mapping[str, Any]]) -> list[_Case]:
    """Return the ways in which clauses about one thing can be answered."""
    found: dict[tuple[tuple[str, bool], ...], float] = {}
    share = any("share" in clause for clause in clauses.values())
    for value in _values(clauses):
        answers = tuple((name, _answer(clause, value)) for name, clause in clauses.items())
        found.setdefault(answers, float(value) if share and not isinstance(value, str) else 0.0)
    if any(clause.get("optional") for clause in clauses.values()):  # absent
        found.setdefault(tuple((name, False) for name in clauses), 0.0)
    return [_Case(answers, least) for answers, least in found.items()]


def _values(clauses: Mapping[str, Mapping[str, Any]]) -> list[float | str | bool]:
    """Return the values that can be told apart, numbers rising."""
    operands = [clause[key] for clause in clauses.values() for key in FACT_OPERATORS if key in clause]
    flat = [each for operand in operands for each in (operand if isinstance(operand, list) else [operand])]
    if any(isinstance(each, bool) for each in flat):
        return [True, False]
    texts = {each for each in flat if isinstance(each, str)}
    if texts:
        return [*sorted(texts), _OTHER]
    low, high = _bounds(next(iter(clauses.values())))
    bounds = {float(each) for each in flat}
    for clause in clauses.values():
        if "deviates" in clause:
            distance = float(clause.get("by_sigma", clause.get("by_ratio", 0.0)))
            bounds.add(distance if clause["deviates"] == "up" else -distance)
    edges = sorted(bounds)
    low, high = min((low, *edges)), max((high, *edges))  # of what is out of range K205 has told
    between = [(left + right) / 2 for left, right in pairwise(edges)]
    outside = [edges[0] - 1 - abs(edges[0]), edges[-1] + 1 + abs(edges[-1])] if edges else []
    inside = [each for each in (*edges, *between, *outside, low, high) if low <= each <= high and math.isfinite(each)]
    return [*sorted(set(inside))] or [0.0]


def _bounds(clause: Mapping[str, Any]) -> tuple[float, float]:
    if "share" in clause:
        return 0.0, 1.0
    feature = catalogues().features.get(clause.get("feature", ""))
    if feature is None or {"per", "slope_over", "deviates"} & clause.keys():
        return -math.inf, math.inf
    return feature.low, feature.high


def _answer(clause: Mapping[str, Any], value: float | str | bool) -> bool:
    if "deviates" in clause:
        distance = float(clause.get("by_sigma", clause.get("by_ratio", 0.0)))
        return float(value) >= distance if clause["deviates"] == "up" else -float(value) >= distance
    operator = next(key for key in FACT_OPERATORS if key in clause)
    operand = clause[operator]
    if "fact" in clause:
        return bool(fact_holds(value, operator, tuple(map(str, operand)) if isinstance(operand, list) else operand))
    return compare(float(value), operator, float(operand))
