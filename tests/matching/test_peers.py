"""One of many against the others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.matching.matcher import Matcher
from unveil.matching.peers import LIKENESS, MIN_FOR_SIGMA, expected_each, expected_of, likeness
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact_catalogue import FACTS
from unveil.records.match import Answer

if TYPE_CHECKING:
    from types import SimpleNamespace

GPUS = tuple(Entity(EntityKind.GPU, f"GPU-{number}") for number in range(4))


@given(st.lists(st.one_of(st.integers(-9, 9).map(float), st.just(math.nan)), max_size=12))
def test_all_at_once_gives_what_one_after_another_gives(values: list[float]) -> None:
    centre, sigma = expected_each(np.array(values))
    for index, value in enumerate(values):
        others = [other for place, other in enumerate(values) if place != index and not math.isnan(other)]
        found = None if math.isnan(value) else expected_of(others)
        if found is None:
            assert math.isnan(centre[index])
        else:
            assert centre[index] == found[0]
            assert sigma[index] == found[1] or (math.isnan(sigma[index]) and math.isnan(found[1]))


def test_too_few_peers_have_a_median_and_no_spread() -> None:
    assert expected_of([]) is None
    for count in range(1, MIN_FOR_SIGMA + 1):
        found = expected_of([5.0] * count)
        assert found is not None
        assert found[0] == 5.0
        assert math.isnan(found[1]) is (count < MIN_FOR_SIGMA)


@pytest.mark.parametrize("kind", list(LIKENESS))
def test_every_fact_in_which_peers_agree_is_in_the_catalogue(kind: EntityKind) -> None:
    assert FACTS[LIKENESS[kind]].per is kind


def test_cgroups_are_peers_below_the_same_one(build: SimpleNamespace) -> None:
    pods = [Entity(EntityKind.CGROUP, key) for key in ("/kubepods/pod1", "/kubepods/pod2", "/system.slice/ssh.service")]
    assert len({likeness(pod, build.facts()) for pod in pods}) == 2


def _slow(build: SimpleNamespace, **more: object) -> Matcher:
    clause = build.feature("clock", "down", 0.1, against="peers", unit="ratio", **more)
    return Matcher([build.fingerprint("clock", clause, group_by=EntityKind.GPU)])


def _clocks(*values: float) -> dict[tuple[str, Entity], float]:
    return {("memory.clock.mean", gpu): value for gpu, value in zip(GPUS, values, strict=False)}


def test_the_one_gpu_that_is_slower_than_the_others_is_found(build: SimpleNamespace) -> None:
    matches = _slow(build).evaluate(build.vector(_clocks(1700.0, 1710.0, 1200.0, 1690.0)), build.facts())
    assert [match.entity for match in matches] == [GPUS[2]]
    (clause,) = matches[0].clauses
    assert clause.threshold == "10 % from the median of 3 peers, 1700"
    assert (clause.value, clause.operator) == (1200.0, "down")


def test_gpus_of_another_model_are_no_peers(build: SimpleNamespace) -> None:
    models = build.facts({("gpu.name", gpu): "L4" if gpu is GPUS[2] else "H200" for gpu in GPUS})
    matcher = _slow(build)
    assert matcher.evaluate(build.vector(_clocks(1700.0, 1710.0, 1200.0, 1690.0)), models) == ()
    explained = matcher.explain("some_fingerprint", GPUS[2])
    assert explained is not None
    assert explained.answer is Answer.UNKNOWN
    assert explained.clauses[0].reason == "no other gpu like it has a value"


def test_a_ratio_is_compared_with_that_of_the_peers(build: SimpleNamespace) -> None:
    values = _clocks(1000.0, 2000.0, 400.0) | {
        ("memory.power.mean", gpu): power for gpu, power in zip(GPUS, (100.0, 200.0, 100.0), strict=False)
    }
    matches = _slow(build, per="memory.power.mean").evaluate(build.vector(values), build.facts())
    assert [match.entity for match in matches] == [GPUS[2]]
    assert matches[0].clauses[0].subject == "ratio memory.clock.mean per memory.power.mean"
