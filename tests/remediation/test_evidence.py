from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from unveil.records.run import RunState
from unveil.remediation.evidence import contradicted, evidence
from unveil.remediation.lifecycle import Cause, advance, new_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.run import Plan


@pytest.fixture
def plan(drawn: Callable[..., Plan]) -> Plan:
    return replace(drawn(), grounds="window=7 clauses=00")


def test_a_plan_stands_on_its_window_and_clauses_and_what_follows_on_what_was_saved_and_written(plan: Plan) -> None:
    run = new_run("r0123456789ab", plan, "uid:0", 1.0)
    assert run.steps[0].evidence.startswith("window=7 clauses=00 plan=")
    run = advance(run, RunState.APPROVED, Cause.OPERATOR, "uid:0", 2.0)
    run = advance(replace(run, saved={"a": "1"}), RunState.APPLYING, Cause.STARTED, "uid:0", 3.0)
    run = advance(replace(run, written={"a": "2"}), RunState.VERIFYING, Cause.APPLIED, "watcher", 4.0)
    names = [[part.partition("=")[0] for part in step.evidence.split()] for step in run.steps]
    assert names == [["window", "clauses", "plan"], ["plan"], ["plan", "saved"], ["plan", "saved", "written"]]
    assert not any(contradicted(step, plan, saved=run.saved, written=run.written) for step in run.steps)
    other = [contradicted(step, plan, saved={"a": "0"}, written=run.written) for step in run.steps]
    assert other == [False, False, True, True]


def test_measurements_and_times_are_no_part_of_it(plan: Plan) -> None:
    later = replace(plan, baseline={"x": 1.0}, created_s=9.0)
    assert evidence(plan, RunState.APPROVED, saved={}, written={}) == evidence(
        later, RunState.APPROVED, saved={}, written={}
    )
