"""One clause on one entity: the answer, and the reason that a person reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.matching.clauses import Evidence, compare, deviation, deviations, fact_holds, judge, text_of
from unveil.matching.companions import companions
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable, FactValue
from unveil.records.match import Answer, ClauseResult

if TYPE_CHECKING:
    from types import SimpleNamespace

GPU = Entity(EntityKind.GPU, "GPU-1")


def judged(build: SimpleNamespace, clause: object, **brought: object) -> ClauseResult:
    evidence = Evidence(**{"vector": build.vector(), "facts": build.facts(), **brought})
    return judge(clause, companions(HOST, evidence.facts), EntityKind.HOST, evidence)


@pytest.mark.parametrize(
    ("operator", "below", "at", "above"),
    [
        ("lt", True, False, False),
        ("lte", True, True, False),
        ("gt", False, False, True),
        ("gte", False, True, True),
        ("eq", False, True, False),
        ("neq", True, False, True),
    ],
)
def test_a_comparison_means_what_its_name_says(operator: str, below: bool, at: bool, above: bool) -> None:
    assert [compare(value, operator, 2.0) for value in (1.0, 2.0, 3.0)] == [below, at, above]


@pytest.mark.parametrize("unit", ["sigma", "ratio"])
def test_distances_of_many_are_those_of_each(unit: str) -> None:
    values = (0.0, -0.0, 3.0, -7.5, 1e300, 1e-300)
    centres = (0.0, 1.0, -2.0, 1e-12, -1e300)
    sigmas = (0.0, 0.3, 1e-9, math.nan)
    asked = [(value, centre, sigma) for value in values for centre in centres for sigma in sigmas]
    found = deviations(*np.array(asked).T, np.full(len(asked), unit == "ratio"))
    assert np.array_equal(found, [deviation(*each, unit) for each in asked], equal_nan=True)
    absent = deviations(*np.array([(math.nan, 0.0, 1.0), (1.0, math.nan, math.nan)]).T, np.array([unit == "ratio"] * 2))
    assert np.isnan(absent).all()


def test_an_unknown_operator_is_an_error() -> None:
    with pytest.raises(ValueError, match="like"):
        compare(1.0, "like", 2.0)


@pytest.mark.parametrize(
    ("value", "operator", "operand", "holds"),
    [
        ("never", "in", ("never", "madvise"), True),
        ("always", "in", ("never", "madvise"), False),
        ("always", "not_in", ("never", "madvise"), True),
        ("never", "eq", "never", True),
        ("never", "neq", "never", False),
        (2.0, "in", ("1", "2"), True),
        (0.5, "in", ("0.5",), True),
        (True, "in", ("true",), True),
        (("irqbalance", "tuned"), "in", ("tuned", "numad"), True),
        (("irqbalance",), "in", ("tuned", "numad"), False),
        (("irqbalance",), "not_in", ("tuned",), True),
        ((), "not_in", ("tuned",), True),
        (("a", "b"), "eq", ("b", "a"), True),
        (("a", "b"), "neq", ("b",), True),
        (3.0, "gte", 3.0, True),
        (True, "eq", True, True),
        (True, "eq", 1.0, None),
        (1.0, "eq", True, None),
        ("3", "gte", 3.0, None),
        ("3", "eq", 3.0, None),
        ("b", "gt", "a", None),
        (("a",), "eq", "a", None),
    ],
)
def test_a_fact_is_compared_with_its_like_or_not_at_all(
    value: FactValue, operator: str, operand: FactValue, holds: bool | None
) -> None:
    assert fact_holds(value, operator, operand) is holds


@pytest.mark.parametrize(
    ("value", "text"),
    [("never", "never"), (2.0, "2"), (0.25, "0.25"), (True, "true"), (("a", "b"), "a, b"), (200e6, "200000000")],
)
def test_values_are_shown_as_a_person_writes_them(value: FactValue, text: str) -> None:
    assert text_of(value) == text


def test_a_feature_that_is_as_asked(build: SimpleNamespace) -> None:
    result = judged(build, build.feature("dirty", "gte", 0.7), vector=build.vector(dirty=0.9))
    assert result == ClauseResult(
        name="dirty",
        subject="feature memory.dirty.mean",
        operator="gte",
        threshold="0.7",
        value=0.9,
        answer=Answer.MATCH,
    )


def test_an_absent_feature_is_unknown_with_the_reason(build: SimpleNamespace) -> None:
    for vector in (build.vector(), build.vector(dirty=math.nan)):
        result = judged(build, build.feature("dirty", "gte", 0.7), vector=vector)
        assert (result.answer, result.value) == (Answer.UNKNOWN, None)
        assert result.reason == "the host does not give memory.dirty.mean"


def test_an_absent_feature_counts_as_no_when_it_is_optional(build: SimpleNamespace) -> None:
    result = judged(build, build.feature("dirty", "gte", 0.7, optional=True))
    assert result.answer is Answer.NO_MATCH
    assert result.reason.endswith("optional, so it counts as no")


def test_a_fact_that_the_host_does_not_tell_gives_the_hosts_own_reason(build: SimpleNamespace) -> None:
    table = FactTable((Fact(name="memory.thp", value=None, reason="no such file"),))
    assert judged(build, build.fact("thp", "eq", "never"), facts=table).reason == "no such file"
    assert judged(build, build.fact("thp", "eq", "never")).reason == "the host does not tell memory.thp of host"


def test_a_fact_of_another_type_is_unknown_and_shown(build: SimpleNamespace) -> None:
    result = judged(build, build.fact("thp", "gte", 1.0), facts=build.facts(thp="never"))
    assert (result.answer, result.value) == (Answer.UNKNOWN, "never")
    assert result.reason == "'never' cannot be compared with it"


def test_numbers_of_facts_stay_numbers_and_the_rest_becomes_text(build: SimpleNamespace) -> None:
    table = build.facts(ratio=20.0, on=True, managers=("a", "b"))
    assert judged(build, build.fact("ratio", "lt", 30.0), facts=table).value == 20.0
    assert judged(build, build.fact("on", "eq", True), facts=table).value == "true"
    assert judged(build, build.fact("managers", "in", ("a",)), facts=table).value == "a, b"


@pytest.mark.parametrize(
    ("direction", "value", "answer"),
    [
        ("up", 1.5, Answer.MATCH),
        ("up", 1.4, Answer.NO_MATCH),
        ("up", 0.0, Answer.NO_MATCH),
        ("down", 0.5, Answer.MATCH),
        ("down", 0.6, Answer.NO_MATCH),
        ("down", 2.0, Answer.NO_MATCH),
    ],
)
def test_a_deviation_is_signed_and_counted_in_sigmas(
    build: SimpleNamespace, direction: str, value: float, answer: Answer
) -> None:
    reference = build.reference({("memory.clock.mean", HOST): (1.0, 0.25)})
    clause = build.feature("clock", direction, 2.0)
    result = judged(build, clause, vector=build.vector(clock=value), expected=reference)
    assert result.answer is answer
    assert result.threshold == "2 sigma from 1 ± 0.25"


def test_a_deviation_without_a_reference_is_unknown_and_shows_the_value(build: SimpleNamespace) -> None:
    clause, vector = build.feature("clock", "down", 2.0), build.vector(clock=0.5)
    for expected in (None, build.reference()):
        result = judged(build, clause, vector=vector, expected=expected)
        assert (result.answer, result.value) == (Answer.UNKNOWN, 0.5)
        assert result.reason == "there is no reference for it yet"
    flat = build.reference({("memory.clock.mean", HOST): (1.0, 0.0)})
    assert judged(build, clause, vector=vector, expected=flat).reason == "its reference has no spread"


def test_a_share_is_unknown_while_there_is_nothing_to_attribute(build: SimpleNamespace) -> None:
    clause = build.share("dominated", "gte", 0.3)
    for attribution in (None, build.attribution()):
        assert judged(build, clause, attribution=attribution).answer is Answer.UNKNOWN
    assert judged(build, clause, attribution=build.attribution(memory=0.4)).answer is Answer.MATCH
    assert judged(build, clause, attribution=build.attribution(memory=0.2, cpu=0.8)).answer is Answer.NO_MATCH


def test_a_clause_about_a_companion_is_judged_on_it(build: SimpleNamespace) -> None:
    node = Entity(EntityKind.NODE, "1")
    table = build.facts({("gpu.node", GPU): 1.0})
    evidence = Evidence(vector=build.vector({("memory.free.mean", node): 5.0}), facts=table)
    clause = build.feature("free", "gt", 4.0, entity=EntityKind.NODE)
    assert judge(clause, companions(GPU, table), EntityKind.GPU, evidence).answer is Answer.MATCH
    alone = judge(clause, companions(GPU, build.facts()), EntityKind.GPU, evidence)
    assert (alone.answer, alone.reason) == (Answer.UNKNOWN, "no node is known to belong to it")
