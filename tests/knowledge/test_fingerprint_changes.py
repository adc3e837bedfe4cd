"""Whether a changed fingerprint matches more or less; held against the matcher's own comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.knowledge.change import Effect
from unveil.knowledge.fingerprint_changes import clause_changes, fingerprint_changes
from unveil.matching.clauses import compare
from unveil.records.entity import EntityKind
from unveil.records.fingerprint import Clause, FactClause, FeatureClause, Fingerprint, ShareClause
from unveil.records.subsystem import Subsystem


def feature(operator: str, threshold: float, name: str = "a") -> FeatureClause:
    return FeatureClause(name=name, feature="cpu.busy.rate", entity=None, operator=operator, threshold=threshold)


def fact(operator: str, operand: object, name: str = "f") -> FactClause:
    return FactClause(name=name, fact="memory.thp_enabled", entity=None, operator=operator, operand=operand)  # type: ignore[arg-type]  # any fact value


def fingerprint(condition: str, *clauses: Clause) -> Fingerprint:
    return Fingerprint(
        name="f", id="1", title="t", status="test", level="low", description="d", group_by=EntityKind.HOST,
        clauses=clauses, condition=condition, hold_s=5.0, keep_firing_s=15.0, subsystem=Subsystem.CPU,
    )  # fmt: skip


def effects(old: Fingerprint, new: Fingerprint) -> list[tuple[str, str]]:
    return [(str(effect), what) for effect, what in fingerprint_changes(old, new)]


@given(
    st.sampled_from(("lt", "lte", "gt", "gte")), st.integers(-3, 3),
    st.sampled_from(("lt", "lte", "gt", "gte")), st.integers(-3, 3),
)  # fmt: skip
def test_tighter_means_that_fewer_values_satisfy_it(one: str, old: int, other: str, new: int) -> None:
    told = list(clause_changes(feature(one, old), feature(other, new)))
    values = [half / 2 for half in range(-10, 11)]
    was, now = (
        {value for value in values if compare(value, *each)} for each in ((one, float(old)), (other, float(new)))
    )
    if (one, old) == (other, new):
        assert told == []
        return
    ((effect, _),) = told
    if effect is Effect.TIGHTENED:
        assert now < was
    elif effect is Effect.LOOSENED:
        assert was < now
    else:
        assert not now < was
        assert not was < now


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        (feature("up", 2), feature("up", 3), "tightened"),
        (feature("down", 3), feature("down", 2), "loosened"),
        (feature("up", 2), feature("down", 2), "changed"),
        (fact("in", ("a", "b")), fact("in", ("a",)), "tightened"),
        (fact("not_in", ("a",)), fact("not_in", ("a", "b")), "tightened"),
        (fact("not_in", ("a", "b")), fact("not_in", ("a",)), "loosened"),
        (fact("in", ("a",)), fact("in", ("b",)), "changed"),
        (fact("in", ("a",)), fact("not_in", ("a",)), "changed"),
        (fact("eq", "a"), fact("eq", "b"), "changed"),
        (fact("gt", 1), fact("gt", 2), "tightened"),
        (feature("gt", 1), fact("gt", 1), "changed"),
        (feature("gt", 1), replace(feature("gt", 1), entity=EntityKind.NODE), "changed"),
        (ShareClause(name="s", subsystem=Subsystem.CPU, operator="gte", threshold=0.3),
         ShareClause(name="s", subsystem=Subsystem.CPU, operator="gte", threshold=0.2), "loosened"),
    ],
)  # fmt: skip
def test_each_operator_knows_which_way_is_tighter(old: Clause, new: Clause, effect: str) -> None:
    assert [str(told) for told, _ in clause_changes(old, new)] == [effect]


def test_what_is_tighter_under_not_loosens_the_fingerprint() -> None:
    old, new = (fingerprint("a and not b", feature("gt", 1), feature("gt", limit, "b")) for limit in (5, 9))
    assert effects(old, new) == [("loosened", "clause b: cpu.busy.rate gt 5 → cpu.busy.rate gt 9")]
    old, new = (fingerprint("a and b or a and not b", feature("gt", 1), feature("gt", limit, "b")) for limit in (5, 9))
    assert effects(old, new) == [("changed", "clause b: cpu.busy.rate gt 5 → cpu.busy.rate gt 9")]


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ("a and b", "a or b", "loosened"),
        ("a or b", "a", "tightened"),
        ("a", "b", "changed"),
        ("a and b", "b and a", "text"),
        ("not (a or b)", "not a and not b", "text"),
        ("2 of *", "a and b", "text"),
    ],
)
def test_conditions_are_compared_by_what_they_mean(old: str, new: str, effect: str) -> None:
    clauses = (feature("gt", 1), feature("gt", 2, "b"))
    told = effects(fingerprint(old, *clauses), fingerprint(new, *clauses))
    assert [each for each, what in told if what.startswith("condition")] == [effect]


def test_a_clause_that_came_or_went_is_told_with_what_it_does_to_the_condition() -> None:
    one, two = feature("gt", 1), feature("lt", 9, "b")
    assert effects(fingerprint("a", one), fingerprint("a and b", one, two)) == [
        ("added", "clause b (cpu.busy.rate lt 9) is new"),
        ("tightened", "condition a → a and b"),
    ]
    assert effects(fingerprint("any of *", one, two), fingerprint("any of *", one)) == [
        ("removed", "clause b (cpu.busy.rate lt 9) is gone"),
        ("tightened", "condition any of *, over other clauses"),
    ]


def test_time_fixes_optional_and_prose_are_told() -> None:
    old = fingerprint("a", feature("gt", 1))
    new = replace(
        old, hold_s=3.0, remediations=("fix_it",), title="other", status="stable",
        clauses=(replace(feature("gt", 1), optional=True, note="why"),),
    )  # fmt: skip
    assert effects(old, new) == [
        ("changed", "status test → stable"),
        ("changed", "clause a: absent counts as no instead of unknown"),
        ("text", "clause a: note edited"),
        ("loosened", "for 5 s → 3 s"),
        ("risk", "fix fix_it is new"),
        ("text", "title edited"),
    ]


def test_conditions_over_too_many_clauses_are_changed_and_nothing_more_is_said() -> None:
    clauses = [feature("gt", 1, f"c{number}") for number in range(11)]
    old, new = fingerprint("all of *", *clauses), fingerprint("any of *", *clauses)
    assert effects(old, new) == [("changed", "condition all of * → any of *")]
