"""The life of a run as one table: from → to, and what may cause it. Everything about changes of state lives here.

Two rules. No other module decides what follows what: it asks here, and a step that the table does not hold is refused
with both ends named. And each step is journalled before it is taken, so that a watcher that was killed finds in the
last step what it was about to do, and in `RESUME` how to go on; nothing is undone merely because the watcher stopped.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from unveil.errors import RefusedError
from unveil.records.run import Run, RunState, Step
from unveil.remediation.evidence import evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.run import Plan


class Cause(StrEnum):
    """What led to a step."""

    PLANNED = "planned"
    OPERATOR = "operator"
    POLICY = "policy"
    APPROVAL_EXPIRED = "approval expired"
    APPROVAL_LAPSED = "approval lapsed"
    NOTHING_TO_DO = "nothing to do"
    NOT_MATCHING = "no longer matching"
    PLAN_STALE = "plan is stale"
    STARTED = "started"
    APPLIED = "applied"
    APPLY_FAILED = "apply failed"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    LOST = "run was lost"
    VERIFIED = "verified"
    NOT_VERIFIED = "verification failed"
    WORSENED = "something got worse"
    NO_ANSWER = "no answer in time"
    CHANGED_BY_OTHER = "changed by someone else"
    NO_ROLLBACK = "rollback was not asked for"
    RESTORED = "restored"
    NOT_RESTORED = "could not be restored"


_S, _C = RunState, Cause
_STOPPED = frozenset({_C.APPLY_FAILED, _C.TIMEOUT, _C.LOST})

# from → to → causes. The order is the order of life; the diagram in the documentation is drawn from it.
STEPS: Mapping[RunState, Mapping[RunState, frozenset[Cause]]] = MappingProxyType(
    {
        _S.PLANNED: {
            _S.APPROVED: frozenset({_C.OPERATOR, _C.POLICY}),
            _S.NO_CHANGE: frozenset({_C.NOTHING_TO_DO}),
            _S.REFUSED: frozenset({_C.POLICY, _C.NOT_MATCHING, _C.PLAN_STALE}),
            _S.EXPIRED: frozenset({_C.APPROVAL_EXPIRED}),
            _S.CANCELED: frozenset({_C.OPERATOR}),
        },
        _S.APPROVED: {
            _S.APPLYING: frozenset({_C.STARTED}),
            _S.NO_CHANGE: frozenset({_C.NOTHING_TO_DO}),
            _S.REFUSED: frozenset({_C.POLICY, _C.NOT_MATCHING, _C.PLAN_STALE, _C.APPROVAL_LAPSED}),
            _S.EXPIRED: frozenset({_C.APPROVAL_EXPIRED}),
            _S.CANCELED: frozenset({_C.OPERATOR}),
        },
        _S.APPLYING: {
            _S.VERIFYING: frozenset({_C.APPLIED}),
            _S.NO_CHANGE: frozenset({_C.NOTHING_TO_DO}),
            _S.ROLLING_BACK: _STOPPED | {_C.CANCELED},
            _S.FAILED_CLEAN: _STOPPED,
            _S.FAILED_DIRTY: frozenset({_C.NO_ROLLBACK}),
            _S.CANCELED: frozenset({_C.CANCELED}),
        },
        _S.VERIFYING: {
            _S.KEPT: frozenset({_C.VERIFIED}),
            _S.INCONCLUSIVE: frozenset({_C.NO_ANSWER}),
            _S.REVERTED_BY_OTHER: frozenset({_C.CHANGED_BY_OTHER}),
            _S.ROLLING_BACK: frozenset({_C.NOT_VERIFIED, _C.WORSENED, _C.OPERATOR, _C.CANCELED}),
            _S.FAILED_DIRTY: frozenset({_C.NO_ROLLBACK}),
        },
        _S.ROLLING_BACK: {
            _S.ROLLED_BACK: frozenset({_C.RESTORED}),
            _S.FAILED_CLEAN: frozenset({_C.RESTORED}),
            _S.CANCELED: frozenset({_C.RESTORED}),
            _S.REVERTED_BY_OTHER: frozenset({_C.CHANGED_BY_OTHER}),
            _S.FAILED_DIRTY: frozenset({_C.NOT_RESTORED}),
        },
        # Settled: nothing happens by itself any more. What is still on the host can be taken back by a person's word.
        _S.KEPT: {_S.ROLLING_BACK: frozenset({_C.OPERATOR})},
        _S.INCONCLUSIVE: {_S.ROLLING_BACK: frozenset({_C.OPERATOR}), _S.KEPT: frozenset({_C.OPERATOR})},
        _S.REVERTED_BY_OTHER: {_S.ROLLING_BACK: frozenset({_C.OPERATOR})},
        _S.FAILED_DIRTY: {_S.ROLLING_BACK: frozenset({_C.OPERATOR})},
        _S.NO_CHANGE: {},
        _S.ROLLED_BACK: {},
        _S.FAILED_CLEAN: {},
        _S.CANCELED: {},
        _S.EXPIRED: {},
        _S.REFUSED: {},
    }
)

ACTIVE = frozenset(
    {_S.APPLYING, _S.VERIFYING, _S.ROLLING_BACK}
)  # has the host in hand: holds the locks of its settings
TERMINAL = frozenset(state for state in RunState if state not in ACTIVE | {_S.PLANNED, _S.APPROVED})


class Resume(StrEnum):
    """What a watcher does after a restart with a run that it finds in a state."""

    WAIT = "wait"  # for a person, or for the approval to expire
    DECIDE = "decide"  # ask the policy again on fresh windows, then apply
    ADOPT = "adopt"  # the child that applies it may still live; else its result file says, else it is lost
    VERIFY = "verify"  # from the beginning, on fresh windows
    RESTORE = "restore"  # again: what already reads as before is left as it is


RESUME: Mapping[RunState, Resume] = MappingProxyType(
    {
        _S.PLANNED: Resume.WAIT,
        _S.APPROVED: Resume.DECIDE,
        _S.APPLYING: Resume.ADOPT,
        _S.VERIFYING: Resume.VERIFY,
        _S.ROLLING_BACK: Resume.RESTORE,
    }
)

_RUN_ID = re.compile(r"r[0-9a-f]{12}")


def new_run(run_id: str, plan: Plan, actor: str, at_s: float, detail: str = "") -> Run:
    """Return a run at the beginning of its life.

    Raises:
        RefusedError: the id is not ``r`` and 12 hex digits (it becomes the name of a directory).
    """
    if not _RUN_ID.fullmatch(run_id):
        raise RefusedError(f"{run_id!a} is no id of a run", hint="an id is r and 12 hex digits")
    step = Step(
        at_s=at_s, state=RunState.PLANNED, cause=Cause.PLANNED, actor=actor, detail=detail,
        evidence=evidence(plan, RunState.PLANNED, saved={}, written={}),
    )  # fmt: skip
    return Run(id=run_id, plan=plan, steps=(step,), saved={}, written={})


def advance(run: Run, state: RunState, cause: Cause, actor: str, at_s: float, *, detail: str = "") -> Run:
    """Return the run one step further; journal the step before anything is done about it.

    Raises:
        RefusedError: the table has no such step; both ends are named, and what is possible instead.
    """
    possible = STEPS[run.state]
    if cause not in possible.get(state, ()):
        ways = "; ".join(f"{to} ({', '.join(sorted(causes))})" for to, causes in possible.items())
        raise RefusedError(
            f"run {run.id} cannot go from {run.state} to {state} because of {cause!s}",
            hint=f"from {run.state} it can go to: {ways}" if ways else f"{run.state} is the end of a run",
        )
    stands = evidence(run.plan, state, saved=run.saved, written=run.written)
    step = Step(at_s=at_s, state=state, cause=cause, actor=actor, detail=detail, evidence=stands)
    return replace(run, steps=(*run.steps, step))


def entered(run: Run, state: RunState) -> Step | None:
    """Return the newest step into a state, None when the run was never in it."""
    return next((step for step in reversed(run.steps) if step.state is state), None)


# Causes of a stop during apply → the name of the trigger in `rollback.triggers` that asks for a rollback.
_TRIGGER: Mapping[Cause, str] = {
    Cause.APPLY_FAILED: "apply_failed",
    Cause.LOST: "apply_failed",
    Cause.TIMEOUT: "timeout",
    Cause.CANCELED: "canceled",
    Cause.NOT_VERIFIED: "verify_failed",
    Cause.WORSENED: "verify_failed",
    Cause.OPERATOR: "operator",
}


def wants_rollback(plan: Plan, cause: Cause) -> bool:
    """Tell whether a plan asks for a rollback for a cause. A person who cancels or says *roll back* always does."""
    return cause in (Cause.OPERATOR, Cause.CANCELED) or _TRIGGER.get(cause, "") in plan.rollback_triggers


def after_apply(plan: Plan, ended: Cause, *, changed: bool) -> tuple[RunState, Cause]:
    """Return the step after the playbook ended.

    Args:
        ended: APPLIED, APPLY_FAILED, TIMEOUT, CANCELED or LOST.
        changed: the playbook reported a change, or a managed setting no longer reads as saved.
    """
    if ended is Cause.APPLIED:
        return (RunState.VERIFYING, ended) if changed else (RunState.NO_CHANGE, Cause.NOTHING_TO_DO)
    if not changed:
        return (RunState.CANCELED, ended) if ended is Cause.CANCELED else (RunState.FAILED_CLEAN, ended)
    if wants_rollback(plan, ended):
        return RunState.ROLLING_BACK, ended
    return RunState.FAILED_DIRTY, Cause.NO_ROLLBACK


def after_rollback(run: Run, *, foreign: int, failed: int) -> tuple[RunState, Cause]:
    """Return the step after the saved values were put back.

    Args:
        run: in ROLLING_BACK; the cause of that step decides which end it is.
        foreign: settings left alone, because someone else had changed them since.
        failed: settings that are still ours and could not be put back.
    """
    if failed:
        return RunState.FAILED_DIRTY, Cause.NOT_RESTORED
    if foreign:
        return RunState.REVERTED_BY_OTHER, Cause.CHANGED_BY_OTHER
    began = entered(run, RunState.ROLLING_BACK)
    cause = "" if began is None else began.cause
    if cause in _STOPPED:
        return RunState.FAILED_CLEAN, Cause.RESTORED
    if cause == Cause.CANCELED:
        return RunState.CANCELED, Cause.RESTORED
    return RunState.ROLLED_BACK, Cause.RESTORED


def diagram() -> str:
    """Return the table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", f"    [*] --> {RunState.PLANNED}: {Cause.PLANNED}"]
    for state, ways in STEPS.items():
        lines += [f"    {state} --> {to}: {' / '.join(sorted(causes))}" for to, causes in ways.items()]
    lines += [f"    {state} --> [*]" for state in RunState if state in TERMINAL]
    return "\n".join(lines) + "\n"
