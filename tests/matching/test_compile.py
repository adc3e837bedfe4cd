"""What fingerprints share is asked once; what cannot be evaluated is refused when it is compiled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.errors import BadInputError
from unveil.matching.compile import compile_program
from unveil.matching.condition import ConditionError
from unveil.records.entity import EntityKind

if TYPE_CHECKING:
    from types import SimpleNamespace

HOST = EntityKind.HOST


def test_a_feature_that_many_fingerprints_ask_for_is_one_row(build: SimpleNamespace) -> None:
    clause = build.feature("a", "gte", 1.0)
    program = compile_program(HOST, [build.fingerprint("a", clause, name=f"f{number}") for number in range(50)])
    assert program.rows == 1
    assert program.size == 1, "the same question of the same row is one leaf"
    assert program.roots.tolist() == [0] * 50


def test_each_kind_of_clause_has_its_rows(build: SimpleNamespace) -> None:
    fingerprint = build.fingerprint(
        "a and b and c and d",
        build.feature("a", "lt", 1.0),
        build.feature("b", "up", 2.0),
        build.fact("c", "eq", "never"),
        build.share("d", "gte", 0.5),
    )
    program = compile_program(HOST, [fingerprint])
    counts = (len(program.features), len(program.deviations), len(program.shares), len(program.facts))
    assert counts == (1, 1, 1, 1)
    assert not np.isnan(program.leaf_threshold).any()


@pytest.mark.parametrize(("value", "answer"), [(2.0, 1), (1.0, 1), (0.5, -1), (np.nan, 0), (np.inf, 1), (-np.inf, -1)])
def test_a_program_answers_yes_no_and_unknown(build: SimpleNamespace, value: float, answer: int) -> None:
    program = compile_program(HOST, [build.fingerprint("a", build.feature("a", "gte", 1.0))])
    rows = np.array([[value], [-value]])
    assert program.run(rows).fingerprints.tolist() == [[answer]]


def test_a_condition_that_does_not_fit_its_clauses_is_refused(build: SimpleNamespace) -> None:
    with pytest.raises(ConditionError):
        compile_program(HOST, [build.fingerprint("a and missing", build.feature("a", "gte", 1.0))])


@pytest.mark.parametrize("broken", [{"operator": "almost"}, {"threshold": float("nan")}])
def test_a_clause_that_cannot_be_evaluated_is_refused(build: SimpleNamespace, broken: dict[str, object]) -> None:
    with pytest.raises(BadInputError):
        compile_program(HOST, [build.fingerprint("a", replace(build.feature("a", "gte", 1.0), **broken))])


def test_nothing_to_compile_answers_nothing() -> None:
    program = compile_program(HOST, [])
    assert program.run(np.empty((0, 3))).fingerprints.shape == (0, 3)


def test_answers_stand_while_no_clause_has_another(build: SimpleNamespace) -> None:
    program = compile_program(HOST, [build.fingerprint("a", build.feature("a", "gte", 1.0))])
    first = program.run(np.array([[2.0], [-2.0]]))
    assert program.run(np.array([[3.0], [-3.0]]), first) is first
    other = program.run(np.array([[0.5], [-0.5]]), first)
    assert (first.fingerprints.tolist(), other.fingerprints.tolist()) == ([[1]], [[-1]])
