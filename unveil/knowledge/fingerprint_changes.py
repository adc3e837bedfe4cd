"""What differs between two versions of a fingerprint: does it match more now, or less?

A clause is *tightened* when fewer values satisfy it; under a *not* that loosens the fingerprint. Two conditions are
compared by all answers that their clauses can give, so a rewritten one of the same meaning is known as such.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from unveil.knowledge.change import Effect, bound, listed, opposite
from unveil.matching.clauses import subject_of, text_of, threshold_of
from unveil.matching.condition import NO, UNKNOWN, YES, AtLeast, Not, parse_condition
from unveil.records.fingerprint import FactClause, FeatureClause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.knowledge.change import Told
    from unveil.matching.condition import Expression, Node
    from unveil.records.correlation import Correlation
    from unveil.records.fingerprint import Clause, Fingerprint

PROSE = (
    "title", "description", "author", "owner", "date", "references", "falsepositives", "fields", "tags", "metadata",
)  # fmt: skip
MAX_CLAUSES = 10  # three answers each: 59,049 rows to compare two conditions over


def fingerprint_changes(old: Fingerprint, new: Fingerprint) -> Iterator[Told]:
    """Yield the differences of two versions."""
    for what in ("name", "id", "status", "level", "group_by", "subsystem"):
        before, after = getattr(old, what), getattr(new, what)
        if before != after:
            yield Effect.CHANGED, f"{what} {before} → {after}"
    yield from _clauses(old, new)
    yield from _condition(old, new)
    yield from bound("for", old.hold_s, new.hold_s, more=Effect.TIGHTENED, unit=" s")
    yield from bound("keep_firing_for", old.keep_firing_s, new.keep_firing_s, more=Effect.CHANGED, unit=" s")
    yield from listed("fix", old.remediations, new.remediations, gone=Effect.REMOVED, came=Effect.RISK)
    yield from reworded(old, new, PROSE)


def correlation_changes(old: Correlation, new: Correlation) -> Iterator[Told]:
    """Yield the differences of two versions of a correlation."""
    for what in ("name", "id", "status", "level", "type", "group_by", "count_of"):
        before, after = getattr(old, what), getattr(new, what)
        if before != after:
            yield Effect.CHANGED, f"{what} {before} → {after}"
    if old.effect != new.effect:  # while it fires, fixes were held back and are no more, or the reverse
        yield Effect.TIGHTENED if new.effect == "no_remediation" else Effect.RISK, f"effect {old.effect} → {new.effect}"
    counts = new.type in ("value_count", "event_count")
    gone, came = (Effect.TIGHTENED, Effect.LOOSENED) if counts else (Effect.LOOSENED, Effect.TIGHTENED)
    yield from listed("fingerprint", old.fingerprints, new.fingerprints, gone=gone, came=came)
    yield from bound("at least", old.at_least, new.at_least, more=Effect.TIGHTENED)
    yield from bound("timespan", old.timespan_s, new.timespan_s, more=Effect.LOOSENED, unit=" s")
    yield from bound("for", old.hold_s, new.hold_s, more=Effect.TIGHTENED, unit=" s")
    yield from bound("keep_firing_for", old.keep_firing_s, new.keep_firing_s, more=Effect.CHANGED, unit=" s")
    yield from reworded(old, new, tuple(name for name in PROSE if name not in ("fields", "metadata")))


def reworded(old: object, new: object, fields: tuple[str, ...]) -> Iterator[Told]:
    """Yield which fields that are told, not evaluated, were edited."""
    edited = [field for field in fields if getattr(old, field) != getattr(new, field)]
    if edited:
        yield Effect.TEXT, f"{', '.join(edited)} edited"


def _clauses(old: Fingerprint, new: Fingerprint) -> Iterator[Told]:
    before, after = ({clause.name: clause for clause in each.clauses} for each in (old, new))
    signs = _signs(_bound(new).root)
    for name, clause in before.items():
        if name not in after:
            yield Effect.REMOVED, f"clause {name} ({asked(clause)}) is gone"
            continue
        for effect, what in clause_changes(clause, after[name]):
            turned = {frozenset({True}): effect, frozenset({False}): opposite(effect)}
            yield turned.get(frozenset(signs.get(name, ())), Effect.CHANGED), f"clause {name}: {what}"
        if clause.note != after[name].note:
            yield Effect.TEXT, f"clause {name}: note edited"
    for name, clause in after.items():
        if name not in before:
            yield Effect.ADDED, f"clause {name} ({asked(clause)}) is new"


def clause_changes(old: Clause, new: Clause) -> Iterator[Told]:
    """Yield what changed in a clause, tightened or loosened as it stands by itself."""
    if asked(old) != asked(new):
        yield _strictness(old, new), f"{asked(old)} → {asked(new)}"
    if old.optional != new.optional:
        said = "no instead of unknown" if new.optional else "unknown instead of no"
        yield Effect.CHANGED, f"absent counts as {said}"


def asked(clause: Clause) -> str:
    """Return what a clause asks for, in full: subject, entity, operator, threshold."""
    entity = f"[{clause.entity}]" if isinstance(clause, FactClause | FeatureClause) and clause.entity else ""
    return f"{_subject(clause)}{entity} {clause.operator} {_threshold(clause)}"


def _subject(clause: Clause) -> str:
    if isinstance(clause, FactClause):
        return f"fact {clause.fact}"
    return (
        subject_of(clause).removeprefix("feature ")
        if isinstance(clause, FeatureClause)
        else (f"share {clause.subsystem}")
    )


def _threshold(clause: Clause) -> str:
    if isinstance(clause, FactClause):
        return text_of(clause.operand)
    if not isinstance(clause, FeatureClause):
        return f"{clause.threshold:.10g}"
    return threshold_of(clause) + (" from peers" if clause.against == "peers" else "")


def _strictness(old: Clause, new: Clause) -> Effect:
    """Return whether fewer (tightened) or more (loosened) values satisfy the new clause; changed where neither."""
    same_place = getattr(old, "entity", None) == getattr(new, "entity", None)
    if type(old) is not type(new) or _subject(old) != _subject(new) or not same_place:
        return Effect.CHANGED
    if isinstance(old, FactClause) and isinstance(new, FactClause) and old.operator in ("in", "not_in"):
        before, after = (set(_items(each)) for each in (old, new))
        if old.operator != new.operator or not (before < after or after < before):
            return Effect.CHANGED
        return Effect.LOOSENED if (before < after) is (old.operator == "in") else Effect.TIGHTENED
    return _reaches(old, new)


def _reaches(old: Clause, new: Clause) -> Effect:
    before, after = _reach(old), _reach(new)
    if before is None or after is None or before[0] != after[0] or before == after:
        return Effect.CHANGED
    return Effect.TIGHTENED if after < before else Effect.LOOSENED


def _items(clause: FactClause) -> tuple[str, ...]:
    return tuple(map(text_of, clause.operand)) if isinstance(clause.operand, tuple) else (text_of(clause.operand),)


def _reach(clause: Clause) -> tuple[str, float, bool] | None:
    """Return (direction, reach, bound included): of one direction, a greater one is satisfied by more values."""
    threshold = clause.operand if isinstance(clause, FactClause) else clause.threshold
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        return None
    match clause.operator:
        case "lt" | "lte":
            return "below", float(threshold), clause.operator == "lte"
        case "gt" | "gte":
            return "above", -float(threshold), clause.operator == "gte"
        case "up" | "down":
            measure = (clause.operator, clause.against, clause.unit) if isinstance(clause, FeatureClause) else ()
            return " ".join(measure), -float(threshold), True
    return None


def _bound(fingerprint: Fingerprint) -> Expression:
    return parse_condition(fingerprint.condition).bind([clause.name for clause in fingerprint.clauses])


def _signs(node: Node, *, positive: bool = True) -> dict[str, set[bool]]:
    """Return for each clause whether it stands for (True) or against (False) the condition, or both."""
    if isinstance(node, Not):
        return _signs(node.operand, positive=not positive)
    if isinstance(node, AtLeast):
        signs: dict[str, set[bool]] = {}
        for operand in node.operands:
            for name, found in _signs(operand, positive=positive).items():
                signs.setdefault(name, set()).update(found)
        return signs
    return {getattr(node, "name", ""): {positive}}


def _condition(old: Fingerprint, new: Fingerprint) -> Iterator[Told]:
    before, after = _bound(old), _bound(new)
    if old.condition == new.condition and set(before.names) == set(after.names):
        return
    what = f"condition {old.condition} → {new.condition}"
    if old.condition == new.condition:  # a pattern covers other clauses now
        what = f"condition {new.condition}, over other clauses"
    names = sorted({*before.names, *after.names})
    if len(names) > MAX_CLAUSES:
        yield Effect.CHANGED, what
        return
    rows = np.array(list(product((NO, UNKNOWN, YES), repeat=len(names))), dtype=np.int8)
    answers = {name: rows[:, column] for column, name in enumerate(names)}
    was, now = before.evaluate(answers), after.evaluate(answers)
    if np.array_equal(was, now):
        yield Effect.TEXT, f"{what} (the same meaning)"
        return
    lost, gained = bool(np.any((was == YES) & (now != YES))), bool(np.any((was != YES) & (now == YES)))
    yield Effect.CHANGED if lost is gained else Effect.TIGHTENED if lost else Effect.LOOSENED, what
