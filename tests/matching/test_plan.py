"""Where everything stands: entities as columns, features and facts as rows, absent as NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.matching.clauses import Evidence
from unveil.matching.compile import compile_program
from unveil.matching.matcher import Matcher
from unveil.matching.plan import Places, Plan, SeenReference, entities_by_kind
from unveil.matching.slopes import Slopes
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector

if TYPE_CHECKING:
    from types import SimpleNamespace

    from numpy.typing import NDArray

GPU0, GPU1 = Entity(EntityKind.GPU, "GPU-0"), Entity(EntityKind.GPU, "GPU-1")
LAYOUT = FeatureLayout((FeatureId("memory.a.mean", GPU0), FeatureId("memory.b.mean", GPU1)))
FACTS = FactTable((Fact(name="memory.c", entity=GPU1, value="never"),))


def vector(*values: float) -> FeatureVector:
    return FeatureVector(window=1, wall_s=1.0, layout=LAYOUT, values=np.array(values))


def _values(evidence: Evidence) -> NDArray[np.float64]:
    return Places(LAYOUT, ()).values(evidence.vector, Slopes())


def test_entities_come_from_features_and_facts_and_the_host_is_always_there() -> None:
    assert entities_by_kind(LAYOUT, FACTS) == {EntityKind.GPU: [GPU0, GPU1], EntityKind.HOST: [HOST]}
    assert entities_by_kind(FeatureLayout(()), FactTable()) == {EntityKind.HOST: [HOST]}


def test_rows_hold_what_is_there_and_nan_what_is_not(build: SimpleNamespace) -> None:
    fingerprint = build.fingerprint(
        "a or b or c",
        build.feature("a", "gte", 1.0),
        build.feature("b", "gte", 1.0),
        build.fact("c", "eq", "never"),
        group_by=EntityKind.GPU,
    )
    program = compile_program(EntityKind.GPU, [fingerprint])
    plan = Plan(program, [GPU0, GPU1], Places(LAYOUT, ()), FACTS)
    evidence = Evidence(vector=vector(5.0, 7.0), facts=FACTS, expected=None, attribution=None)
    rows = plan.fill(_values(evidence), evidence, SeenReference())
    nan = np.nan
    np.testing.assert_array_equal(rows[: program.rows], [[5.0, nan], [nan, 7.0], [nan, 1.0]])
    np.testing.assert_array_equal(rows[program.rows :], -rows[: program.rows])


def test_what_the_reference_said_is_kept_for_the_explanation(build: SimpleNamespace) -> None:
    fingerprint = build.fingerprint("a", build.feature("a", "up", 2.0), group_by=EntityKind.GPU)
    program = compile_program(EntityKind.GPU, [fingerprint])
    plan = Plan(program, [GPU0, GPU1], Places(LAYOUT, ()), FACTS)
    reference = build.reference({("memory.a.mean", GPU0): (1.0, 2.0)})
    seen = SeenReference()
    evidence = Evidence(vector=vector(5.0, 7.0), facts=FACTS, expected=reference, attribution=None)
    rows = plan.fill(_values(evidence), evidence, seen)
    assert rows[0].tolist()[0] == 2.0, "(5 - 1) / 2"
    assert np.isnan(rows[0, 1])
    assert seen.lookup("memory.a.mean", GPU0) == (1.0, 2.0)
    assert seen.lookup("memory.a.mean", GPU1) is None


def test_what_is_expected_is_asked_once_for_all_windows_that_are_held_against_the_same(build: SimpleNamespace) -> None:
    fingerprint = build.fingerprint("a", build.feature("a", "up", 2.0), group_by=EntityKind.GPU)
    matcher = Matcher([fingerprint])
    asked: list[str] = []

    class Expecting:
        def __init__(self, centre: float) -> None:
            self.centre = centre

        def lookup(self, name: str, entity: Entity) -> tuple[float, float] | None:
            asked.append(f"{name} of {entity}")
            return self.centre, 2.0

    first, second = Expecting(1.0), Expecting(4.0)
    evidence = []
    for expecting, matches in ((first, 1), (first, 1), (second, 0)):
        assert len(matcher.evaluate(vector(5.0, 7.0), FACTS, expecting)) == matches
        assert matcher.evidence is not None
        evidence.append(matcher.evidence.expected)
    assert asked == ["memory.a.mean of gpu:GPU-0"] * 2
    assert evidence[0] is evidence[1]
    assert [each.lookup("memory.a.mean", GPU0) for each in evidence if each is not None] == [
        (1.0, 2.0), (1.0, 2.0), (4.0, 2.0)
    ]  # fmt: skip
