"""What episodes mean together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unveil.matching.correlate import MAX_COUNTED, Correlator, made_of
from unveil.records.correlation import Correlation
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.match import Answer, Episode, EpisodeState, Match

GPUS = tuple(Entity(EntityKind.GPU, f"GPU-{number}") for number in range(4))


def correlation(type_: str, *fingerprints: str, **more: object) -> Correlation:
    made = Correlation(
        name="together", id="1", title="Two faults at once", status="test", level="low", description="", type=type_,
        fingerprints=fingerprints, group_by=EntityKind.HOST, timespan_s=60.0, hold_s=0.0, keep_firing_s=0.0,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]  # fields of the correlation


def episode(
    fingerprint: str, entity: Entity = HOST, *, fired_s: float = 0.0, last_s: float | None = None, **bindings: str
) -> Episode:
    match = Match(
        window=0, wall_s=fired_s, fingerprint=fingerprint, entity=entity, answer=Answer.MATCH, clauses=(),
        bindings=bindings,
    )  # fmt: skip
    return Episode(
        id=f"{fingerprint} {entity} {fired_s}", fingerprint=fingerprint, revision="", entity=entity,
        state=EpisodeState.FIRING, started_s=fired_s, fired_s=fired_s,
        last_s=fired_s if last_s is None else last_s, cleared_s=None, windows=1, last=match,
    )  # fmt: skip


def found(correlator: Correlator, *episodes: Episode, wall_s: float = 10.0) -> list[Entity]:
    return [match.entity for match in correlator.push(episodes, wall_s)]


def test_two_faults_on_one_thing_hold_for_that_thing() -> None:
    both = Correlator([correlation("temporal", "slow", "hot", group_by=EntityKind.GPU)])
    assert found(both, episode("slow", GPUS[0]), episode("hot", GPUS[1])) == []
    assert found(both, episode("slow", GPUS[0]), episode("hot", GPUS[0])) == [GPUS[0]]


def test_what_a_match_binds_belongs_to_the_group_and_what_it_does_not_is_left_out() -> None:
    on_node = Correlator([correlation("temporal", "slow", "full", group_by=EntityKind.NODE)])
    node = Entity(EntityKind.NODE, "1")
    assert found(on_node, episode("slow", GPUS[0], node="1"), episode("full", node)) == [node]
    assert found(Correlator(on_node.correlations), episode("slow", GPUS[0]), episode("full", node)) == []


def test_its_members_are_those_that_count_on_that_entity_now_oldest_first() -> None:
    both = Correlator([correlation("temporal", "slow", "hot", group_by=EntityKind.NODE)])
    late = episode("slow", GPUS[0], fired_s=5.0, node="1")
    early, elsewhere = episode("hot", GPUS[1], fired_s=2.0, last_s=6.0, node="1"), episode("hot", GPUS[2], node="0")
    found(both, late, early, elsewhere, episode("other", GPUS[0], node="1"))
    assert both.members("together", Entity(EntityKind.NODE, "1")) == (early, late)
    assert both.members("slow", Entity(EntityKind.NODE, "1")) == ()
    found(both, wall_s=66.5)
    assert both.members("together", Entity(EntityKind.NODE, "1")) == ()


def test_what_does_not_hold_is_explained_too_for_one_entity_or_all_that_something_counts_for() -> None:
    both = Correlator([correlation("temporal", "slow", "hot", group_by=EntityKind.GPU)])
    assert both.explain("together", 10.0) == both.explain("other", 10.0) == ()
    found(both, episode("slow", GPUS[0]), episode("slow", GPUS[1]), episode("hot", GPUS[1]))
    told = both.explain("together", 10.0, window=7)
    assert [(each.entity, each.answer, each.window) for each in told] == [
        (GPUS[0], Answer.NO_MATCH, 7),
        (GPUS[1], Answer.MATCH, 7),
    ]
    assert [each.answer for each in told[0].clauses] == [Answer.MATCH, Answer.NO_MATCH]
    (nothing,) = both.explain("together", 10.0, entity=GPUS[2])
    assert (nothing.entity, nothing.answer) == (GPUS[2], Answer.NO_MATCH)
    (host,) = Correlator([correlation("value_count", "slow", at_least=2)]).explain("together", 10.0)
    assert (host.entity, host.answer, host.clauses[0].value) == (HOST, Answer.NO_MATCH, "0")


def test_what_one_that_is_over_was_made_of_are_the_fires_of_its_time() -> None:
    both = correlation("temporal", "slow", "hot")
    early, late = episode("slow", fired_s=40.0), episode("hot", fired_s=101.0)
    other, after = episode("full", fired_s=100.0), episode("hot", fired_s=111.0)
    never = replace(episode("slow", fired_s=100.0), fired_s=None)
    past = (late, after, other, never, early, episode("slow", fired_s=39.0))
    assert made_of(both, past, HOST, since_s=100.0, until_s=110.0) == (early, late)


def test_an_episode_counts_for_the_time_span_after_it_last_matched() -> None:
    both = Correlator([correlation("temporal", "slow", "hot")])
    assert found(both, episode("slow", last_s=10.0)) == []
    assert found(both, episode("hot", fired_s=69.0, last_s=69.0), wall_s=69.0) == [HOST]
    assert found(both, episode("hot", fired_s=69.0, last_s=71.0), wall_s=71.0) == []


@pytest.mark.parametrize(("slow_s", "hot_s", "holds"), [(1.0, 5.0, True), (5.0, 5.0, True), (6.0, 5.0, False)])
def test_the_order_counts_where_it_is_asked_for(slow_s: float, hot_s: float, holds: bool) -> None:
    episodes = episode("slow", fired_s=slow_s, last_s=9.0), episode("hot", fired_s=hot_s, last_s=9.0)
    assert bool(found(Correlator([correlation("temporal_ordered", "slow", "hot")]), *episodes)) is holds
    assert found(Correlator([correlation("temporal", "slow", "hot")]), *episodes) == [HOST]


def test_a_later_fire_may_complete_the_order() -> None:
    ordered = Correlator([correlation("temporal_ordered", "slow", "hot")])
    early = episode("hot", fired_s=1.0, last_s=1.0)
    assert found(ordered, early, episode("slow", fired_s=5.0)) == []
    assert found(ordered, early, episode("slow", fired_s=5.0), episode("hot", fired_s=7.0)) == [HOST]


def test_different_entities_are_counted_once_each() -> None:
    three = Correlator([correlation("value_count", "slow", at_least=3)])
    twice = [episode("slow", GPUS[0]), episode("slow", GPUS[0], fired_s=1.0), episode("slow", GPUS[1])]
    assert found(three, *twice) == []
    assert found(three, *twice, episode("slow", GPUS[2])) == [HOST]


def test_fingerprints_and_hosts_can_be_counted_too() -> None:
    kinds = Correlator([correlation("value_count", "slow", "hot", count_of="fingerprint", at_least=2)])
    assert found(kinds, episode("slow", GPUS[0]), episode("slow", GPUS[1])) == []
    assert found(kinds, episode("hot", GPUS[1])) == [HOST]
    hosts = Correlator([correlation("value_count", "slow", count_of="host", at_least=2)])
    assert hosts.push([episode("slow")], 10.0, host="a") == ()
    assert len(hosts.push([episode("slow")], 10.0, host="b")) == 1


def test_fires_are_counted_in_the_time_span_only() -> None:
    often = Correlator([correlation("event_count", "slow", at_least=2)])
    assert found(often, episode("slow", fired_s=0.0, last_s=70.0), episode("slow", fired_s=69.0), wall_s=70.0) == []
    assert found(often, episode("slow", fired_s=70.0), wall_s=70.0) == [HOST]


def test_a_pending_episode_does_not_count() -> None:
    waiting = replace(episode("slow"), state=EpisodeState.PENDING)
    assert found(Correlator([correlation("event_count", "slow")]), waiting) == []


def test_a_match_says_what_was_there() -> None:
    (match,) = Correlator([correlation("value_count", "slow", at_least=2)]).push(
        [episode("slow", GPUS[0]), episode("slow", GPUS[1])], 10.0, window=7
    )
    assert (match.window, match.fingerprint) == (7, "together")
    (clause,) = match.clauses
    assert (clause.subject, clause.operator, clause.threshold) == ("entities of slow", "gte", "2 within 60 s")
    assert clause.value == "2: gpu:GPU-0, gpu:GPU-1"


def test_another_generation_goes_on_with_what_counted() -> None:
    before = Correlator([correlation("temporal", "slow", "hot")])
    assert found(before, episode("slow")) == []
    after = Correlator(before.correlations, before=before)
    assert found(after, episode("hot")) == [HOST]


def test_while_it_fires_nothing_is_done_about_what_it_is_made_of() -> None:
    holding = Correlator([correlation("temporal", "slow", "hot", effect="no_remediation")])
    firing = replace(episode("slow"), fingerprint="together")
    (held,) = holding.holds([firing])
    assert held.covers("slow", "host", "any", 1e12)
    assert not held.covers("other", "host", "any", 1e12)
    assert holding.holds([]) == ()
    assert Correlator([correlation("temporal", "slow", "hot")]).holds([firing]) == ()


def test_what_counts_is_bounded_however_often_a_tenant_has_something_fire() -> None:
    long = Correlator([correlation("event_count", "slow", timespan_s=7 * 86400.0, at_least=2)])
    for second in range(20):
        long.push([episode("slow", GPUS[0], fired_s=second + each / 1000) for each in range(1000)], 20.0)
    assert len(long._counted) == MAX_COUNTED
    assert min(each.episode.last_s for each in long._counted.values()) > 15, "the newest count"
