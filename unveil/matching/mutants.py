"""Fingerprints that are a little wrong: what a fingerprint's own cases must tell from the right one.

A case file that passes for a mutant, too, does not test what was changed: a clause that nobody looks at, a threshold
that could as well be another, a hold that is never waited for.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from unveil.matching.condition import KEYWORDS
from unveil.records.correlation import Correlation
from unveil.records.fingerprint import FactClause, FeatureClause, Fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.records.fingerprint import Clause

Subject = TypeVar("Subject", Fingerprint, Correlation)

NUDGE = 0.1
"""Share by which a threshold is moved."""

_OPPOSITE = {
    "lt": "gte", "lte": "gt", "gt": "lte", "gte": "lt", "eq": "neq", "neq": "eq",
    "in": "not_in", "not_in": "in", "up": "down", "down": "up",
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*")
_OTHER_WORD = {"and": "or", "or": "and", "all": "any", "any": "all"}


def mutants(fingerprint: Fingerprint) -> Iterator[tuple[str, Fingerprint]]:
    """Yield what was changed, in words, and the changed fingerprint.

    Each clause is turned into its opposite, has its threshold moved by a tenth up and down (zero cannot be), and
    becomes optional or no longer so; in the condition each ``and``, ``or``, ``all`` and ``any`` becomes the other,
    each name is negated and each ``not`` removed; the hold is a second shorter and longer.
    """
    for index, clause in enumerate(fingerprint.clauses):
        for what, changed in _clauses(clause):
            clauses = (*fingerprint.clauses[:index], changed, *fingerprint.clauses[index + 1 :])
            yield f"clause {clause.name}: {what}", replace(fingerprint, clauses=clauses)
    for what, condition in _conditions(fingerprint.condition):
        yield f"condition: {what}", replace(fingerprint, condition=condition)
    yield from _holds(fingerprint)


def correlation_mutants(correlation: Correlation) -> Iterator[tuple[str, Correlation]]:
    """Yield what was changed, in words, and the changed correlation.

    It counts one fewer and one more, looks a tenth shorter and longer, does without each fingerprint, minds the order
    or no longer does, and holds a second shorter and longer.
    """
    if correlation.type in ("value_count", "event_count"):
        for at_least in (correlation.at_least - 1, correlation.at_least + 1):
            yield f"at least {at_least}", replace(correlation, at_least=at_least)
    else:
        other = "temporal" if correlation.type == "temporal_ordered" else "temporal_ordered"
        yield f"{other} for {correlation.type}", replace(correlation, type=other)
    if len(correlation.fingerprints) > 1:
        for name in correlation.fingerprints:
            left = tuple(each for each in correlation.fingerprints if each != name)
            yield f"without {name}", replace(correlation, fingerprints=left)
    for factor in (1 - NUDGE, 1 + NUDGE):
        timespan_s = correlation.timespan_s * factor
        yield f"timespan: {timespan_s:g}s", replace(correlation, timespan_s=timespan_s)
    yield from _holds(correlation)


def _holds(subject: Subject) -> Iterator[tuple[str, Subject]]:
    for change_s in (-1.0, 1.0):
        hold_s = max(0.0, subject.hold_s + change_s)
        if hold_s != subject.hold_s:
            yield f"for: {hold_s:g}s", replace(subject, hold_s=hold_s)


def _clauses(clause: Clause) -> Iterator[tuple[str, Clause]]:
    opposite = _OPPOSITE[clause.operator]
    yield f"{opposite} for {clause.operator}", replace(clause, operator=opposite)
    if isinstance(clause, FeatureClause):
        yield from _measures(clause)
    yield f"optional is {str(not clause.optional).lower()}", replace(clause, optional=not clause.optional)
    threshold = clause.operand if isinstance(clause, FactClause) else clause.threshold
    if isinstance(threshold, bool) or not isinstance(threshold, float | int) or threshold == 0:
        return
    for moved in (threshold * (1 - NUDGE), threshold * (1 + NUDGE)):
        what = f"{moved:g} for {threshold:g}"
        if isinstance(clause, FactClause):
            yield what, replace(clause, operand=moved)
        else:
            yield what, replace(clause, threshold=moved)


def _measures(clause: FeatureClause) -> Iterator[tuple[str, Clause]]:
    """Yield clauses that compare something else, or with something else."""
    if clause.operator in ("up", "down") and not clause.per:
        other = "past" if clause.against == "peers" else "peers"
        yield f"against {other}", replace(clause, against=other)
    if clause.per:
        yield f"not per {clause.per}", replace(clause, per="", per_entity=None)
    for factor in (1 - NUDGE, 1 + NUDGE) if clause.slope_s else ():
        yield f"slope over {clause.slope_s * factor:g}s", replace(clause, slope_s=clause.slope_s * factor)


def _conditions(condition: str) -> Iterator[tuple[str, str]]:
    for found in _WORD.finditer(condition):
        word = found.group()
        if word in _OTHER_WORD:
            instead = _OTHER_WORD[word]
        elif word == "not":
            instead = ""
        elif word in KEYWORDS or "*" in word:
            continue
        else:
            instead = f"(not {word})"
        what = f"{instead or 'nothing'} for {word} at offset {found.start()}"
        yield what, condition[: found.start()] + instead + condition[found.end() :]
