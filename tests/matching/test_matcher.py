"""The arrays against the plain evaluation, entities, unknowns and explanations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.errors import BadInputError
from unveil.matching.clauses import Evidence, judge_fingerprint
from unveil.matching.companions import companions
from unveil.matching.condition import ConditionError
from unveil.matching.matcher import Matcher
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import FactTable
from unveil.records.match import Answer

if TYPE_CHECKING:
    from types import SimpleNamespace

GPUS = tuple(Entity(EntityKind.GPU, f"GPU-{number}") for number in range(3))
NODE = Entity(EntityKind.NODE, "1")
PLACES = (HOST, NODE, *GPUS)
LEVELS = (0.0, 0.5, 1.0, math.nextafter(1.0, 2.0), 2.0)

level = st.sampled_from(LEVELS)
entity_kind = st.sampled_from([None, EntityKind.HOST, EntityKind.NODE])
numeric = st.sampled_from(["lt", "lte", "gt", "gte", "eq", "neq"])


@st.composite
def clauses(draw: st.DrawFn, build: SimpleNamespace, name: str) -> Any:
    more = {"optional": draw(st.booleans())}
    what = draw(st.sampled_from(["feature", "deviation", "peers", "ratio", "slope", "fact", "choice", "share"]))
    if what == "share":
        return build.share(name, draw(numeric), draw(level), **more)
    more["entity"] = draw(entity_kind)
    if what == "fact":
        operand = draw(st.one_of(level, st.booleans(), st.sampled_from(["a", "b"])))
        operator = draw(numeric if isinstance(operand, float) else st.sampled_from(["eq", "neq"]))
        return build.fact(name, operator, operand, fact=draw(st.sampled_from(["memory.x", "memory.y"])), **more)
    if what == "choice":
        operator = draw(st.sampled_from(["in", "not_in"]))
        return build.fact(name, operator, ("a", "1"), fact=draw(st.sampled_from(["memory.x", "memory.y"])), **more)
    feature = draw(st.sampled_from(["memory.f", "memory.g", "memory.h"]))
    operator = draw(st.sampled_from(["up", "down"]) if what in ("deviation", "peers") else numeric)
    if what in ("deviation", "peers"):
        more |= {"unit": draw(st.sampled_from(["sigma", "ratio"])), "against": "peers" if what == "peers" else "past"}
    if what == "ratio" or (what == "peers" and draw(st.booleans())):
        more |= {"per": "memory.g", "per_entity": draw(st.sampled_from([None, EntityKind.HOST]))}
    if what == "slope":
        more["slope_s"] = 3.0
    return build.feature(name, operator, draw(level), feature=feature, **more)


conditions = st.recursive(
    st.sampled_from(["a", "b", "c", "2 of *", "all of *", "any of *"]),
    lambda inner: st.one_of(
        inner.map("not ({})".format),
        st.tuples(inner, inner).map("({0[0]}) and ({0[1]})".format),
        st.tuples(inner, inner).map("({0[0]}) or ({0[1]})".format),
    ),
    max_leaves=6,
)


@st.composite
def hosts(draw: st.DrawFn, build: SimpleNamespace, wall_s: float) -> dict[str, Any]:
    """Return what a window brings: some features, facts, expectations and shares of a host with three GPUs."""
    features = {
        (name, place): draw(level) for name in ("memory.f", "memory.g") for place in PLACES if draw(st.booleans())
    }
    facts = {
        (name, place): draw(
            st.one_of(level, st.booleans(), st.sampled_from(["a", "b"]), st.just(("a", "c")), st.none())
        )
        for name in ("memory.x", "memory.y")
        for place in PLACES
        if draw(st.booleans())
    }
    facts |= {("gpu.node", gpu): 1.0 for gpu in GPUS if draw(st.booleans())}
    expected = {key: (draw(level), draw(level)) for key in features if draw(st.booleans())}
    return {
        "vector": build.vector(features, wall_s=wall_s),
        "facts": build.facts(facts),
        "expected": draw(st.sampled_from([None, build.reference(expected)])),
        "attribution": draw(st.sampled_from([None, build.attribution(), build.attribution(memory=0.5)])),
    }


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_arrays_answer_as_clause_after_clause_does(data: st.DataObject, build: SimpleNamespace) -> None:
    fingerprints = [
        build.fingerprint(
            data.draw(conditions),
            *(data.draw(clauses(build, name)) for name in "abc"),
            name=f"fingerprint_{number}",
            group_by=data.draw(st.sampled_from([EntityKind.HOST, EntityKind.GPU])),
        )
        for number in range(data.draw(st.integers(1, 4)))
    ]
    matcher = Matcher(fingerprints)
    for second in range(4):  # a window reuses the arrays of the one before, or has a plan of its own
        brought = data.draw(hosts(build, float(second)))
        matches = {(match.fingerprint, match.entity): match for match in matcher.evaluate(**brought)}
        unknown = matcher.unknown
        for fingerprint in fingerprints:
            for entity in (HOST, *GPUS):
                if entity.kind is not fingerprint.group_by or matcher.answer(fingerprint.name, entity) is None:
                    continue
                around = companions(entity, brought["facts"])
                answer, results = judge_fingerprint(fingerprint, around, Evidence(**brought, risen=matcher.risen))
                pair = (fingerprint.name, entity)
                assert matcher.answer(*pair) is answer
                assert (pair in matches) is (answer is Answer.MATCH)
                assert (pair in unknown) is (answer is Answer.UNKNOWN)
                explained = matcher.explain(*pair)
                assert explained is not None
                assert (explained.answer, explained.clauses) == (answer, results)


def test_a_match_carries_its_window_its_reasons_and_its_bindings(build: SimpleNamespace) -> None:
    matcher = Matcher([build.fingerprint("hot and on", build.feature("hot", "gt", 1.0), build.fact("on", "eq", True))])
    (match,) = matcher.evaluate(build.vector(hot=2.0, window=7, wall_s=50.0), build.facts(on=True))
    assert (match.window, match.wall_s, match.fingerprint, match.entity) == (7, 50.0, "some_fingerprint", HOST)
    assert [(result.name, result.value, result.answer) for result in match.clauses] == [
        ("hot", 2.0, Answer.MATCH),
        ("on", "true", Answer.MATCH),
    ]
    assert match.bindings == {}
    (match,) = matcher.evaluate(build.vector(hot=2.0), build.facts(on=True), wall_s=60.0)
    assert match.wall_s == 60.0


def test_each_entity_that_a_feature_or_a_fact_names_is_judged_by_itself(build: SimpleNamespace) -> None:
    hot = build.feature("hot", "gt", 1.0)
    matcher = Matcher([build.fingerprint("hot", hot, group_by=EntityKind.GPU)])
    features = {("memory.hot.mean", GPUS[0]): 2.0, ("memory.hot.mean", GPUS[1]): 0.0}
    matches = matcher.evaluate(build.vector(features), build.facts({("gpu.node", GPUS[2]): 1.0}))
    assert [match.entity for match in matches] == [GPUS[0]]
    assert matches[0].bindings == {"gpu": "GPU-0"}
    assert [matcher.answer("some_fingerprint", gpu) for gpu in GPUS] == ["match", "no_match", "unknown"]
    assert list(matcher.unknown) == [("some_fingerprint", GPUS[2])]
    assert len(matcher.unknown) == 1
    assert matcher.unknown.by_fingerprint() == {"some_fingerprint": 1}


def test_a_host_without_such_entities_has_no_answer_for_them(build: SimpleNamespace) -> None:
    matcher = Matcher([build.fingerprint("hot", build.feature("hot", "gt", 1.0), group_by=EntityKind.GPU)])
    assert matcher.evaluate(build.vector(hot=5.0), build.facts()) == ()
    assert matcher.answer("some_fingerprint", GPUS[0]) is None
    assert matcher.explain("some_fingerprint", GPUS[0]) is None
    assert ("some_fingerprint", GPUS[0]) not in matcher.unknown
    assert len(matcher.unknown) == 0


def test_before_the_first_window_nothing_is_known_or_unknown(build: SimpleNamespace) -> None:
    matcher = Matcher([build.fingerprint("hot", build.feature("hot", "gt", 1.0))])
    assert matcher.answer("some_fingerprint", HOST) is None
    assert matcher.explain("some_fingerprint", HOST) is None
    assert list(matcher.unknown) == []


def test_a_matcher_without_fingerprints_matches_nothing(build: SimpleNamespace) -> None:
    matcher = Matcher([])
    assert matcher.evaluate(build.vector(hot=5.0), build.facts()) == ()
    assert matcher.answer("some_fingerprint", HOST) is None


def test_the_unknowns_of_a_window_stay_when_the_next_one_comes(build: SimpleNamespace) -> None:
    matcher = Matcher([build.fingerprint("hot", build.feature("hot", "gt", 1.0))])
    table = build.facts()
    matcher.evaluate(build.vector(hot=math.nan), table)
    earlier = matcher.unknown
    matcher.evaluate(build.vector(hot=1.0), table)
    assert ("some_fingerprint", HOST) in earlier
    assert ("some_fingerprint", HOST) not in matcher.unknown
    assert "some_fingerprint" not in earlier


def test_an_explanation_keeps_what_was_expected_when_the_window_was_judged(build: SimpleNamespace) -> None:
    matcher = Matcher([build.fingerprint("clock", build.feature("clock", "down", 2.0))])
    reference = build.reference({("memory.clock.mean", HOST): (10.0, 1.0)})
    matcher.evaluate(build.vector(clock=5.0), build.facts(), reference)
    reference[("memory.clock.mean", HOST)] = (5.0, 1.0)  # the reference learns
    explained = matcher.explain("some_fingerprint", HOST)
    assert explained is not None
    assert explained.answer is Answer.MATCH
    assert explained.clauses[0].threshold == "2 sigma from 10 ± 1"


def test_a_clause_that_the_condition_leaves_out_is_explained_all_the_same(build: SimpleNamespace) -> None:
    clauses = (build.feature("hot", "gt", 1.0), build.feature("clock", "down", 2.0))
    matcher = Matcher([build.fingerprint("hot", *clauses)])
    reference = build.reference({("memory.clock.mean", HOST): (10.0, 1.0)})
    (match,) = matcher.evaluate(build.vector(hot=2.0, clock=5.0), build.facts(), reference)
    assert [result.answer for result in match.clauses] == [Answer.MATCH, Answer.MATCH]
    with pytest.raises(BadInputError):
        Matcher([build.fingerprint("hot", clauses[0], build.feature("cold", "like", 2.0))])


def test_the_reference_is_asked_once_and_only_for_what_a_clause_needs(build: SimpleNamespace) -> None:
    first = build.fingerprint("clock", build.feature("clock", "down", 2.0), name="first")
    second = build.fingerprint(
        "clock and hot", build.feature("clock", "up", 3.0), build.feature("hot", "gt", 1.0), name="second"
    )
    reference = build.reference()
    Matcher([first, second]).evaluate(build.vector(clock=1.0, hot=2.0, cold=3.0), build.facts(), reference)
    assert reference.asked == [("memory.clock.mean", HOST)]


def test_a_changed_shape_of_the_host_is_seen(build: SimpleNamespace) -> None:
    matcher = Matcher([build.fingerprint("hot and on", build.feature("hot", "gt", 1.0), build.fact("on", "eq", True))])
    off, on = build.facts(on=False), build.facts(on=True)
    vector = build.vector(cold=0.0, hot=2.0)
    assert [len(matcher.evaluate(vector, table)) for table in (off, on, on, off)] == [0, 1, 1, 0]
    assert len(matcher.evaluate(build.vector(hot=2.0, cold=0.0), on)) == 1


def test_all_entities_share_the_feature_of_the_host(build: SimpleNamespace) -> None:
    busy = build.feature("busy", "lt", 0.5, entity=EntityKind.HOST)
    matcher = Matcher([build.fingerprint("busy", busy, group_by=EntityKind.GPU)])
    table = build.facts({("gpu.node", gpu): 0.0 for gpu in GPUS})
    assert [match.entity for match in matcher.evaluate(build.vector(busy=0.1), table)] == list(GPUS)


def test_two_fingerprints_of_one_name_are_refused(build: SimpleNamespace) -> None:
    twice = build.fingerprint("hot", build.feature("hot", "gt", 1.0))
    with pytest.raises(BadInputError, match="some_fingerprint"):
        Matcher([twice, twice])


def test_a_condition_that_does_not_fit_is_refused_before_any_window(build: SimpleNamespace) -> None:
    with pytest.raises(ConditionError, match="'cold'"):
        Matcher([build.fingerprint("cold", build.feature("hot", "gt", 1.0))])


@pytest.mark.parametrize(("operator", "threshold"), [("like", 1.0), ("in", 1.0), ("gt", math.nan)])
def test_a_clause_that_cannot_be_evaluated_is_refused(operator: str, threshold: float, build: SimpleNamespace) -> None:
    with pytest.raises(BadInputError, match=r"compares with no number|cannot have the operator"):
        Matcher([build.fingerprint("hot", build.feature("hot", operator, threshold))])


def test_clauses_that_ask_the_same_are_evaluated_once(build: SimpleNamespace) -> None:
    hot, cold = build.feature("hot", "gt", 1.0), build.feature("cold", "lt", 1.0)
    fingerprints = [build.fingerprint("hot and cold", hot, cold, name=f"fingerprint_{number}") for number in range(50)]
    matcher = Matcher(fingerprints)
    assert matcher._programs[EntityKind.HOST].size == 3
    assert len(matcher.evaluate(build.vector(hot=2.0, cold=0.0), FactTable())) == 50
