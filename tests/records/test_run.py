"""A run stands where its last step brought it."""

from __future__ import annotations

from dataclasses import replace

from unveil.records.entity import HOST
from unveil.records.remediation import VerificationRule
from unveil.records.run import Plan, Run, RunState, Step

PLAN = Plan(
    remediation="m", remediation_revision="1", playbook="p", fingerprint="f", episode="e", entity=HOST, variables={},
    untrusted=(), changes=(), verification=VerificationRule(within_s=1, settings_hold_s=1, clear_s=1), timeout_s=1,
    mode="manual", impact="low", reversible=True, rollback_triggers=(), baseline={}, created_s=0, hash="",
)  # fmt: skip


def test_the_state_of_a_run_is_that_of_its_last_step() -> None:
    first = Step(at_s=1, state=RunState.PLANNED, cause="planned", actor="uid:0")
    run = Run(id="r1", plan=PLAN, steps=(first,), saved={}, written={})
    assert run.state is RunState.PLANNED
    assert replace(run, steps=(first, replace(first, state=RunState.EXPIRED))).state is RunState.EXPIRED
