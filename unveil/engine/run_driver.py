"""RunDriver: carries plans out, step by step of the lifecycle's table; the only place that makes the host change.

It is asked by people (through `commands`) and driven by the watch loop once a second. Nothing here waits: playbooks run
in children, settings are read and put back natively. Every step is in the journal, on the disk, before it is taken.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unveil.engine.run_events import checked, measured, reported, restored
from unveil.errors import ConflictError, RefusedError, UnreadableError, UnveilError
from unveil.execution import snapshot
from unveil.execution.settings import Outcome as RestoreOutcome
from unveil.records.run import RunState
from unveil.remediation import policy
from unveil.remediation.lifecycle import (
    ACTIVE,
    RESUME,
    TERMINAL,
    Cause,
    Resume,
    advance,
    after_apply,
    after_rollback,
    entered,
    new_run,
    wants_rollback,
)
from unveil.remediation.planner import drifted
from unveil.remediation.verification import Verifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from unveil.execution.request import RunEvent
    from unveil.execution.settings import Restored, Settings
    from unveil.execution.supervisor import ChildRun, RunSupervisor
    from unveil.records.entity import Entity
    from unveil.records.feature import FeatureVector
    from unveil.records.remediation import Mode, Remediation
    from unveil.records.run import Plan, Run
    from unveil.records.silence import Silence
    from unveil.records.site import Filter
    from unveil.store.journal import Journal
    from unveil.store.queries import Queries

_LOG = logging.getLogger(__name__)
WATCHER = "watcher"
SNAPSHOTS_S = 30 * 86400.0  # how long the copies of saved values outside the journal are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the driver must know of the present to decide about a plan."""

    remediation: Remediation
    profile: Mode
    silences: tuple[Silence, ...]
    still_matching: bool | None
    baseline: Mapping[str, float]
    filters: tuple[Filter, ...] = ()
    host: str = ""


@dataclass(slots=True)
class _Active:
    """A run that has the host in hand."""

    run: Run
    child: ChildRun | None = None
    verifier: Verifier | None = None
    canceling: bool = False


class RunDriver:
    """Drives the runs of one host.

    Args:
        situation: the present, for a plan; raises RefusedError when its remediation is no longer known.
        peek: content of a managed setting as cheaply as it can be had, at a time; for looking every second.
        changed: called after the host was changed, so that detectors start to gather evidence anew.
        clock: wall clock, seconds since the epoch.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        queries: Queries,
        settings: Settings,
        supervisor: RunSupervisor,
        situation: Callable[[Plan], Situation],
        peek: Callable[[str, float], str | None],
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._journal = journal
        self._queries = queries
        self._settings = settings
        self._supervisor = supervisor
        self._situation = situation
        self._peek = peek
        self._changed = changed
        self._clock = clock
        self._active: dict[str, _Active] = {}
        self._dry_runs: dict[str, ChildRun] = {}
        self._next_expiry_s = 0.0

    @property
    def active(self) -> int:
        """Return how many runs have the host in hand."""
        return len(self._active)

    # What people (and, within limits, automation) ask for

    def propose(self, plan: Plan, *, actor: str) -> Run:
        """Journal a plan as a run that waits for approval; return one with the same plan that already waits."""
        for run in self._queries.runs(limit=50, states=(RunState.PLANNED, RunState.APPROVED, *ACTIVE)):
            if run.plan.hash == plan.hash and run.plan.episode == plan.episode:
                return run  # asked twice: the same answer
        run = new_run(f"r{secrets.token_hex(6)}", plan, actor, self._clock())
        return self._keep(run)

    def approve(self, run: Run, *, plan_hash: str, actor: str) -> Run:
        """Approve exactly the plan that was shown."""
        self._same_plan(run, plan_hash)
        situation = self._situation(run.plan)
        if policy.expired(run, situation.remediation, self._clock()):
            self._step(run, RunState.EXPIRED, Cause.APPROVAL_EXPIRED, WATCHER)
            raise RefusedError(f"{run.id} waited too long for its approval", hint="plan again")
        cause = Cause.POLICY if actor == WATCHER else Cause.OPERATOR
        return self._step(run, RunState.APPROVED, cause, actor)

    def apply(self, run: Run, *, plan_hash: str, actor: str) -> Run:
        """Start an approved plan, after a last look at policy, silences, fresh windows and the settings themselves.

        Raises:
            RefusedError: it may not run now; the run waits on, unless its plan is out of date.
            ConflictError: a setting is no longer what the plan says; the run ends refused.
        """
        self._same_plan(run, plan_hash)
        if run.state is not RunState.APPROVED:
            raise RefusedError(f"{run.id} is {run.state}, not approved", hint=f"`unveil runs approve {run.id}` first")
        situation = self._situation(run.plan)
        approval = entered(run, RunState.APPROVED)
        now_s = self._clock()
        decision = policy.decide(
            run.plan,
            situation.remediation,
            situation.profile,
            tuple(reversed(self._queries.runs(limit=500))),
            situation.silences,
            still_matching=situation.still_matching,
            now_s=now_s,
            person=actor != WATCHER,
            approved_s=None if approval is None else approval.at_s,
            run_id=run.id,
            filters=situation.filters,
            host=situation.host,
        )
        if not decision.allowed:
            raise RefusedError(f"{run.id} may not run now: {'; '.join(decision.reasons)}", hint=_cure(decision.mode))
        if stale := drifted(run.plan, self._settings.peek):
            self._step(run, RunState.REFUSED, Cause.PLAN_STALE, WATCHER, f"changed since: {', '.join(stale)}")
            raise ConflictError(f"{run.id} is out of date: {', '.join(stale)} changed since", hint="plan again")
        return self._start(run, situation, actor)

    def dry_run(self, run: Run) -> None:
        """Let Ansible go through a plan in check mode; what it says becomes events of the run."""
        if run.id not in self._dry_runs:
            self._dry_runs[run.id] = self._supervisor.dry_run(run.plan)

    def cancel(self, run: Run, *, actor: str) -> Run:
        """Stop a run: one that waits ends at once, one under way is undone."""
        active = self._active.get(run.id)
        if active is None:
            return self._step(run, RunState.CANCELED, Cause.OPERATOR, actor)
        if active.child is not None:
            active.canceling = True
            active.child.cancel()
            return active.run
        if active.run.state is RunState.VERIFYING:
            return self._roll_back(active.run, Cause.CANCELED, actor)
        raise RefusedError(f"{run.id} is {active.run.state}; it cannot be stopped in that", hint="wait a second")

    def roll_back(self, run: Run, *, actor: str) -> Run:
        """Put back what a run changed, as far as it is still ours.

        Raises:
            RefusedError: it has nothing to put back, or its time for that is over.
        """
        if run.id not in self._active and run.state in TERMINAL:
            remediation = self._situation(run.plan).remediation
            if not policy.undoable(run, remediation, self._clock()):
                raise RefusedError(
                    f"{run.id} is {run.state} and can no longer be rolled back",
                    hint=f"its settings before and after are in `unveil runs show {run.id} --json`",
                )
        return self._roll_back(self._active[run.id].run if run.id in self._active else run, Cause.OPERATOR, actor)

    # The watch loop

    def adopt(self) -> tuple[str, ...]:
        """Take up what an earlier watcher left; return a line on each, for the log."""
        said = []
        for run in self._queries.runs(limit=1000, states=tuple(ACTIVE)):
            how = RESUME[run.state]
            said.append(f"{run.id} was {run.state}: {how}")
            if how is Resume.ADOPT:
                self._adopt_child(run)
            elif how is Resume.VERIFY:
                self._active[run.id] = _Active(run, verifier=self._verifier(run))
            elif how is Resume.RESTORE:
                self._restore(run, WATCHER)
        return tuple(said)

    def second(self, vector: FeatureVector | None, matching: Callable[[str, Entity], bool | None]) -> None:
        """Look after everything under way; called once a second, with the newest window where there is a new one."""
        now_s = self._clock()
        for identity, child in list(self._dry_runs.items()):
            self._follow_dry_run(identity, child, now_s)
        for active in list(self._active.values()):
            if active.child is not None:
                self._follow_child(active, active.child, now_s)
            elif active.verifier is not None:
                self._verify(active, active.verifier, vector, matching, now_s)
        if now_s >= self._next_expiry_s:
            self._next_expiry_s = now_s + 10
            self._expire(now_s)
            self._supervisor.prune(now_s - SNAPSHOTS_S)

    # Steps

    def _keep(self, run: Run) -> Run:
        self._journal.put_run(run)
        if run.id in self._active:
            self._active[run.id].run = run
        return run

    def _step(self, run: Run, state: RunState, cause: Cause, actor: str, detail: str = "") -> Run:
        """Journal a step, then let it hold."""
        stepped = self._keep(advance(run, state, cause, actor, self._clock(), detail=detail))
        if state not in ACTIVE:
            ended = self._active.pop(run.id, None)
            if ended is not None and ended.child is not None:
                self._supervisor.discard(ended.child)
        _LOG.info("run %s: %s (%s) %s", run.id, state, cause, detail)
        return stepped

    def _same_plan(self, run: Run, plan_hash: str) -> None:
        if run.plan.hash != plan_hash:
            raise ConflictError(f"{run.id} is not the plan that was shown", hint=f"look at `unveil runs show {run.id}`")

    def _start(self, run: Run, situation: Situation, actor: str) -> Run:
        saved = snapshot.take(run.plan, self._settings.peek)
        directory = self._supervisor.directory_of(run.id)
        note = snapshot.Snapshot(run=run.id, plan_hash=run.plan.hash, at_s=self._clock(), saved=saved)
        snapshot.save(directory, note)
        if situation.baseline:
            run = replace(run, plan=replace(run.plan, baseline=situation.baseline))
        run = self._step(replace(run, saved=saved), RunState.APPLYING, Cause.STARTED, actor)
        active = self._active[run.id] = _Active(run)
        try:
            active.child = self._supervisor.start(run)
        except UnveilError as error:
            return self._step(run, RunState.FAILED_CLEAN, Cause.APPLY_FAILED, WATCHER, error.what)
        return run

    def _adopt_child(self, run: Run) -> None:
        active = self._active[run.id] = _Active(run)
        try:
            active.child = self._supervisor.adopt(run.id)
        except UnreadableError:  # killed between the step and the start: no playbook ever ran
            self._applied(active, Cause.LOST, changed=False, detail="it was never started")

    def _follow_child(self, active: _Active, child: ChildRun, now_s: float) -> None:
        progress = child.poll()
        self._report(active.run.id, progress.events, now_s)
        if progress.result is None:
            return
        result = progress.result
        detail = result.message + (f"; {result.survivors} processes survive" if result.survivors else "")
        moved = bool(snapshot.changed(active.run.saved, self._settings.peek))
        cause = result.status.cause
        if cause is Cause.APPLIED and (missed := snapshot.missed(active.run.plan, self._settings.peek)):
            cause, detail = Cause.APPLY_FAILED, f"the playbook succeeded, but {', '.join(missed)} did not change"
        self._applied(active, cause, changed=moved or result.changed > 0, detail=detail)
        self._supervisor.discard(child)

    def _applied(self, active: _Active, cause: Cause, *, changed: bool, detail: str) -> None:
        """Take the step that follows the end of a playbook."""
        run, active.child = active.run, None
        written = snapshot.written(run.plan, run.saved, self._settings.peek)
        state, cause = after_apply(run.plan, cause, changed=changed)
        run = replace(run, written=written)
        if state is RunState.VERIFYING:
            active.run = self._step(run, state, cause, WATCHER, detail)
            active.verifier = self._verifier(active.run)
            self._changed()
        elif state is RunState.ROLLING_BACK:
            self._roll_back(run, cause, WATCHER, detail)
        else:
            self._step(run, state, cause, WATCHER, detail)

    def _verifier(self, run: Run) -> Verifier:
        return Verifier(run.plan, self._clock(), written=run.written)

    def _verify(
        self,
        active: _Active,
        verifier: Verifier,
        vector: FeatureVector | None,
        matching: Callable[[str, Entity], bool | None],
        now_s: float,
    ) -> None:
        run = active.run
        began = entered(run, RunState.VERIFYING)
        since_s = now_s - (began.at_s if began else now_s)
        contents = {address: self._peek(address, since_s) for address in run.written}
        outcome = verifier.push(vector, matching(run.plan.fingerprint, run.plan.entity), contents, now_s)
        if outcome is None:
            return
        self._journal.append_run_events(run.id, tuple((now_s, measured(each)) for each in outcome.measured))
        if outcome.state is RunState.ROLLING_BACK:
            self._roll_back(run, outcome.cause, WATCHER, outcome.detail)
        else:
            self._step(run, outcome.state, outcome.cause, WATCHER, outcome.detail)

    def _roll_back(self, run: Run, cause: Cause, actor: str, detail: str = "") -> Run:
        if not wants_rollback(run.plan, cause):
            return self._step(run, RunState.FAILED_DIRTY, Cause.NO_ROLLBACK, actor, detail)
        return self._restore(self._step(run, RunState.ROLLING_BACK, cause, actor, detail), actor)

    def _restore(self, run: Run, actor: str) -> Run:
        answers = self._settings.restore(run.saved, run.written)
        self._journal.append_run_events(run.id, tuple((self._clock(), restored(each)) for each in answers))
        self._changed()
        failed = [each for each in answers if each.outcome is RestoreOutcome.FAILED]
        foreign = [each for each in answers if each.foreign]
        end, cause = after_rollback(run, foreign=len(foreign), failed=len(failed))
        told = _reasons(failed or foreign) or f"{len(answers)} settings read as before"
        return self._step(run, end, cause, actor, told)

    def _follow_dry_run(self, identity: str, child: ChildRun, now_s: float) -> None:
        progress = child.poll()
        self._report(identity, progress.events, now_s)
        if progress.result is None:
            return
        del self._dry_runs[identity]
        self._journal.append_run_events(identity, ((now_s, checked(progress.result)),))
        self._supervisor.discard(child)

    def _report(self, identity: str, events: Iterable[RunEvent], now_s: float) -> None:
        rows = tuple((now_s, reported(event)) for event in events)
        if rows:
            self._journal.append_run_events(identity, rows)

    def _expire(self, now_s: float) -> None:
        for run in self._queries.runs(limit=200, states=(RunState.PLANNED, RunState.APPROVED)):
            try:
                remediation = self._situation(run.plan).remediation
            except RefusedError:
                continue  # its remediation left the knowledge base: it can be looked at, never applied
            if policy.expired(run, remediation, now_s):
                self._step(run, RunState.EXPIRED, Cause.APPROVAL_EXPIRED, WATCHER)


def _cure(mode: Mode) -> str:
    if mode == "observe":
        return "this host only observes; start the watcher with --profile manual, or set it in inventory/profiles.yml"
    return "`unveil explain` shows what the newest window says"


def _reasons(answers: list[Restored]) -> str:
    return "; ".join(f"{each.address}: {each.reason}" for each in answers)
