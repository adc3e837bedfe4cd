"""Fingerprints that are a little wrong: what a fingerprint's own cases must tell from the right one.

A case file that passes for a mutant, too, does not test what was changed: a clause that nobody looks at, a threshold
that could as well be another, a hold that is never waited for.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.matching.condition import KEYWORDS
from unveil.records.fingerprint import FactClause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.records.fingerprint import Clause, Fingerprint

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
    for change_s in (-1.0, 1.0):
        hold_s = max(0.0, fingerprint.hold_s + change_s)
        if hold_s != fingerprint.hold_s:
            yield f"for: {hold_s:g}s", replace(fingerprint, hold_s=hold_s)


def _clauses(clause: Clause) -> Iterator[tuple[str, Clause]]:
    opposite = _OPPOSITE[clause.operator]
    yield f"{opposite} for {clause.operator}", replace(clause, operator=opposite)
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
