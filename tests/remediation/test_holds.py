from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from unveil.records.reset import Reset, ResetKind
from unveil.records.run import RunState, SettingChange, Step
from unveil.remediation.holds import held
from unveil.remediation.lifecycle import new_run
from unveil.remediation.policy import does_the_same, gone_wrong

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.run import Plan, Run

SETTING = "sysctl:vm.dirty_ratio"


@pytest.fixture
def plan(drawn: Callable[..., Plan]) -> Plan:
    return replace(drawn(), changes=(SettingChange(address=SETTING, before="20", after="30"),))


def run(plan: Plan, state: RunState, *, at_s: float = 100.0) -> Run:
    made = new_run("r0123456789ab", plan, "watcher", 1.0)
    begun = Step(at_s=2.0, state=RunState.APPLYING, cause="started", actor="watcher")
    ended = Step(at_s=at_s, state=state, cause="x", actor="watcher")
    return replace(made, steps=(*made.steps, begun, ended), saved={SETTING: "20"}, written={SETTING: "30"})


@pytest.mark.parametrize(
    ("state", "now", "holds"),
    [
        (RunState.KEPT, "30", False),
        (RunState.KEPT, "20", True),  # someone put it back
        (RunState.KEPT, "45", True),
        (RunState.ROLLED_BACK, "20", False),
        (RunState.ROLLED_BACK, "30", True),
        (RunState.FAILED_CLEAN, "20", False),
        (RunState.REVERTED_BY_OTHER, "20", True),
        (RunState.FAILED_DIRTY, "45", False),  # a person has to look at it anyway
    ],
)
def test_a_change_by_hand_holds_automation_until_it_is_let_go(
    plan: Plan, state: RunState, now: str, holds: bool
) -> None:
    again = replace(plan, changes=(replace(plan.changes[0], before=now),))
    reasons = held(again, [run(plan, state)], ())
    assert bool(reasons) is holds
    assert all("release" in reason and SETTING in reason for reason in reasons)
    let_go = Reset(kind=ResetKind.HOLD, at_s=101.0, actor="uid:0", reason="agreed", subject=SETTING)
    assert held(again, [run(plan, state)], (let_go,)) == []
    other = replace(let_go, subject="sysctl:vm.dirty_bytes")
    assert bool(held(again, [run(plan, state)], (other,))) is holds


def test_the_breaker_forgets_what_was_before_a_person_reset_it(plan: Plan) -> None:
    bad = [run(plan, RunState.FAILED_CLEAN, at_s=at) for at in (100.0, 110.0, 120.0)]
    assert len(gone_wrong(bad, 130.0)) == 3
    reset = Reset(kind=ResetKind.BREAKER, at_s=115.0, actor="uid:0", reason="the disk was full")
    assert len(gone_wrong(bad, 130.0, (reset,))) == 1


def test_five_matches_that_ask_for_the_same_are_one_piece_of_work(plan: Plan) -> None:
    twin = replace(plan, episode="e2", created_s=9.0)
    assert does_the_same(plan, twin)
    assert not does_the_same(plan, replace(twin, changes=(replace(plan.changes[0], after="31"),)))
    assert not does_the_same(plan, replace(twin, remediation_revision="2"))
