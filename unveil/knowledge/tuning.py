"""``kb tune``: what another threshold of one clause would find, and what it would cost.

A copy of the fingerprint is made for each threshold, and all copies are held against the same windows, so a recording
is watched once. Labels of the fingerprint are labels of its copies.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from unveil.errors import BadInputError
from unveil.records.fingerprint import FactClause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.knowledge.backtest import Score
    from unveil.knowledge.labels import Interval
    from unveil.knowledge.yaml_positions import Document
    from unveil.records.fingerprint import Clause, Fingerprint

FACTORS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.5, 5.0)
_MARK = "@"  # no name of a fingerprint has it
_NUMBER = re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


def clause_of(fingerprint: Fingerprint, name: str) -> Clause:
    """Return a clause that has a threshold to tune.

    Raises:
        BadInputError: there is none of that name, or it does not compare with a number.
    """
    found = next((clause for clause in fingerprint.clauses if clause.name == name), None)
    if found is None:
        names = ", ".join(clause.name for clause in fingerprint.clauses)
        raise BadInputError(f"{fingerprint.name} has no clause {name!r}", hint=f"its clauses: {names}")
    if math.isnan(threshold_of(found)):
        raise BadInputError(f"clause {name} does not compare with a number")
    return found


def threshold_of(clause: Clause) -> float:
    """Return the number that a clause compares with, NaN where it is none."""
    value = clause.operand if isinstance(clause, FactClause) else clause.threshold
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def candidates(clause: Clause) -> tuple[float, ...]:
    """Return thresholds around that of a clause, the own one among them; a share stays below one.

    Raises:
        BadInputError: there is no *around* zero.
    """
    own = threshold_of(clause)
    if own == 0:
        raise BadInputError(f"clause {clause.name} compares with 0", hint="name thresholds with --values 0.1,0.2,0.5")
    values = {own, *(float(f"{own * factor:.3g}") for factor in FACTORS if factor != 1.0)}
    bounded = 0 < own < 1
    return tuple(sorted(value for value in values if not bounded or value < 1))


def variants(fingerprint: Fingerprint, clause: str, values: Sequence[float]) -> tuple[Fingerprint, ...]:
    """Return a copy of a fingerprint for each threshold of a clause."""
    return tuple(
        replace(
            fingerprint,
            name=variant_name(fingerprint.name, number),
            clauses=tuple(_moved(each, value) if each.name == clause else each for each in fingerprint.clauses),
        )
        for number, value in enumerate(values)
    )


def variant_name(fingerprint: str, number: int) -> str:
    """Return the name of a copy."""
    return f"{fingerprint}{_MARK}{number}"


def _moved(clause: Clause, value: float) -> Clause:
    return replace(clause, operand=value) if isinstance(clause, FactClause) else replace(clause, threshold=value)


def relabelled(intervals: Sequence[Interval], fingerprint: str, copies: Sequence[str]) -> tuple[Interval, ...]:
    """Return intervals in which the labels of a fingerprint are those of its copies, too."""
    return tuple(
        replace(each, labels=each.labels | set(copies)) if fingerprint in each.labels else each for each in intervals
    )


def merit(score: Score) -> tuple[float, ...]:
    """Return what makes one threshold better than another, the least first: false, missed, confused, poor coverage."""
    return (score.false_fires, score.intervals - score.found, score.other_fires)


def suggest(values: Sequence[float], scores: Sequence[Score], own: float) -> tuple[float | None, str]:
    """Return a threshold and why, or None and why not.

    The best ones are those of the least false fires, then of the fewest misses, then of the least confusion. Of these
    the own one stays when it is not at the edge of what was tried as good; else the middle of the longest run is taken,
    which has the most room on both sides.
    """
    if not scores or not scores[0].intervals:
        return None, "no recording is labelled with it: nothing tells what a threshold would miss"
    best = min(merit(score) for score in scores)
    if best[1] == scores[0].intervals:
        return None, "with none of these thresholds it is found: another clause holds it back"
    good = [merit(score) == best for score in scores]
    run = max(_runs(good), key=lambda each: (each[1] - each[0], own in values[each[0] : each[1]]))
    here = values.index(own) if own in values else -1
    if here >= 0 and good[here] and all(good[max(0, here - 1) : here + 2]):
        return own, "it stays: its neighbours do as well, so it has room on both sides"
    middle = (run[0] + run[1] - 1) // 2
    width = f"{values[run[0]]:g} to {values[run[1] - 1]:g} do equally well"
    return values[middle], f"{width}, and this is in their middle"


def _runs(good: Sequence[bool]) -> list[tuple[int, int]]:
    """Return (first, behind the last) of each run of true ones."""
    edges = [0, *(number for number in range(1, len(good)) if good[number] != good[number - 1]), len(good)]
    return [(begin, end) for begin, end in pairwise(edges) if good[begin]]


def rewritten(document: Document, text: str, clause: Clause, value: float) -> str:
    """Return the text of a fingerprint's file with another threshold in one clause, everything else as it is.

    Raises:
        BadInputError: the number is not where it should be.
    """
    written = document.data["signature"]["clauses"][clause.name]
    key = next((each for each in ("by_sigma", "by_ratio") if each in written), clause.operator)
    line, column = document.at(("signature", "clauses", clause.name, key))
    lines = text.splitlines(keepends=True)
    found = _NUMBER.match(lines[line - 1], column - 1)
    if found is None:
        raise BadInputError(f"{document.file}:{line}:{column}: no plain number stands here", hint="write it yourself")
    lines[line - 1] = f"{lines[line - 1][: found.start()]}{value:.12g}{lines[line - 1][found.end() :]}"
    return "".join(lines)
