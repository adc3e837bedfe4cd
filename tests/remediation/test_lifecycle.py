from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.errors import RefusedError
from unveil.records.run import RunState
from unveil.remediation import lifecycle
from unveil.remediation.lifecycle import ACTIVE, RESUME, STEPS, TERMINAL, Cause, Resume, advance, new_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.run import Plan, Run


@pytest.fixture
def run(drawn: Callable[..., Plan]) -> Run:
    return new_run("r000000000001", drawn(), "watcher", 1.0)


def to(run: Run, *path: tuple[RunState, Cause]) -> Run:
    for at, (state, cause) in enumerate(path):
        run = advance(run, state, cause, "uid:0", 2.0 + at)
    return run


APPLYING = ((RunState.APPROVED, Cause.OPERATOR), (RunState.APPLYING, Cause.STARTED))


def test_the_table_names_every_state_once_and_leads_only_to_states() -> None:
    assert set(STEPS) == set(RunState)
    assert all(causes for ways in STEPS.values() for causes in ways.values())
    assert {to for ways in STEPS.values() for to in ways} | {RunState.PLANNED} == set(RunState), (
        "every state is reached"
    )


def test_every_life_ends_and_nothing_terminal_moves_by_itself() -> None:
    for state in RunState:
        seen, waiting = {state}, [state]
        while waiting:
            new = set(STEPS[waiting.pop()]) - seen
            seen |= new
            waiting += new
        assert seen & TERMINAL, f"{state} leads nowhere"
    for state in TERMINAL:
        assert all(causes == {Cause.OPERATOR} for causes in STEPS[state].values())
        assert state not in RESUME


def test_after_a_restart_every_unfinished_run_goes_on_somehow_and_none_is_undone() -> None:
    assert set(RESUME) == set(RunState) - TERMINAL
    assert RESUME[RunState.APPLYING] is Resume.ADOPT
    assert [state for state, how in RESUME.items() if how is Resume.RESTORE] == [RunState.ROLLING_BACK]
    assert ACTIVE.isdisjoint(TERMINAL)


def test_an_illegal_step_names_both_ends_and_the_ways_there_are(run: Run) -> None:
    with pytest.raises(RefusedError) as caught:
        advance(run, RunState.KEPT, Cause.VERIFIED, "watcher", 2.0)
    assert "planned" in caught.value.what
    assert "kept" in caught.value.what
    assert "approved (operator, policy)" in str(caught.value.hint)


def test_a_run_id_that_is_no_name_of_a_directory_is_refused(run: Run) -> None:
    for bad in ("", "../x", "r00000000000g", "r000000000001\n", "R000000000001"):
        with pytest.raises(RefusedError):
            new_run(bad, run.plan, "watcher", 1.0)


@settings(suppress_health_check=list(HealthCheck), max_examples=60, deadline=None)
@given(data=st.data())
def test_any_walk_keeps_history_and_only_takes_steps_of_the_table(run: Run, data: st.DataObject) -> None:
    for at in range(8):
        state = data.draw(st.sampled_from(list(RunState)))
        cause = data.draw(st.sampled_from(list(Cause)))
        allowed = cause in STEPS[run.state].get(state, ())
        try:
            after = advance(run, state, cause, "uid:0", float(at))
        except RefusedError:
            assert not allowed
            continue
        assert allowed
        assert after.steps[:-1] == run.steps
        assert after.state is state
        run = after


@pytest.mark.parametrize(
    ("ended", "changed", "triggers", "expected"),
    [
        (Cause.APPLIED, True, (), RunState.VERIFYING),
        (Cause.APPLIED, False, (), RunState.NO_CHANGE),
        (Cause.APPLY_FAILED, False, (), RunState.FAILED_CLEAN),
        (Cause.APPLY_FAILED, True, ("apply_failed",), RunState.ROLLING_BACK),
        (Cause.APPLY_FAILED, True, (), RunState.FAILED_DIRTY),
        (Cause.LOST, True, ("apply_failed",), RunState.ROLLING_BACK),
        (Cause.TIMEOUT, True, ("timeout",), RunState.ROLLING_BACK),
        (Cause.TIMEOUT, True, ("apply_failed",), RunState.FAILED_DIRTY),
        (Cause.CANCELED, False, (), RunState.CANCELED),
        (Cause.CANCELED, True, (), RunState.ROLLING_BACK),
    ],
)
def test_what_follows_apply(
    run: Run, drawn: Callable[..., Plan], ended: Cause, changed: bool, triggers: tuple[str, ...], expected: RunState
) -> None:
    state, cause = lifecycle.after_apply(drawn(rollback_triggers=triggers), ended, changed=changed)
    assert state is expected
    advance(to(run, *APPLYING), state, cause, "watcher", 9.0)  # and the table has that step


@pytest.mark.parametrize(
    ("began", "foreign", "failed", "expected"),
    [
        (Cause.APPLY_FAILED, 0, 0, RunState.FAILED_CLEAN),
        (Cause.LOST, 0, 0, RunState.FAILED_CLEAN),
        (Cause.CANCELED, 0, 0, RunState.CANCELED),
        (Cause.APPLY_FAILED, 1, 0, RunState.REVERTED_BY_OTHER),
        (Cause.CANCELED, 1, 1, RunState.FAILED_DIRTY),
    ],
)
def test_what_follows_a_rollback(run: Run, began: Cause, foreign: int, failed: int, expected: RunState) -> None:
    rolling = to(run, *APPLYING, (RunState.ROLLING_BACK, began))
    state, cause = lifecycle.after_rollback(rolling, foreign=foreign, failed=failed)
    assert state is expected
    advance(rolling, state, cause, "watcher", 9.0)


def test_a_kept_fix_can_be_taken_back_by_a_persons_word(run: Run) -> None:
    kept = to(run, *APPLYING, (RunState.VERIFYING, Cause.APPLIED), (RunState.KEPT, Cause.VERIFIED))
    rolling = advance(kept, RunState.ROLLING_BACK, Cause.OPERATOR, "uid:1000", 9.0, detail="not on my shift")
    assert lifecycle.after_rollback(rolling, foreign=0, failed=0) == (RunState.ROLLED_BACK, Cause.RESTORED)
    assert rolling.steps[-1].detail == "not on my shift"
    with pytest.raises(RefusedError):
        advance(kept, RunState.ROLLING_BACK, Cause.NOT_VERIFIED, "watcher", 9.0)


def test_the_diagram_shows_every_step() -> None:
    drawing = lifecycle.diagram()
    assert drawing.startswith("stateDiagram-v2\n    [*] --> planned: planned\n")
    assert sum(line.count(" --> ") for line in drawing.splitlines()) == 1 + len(TERMINAL) + sum(
        map(len, STEPS.values())
    )
    assert "    verifying --> kept: verified" in drawing
