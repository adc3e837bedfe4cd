"""The words of a difference."""

from __future__ import annotations

import math

from unveil.knowledge.change import Effect, bound, listed, opposite


def test_under_not_loose_is_tight_and_the_rest_stays() -> None:
    assert [opposite(effect) for effect in (Effect.LOOSENED, Effect.TIGHTENED, Effect.RISK)] == [
        Effect.TIGHTENED, Effect.LOOSENED, Effect.RISK,
    ]  # fmt: skip


def test_a_number_says_which_way_it_went() -> None:
    assert list(bound("cooldown", 60, 60, more=Effect.TIGHTENED)) == []
    assert list(bound("cooldown", 60, 30, more=Effect.TIGHTENED, unit=" s")) == [
        (Effect.LOOSENED, "cooldown 60 s → 30 s")
    ]
    assert list(bound("hosts", 5, math.inf, more=Effect.LOOSENED)) == [(Effect.LOOSENED, "hosts 5 → unbounded")]


def test_entries_that_came_went_and_changed_places_are_told() -> None:
    told = [*listed("fix", ("a", "b"), ("b", "c"), gone=Effect.REMOVED, came=Effect.RISK)]
    assert told == [(Effect.REMOVED, "fix a is gone"), (Effect.RISK, "fix c is new")]
    told = [*listed("fix", ("a", "b"), ("b", "a"), gone=Effect.REMOVED, came=Effect.RISK)]
    assert told == [(Effect.CHANGED, "fix: another order, b, a")]
