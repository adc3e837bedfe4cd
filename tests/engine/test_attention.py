"""A calm host is judged a few seconds at a time; whatever happens, or asks, has each second judged again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from unveil.engine.attention import SETTLED, TOGETHER, Attention
from unveil.records.match import EpisodeState
from unveil.records.verdict import State

if TYPE_CHECKING:
    from collections.abc import Callable


def outcome(state: State = State.NORMAL, changed: tuple[Any, ...] = ()) -> Any:
    return SimpleNamespace(changed=changed, judgement=SimpleNamespace(verdict=SimpleNamespace(state=state)))


def settled() -> Attention:
    attention = Attention()
    attention.look([outcome()] * SETTLED, (), busy=False)
    return attention


def test_each_second_is_judged_until_the_host_was_calm_for_a_while() -> None:
    attention = Attention()
    attention.look([outcome()] * (SETTLED - 1), (), busy=False)
    assert attention.due(1, asked=False)
    attention.look([outcome()], (), busy=False)
    assert not attention.due(1, asked=False)
    assert not attention.due(TOGETHER - 1, asked=False)
    assert attention.due(TOGETHER, asked=False)


def test_who_is_connected_sees_each_second() -> None:
    assert settled().due(1, asked=True)


def test_whatever_happens_is_followed_second_by_second(make_episode: Callable[..., Any]) -> None:
    pending, firing = make_episode(1, EpisodeState.PENDING), make_episode(2)
    for outcomes, going_on, busy in (
        ([outcome(State.ANOMALOUS)], (), False),
        ([outcome(changed=(firing,))], (firing,), False),
        ([outcome()], (pending,), False),
        ([outcome()], (), True),
        ([], (), True),
    ):
        attention = settled()
        attention.look(outcomes, going_on, busy=busy)
        assert attention.due(1, asked=False)


def test_an_episode_that_merely_goes_on_wakes_nobody(make_episode: Callable[..., Any]) -> None:
    attention = settled()
    attention.look([outcome()], (make_episode(1),), busy=False)
    assert not attention.due(1, asked=False)
