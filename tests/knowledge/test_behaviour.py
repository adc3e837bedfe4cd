"""What a change does on recordings: windows, fires and actions that came and went, and which way it goes."""

from __future__ import annotations

from dataclasses import replace

from unveil.knowledge.backtest import Action, Fire, SeenWindow, Trace
from unveil.knowledge.behaviour import differing
from unveil.knowledge.change import Effect
from unveil.knowledge.labels import Interval

HEALTHY_UNTIL_20 = (Interval(from_s=0, to_s=20, labels=frozenset()),)


def trace(matched: dict[int, set[str]], fires: tuple[Fire, ...] = (), actions: tuple[Action, ...] = ()) -> Trace:
    windows = tuple(
        SeenWindow(start_s=at, end_s=at + 3, anomalous=False, matched=frozenset(matched.get(at, ())))
        for at in range(30)
    )
    return Trace(
        recording="host.parquet", seconds=33, windows=windows, fires=fires, actions=actions, intervals=HEALTHY_UNTIL_20
    )


def fire(at_s: float) -> Fire:
    return Fire(fingerprint="f", entity="host", started_s=at_s, fired_s=at_s + 3)


def test_what_is_the_same_is_no_difference() -> None:
    one = trace({5: {"f"}}, (fire(8),))
    assert list(differing([one], [one])) == []


def test_windows_that_match_more_are_looser_and_show_whom_they_overlap() -> None:
    (found,) = differing([trace({22: {"g"}})], [trace({22: {"f", "g"}, 23: {"f"}})])
    assert (found.fingerprint, found.gained, found.lost, found.beside) == ("f", (22, 23), (), ("g",))
    assert found.effect is Effect.LOOSENED
    assert found.change.what == "host.parquet: fires 0 → 0; 2 windows more match, e.g. at 22 s; there also: g"
    (back,) = differing([trace({22: {"f"}})], [trace({})])
    assert back.effect is Effect.TIGHTENED


def test_a_fire_in_healthy_time_is_a_risk() -> None:
    (found,) = differing([trace({})], [trace({5: {"f"}}, (fire(8),))])
    assert (found.false_before, found.false_after, found.effect) == (0, 1, Effect.RISK)
    assert "of these in healthy time 0 → 1" in found.change.what
    (late,) = differing([trace({})], [trace({25: {"f"}}, (fire(28),))])
    assert (late.false_after, late.effect) == (0, Effect.LOOSENED)


def test_an_action_that_would_run_by_itself_is_a_risk_and_one_that_asks_is_told() -> None:
    asks = Action(
        at_s=9, fingerprint="f", entity="host", remediation="fix", outcome="asks", changes=("sysctl:vm.x: 1 → 2",)
    )
    before = trace({5: {"f"}}, (fire(25),), (asks,))
    (found,) = differing([before], [replace(before, actions=(replace(asks, outcome="runs"),))])
    assert found.effect is Effect.RISK
    assert found.actions_gained == ("fix on host, runs (sysctl:vm.x: 1 → 2)",)
    assert found.actions_lost == ("fix on host, asks (sysctl:vm.x: 1 → 2)",)
    (found,) = differing([replace(before, actions=())], [before])
    assert "would now be done: fix on host, asks" in found.change.what
    assert found.effect is Effect.CHANGED
