"""RunDriver: carries plans out, step by step of the lifecycle's table; the only place that makes the host change.

It is asked by people (through `commands`) and driven by the watch loop once a second. Nothing here waits: playbooks run
in children, settings are read and put back natively. Every step is in the journal, on the disk, before it is taken.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.engine.active_run import ActiveRun
from unveil.engine.dry_runs import DryRuns
from unveil.engine.run_events import measured, reported, restored
from unveil.engine.run_settings import after_playbook, after_restore, save_before
from unveil.engine.run_telling import RunTelling
from unveil.engine.situation import cure, permit
from unveil.errors import ConflictError, RefusedError, UnreadableError, UnveilError
from unveil.execution.request import REQUEST
from unveil.records.remediation import Mode
from unveil.records.run import RunState
from unveil.remediation import policy
from unveil.remediation.lifecycle import (
    ACTIVE,
    RESUME,
    TERMINAL,
    Cause,
    Resume,
    advance,
    entered,
    new_run,
    wants_rollback,
)
from unveil.remediation.planner import drifted
from unveil.remediation.verification import Verifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.situation import Situation
    from unveil.execution.settings import Settings
    from unveil.execution.supervisor import ChildRun, RunSupervisor
    from unveil.records.entity import Entity
    from unveil.records.feature import FeatureVector
    from unveil.records.run import Plan, Run
    from unveil.remediation.verification import Progress
    from unveil.store.journal import Journal
    from unveil.store.queries import Queries

_LOG = logging.getLogger(__name__)
WATCHER = "watcher"
EXPIRY_S = 10.0  # how often waiting runs are looked through
SNAPSHOTS_S = 30 * 86400.0  # how long the copies of saved values outside the journal are kept
WITHOUT_REMEDIATION_S = 86400.0  # how long a run waits, or can be undone, once the knowledge base lost its remediation


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
        self._active: dict[str, ActiveRun] = {}
        self._telling = RunTelling(journal)
        self._dry_runs = DryRuns(supervisor, self._telling)
        self._next_expiry_s = 0.0

    @property
    def active(self) -> int:
        """Return how many runs have the host in hand."""
        return len(self._active)

    # What people (and, within limits, automation) ask for

    def propose(self, plan: Plan, *, actor: str) -> Run:
        """Journal a plan as a run that waits for approval; return one with the same plan that already waits.

        Raises:
            RefusedError: the watcher itself may not propose it now; a person may always plan.
        """
        for run in self._queries.runs(limit=50, states=(RunState.PLANNED, RunState.APPROVED, *ACTIVE)):
            if run.plan.hash == plan.hash and run.plan.episode == plan.episode:
                return run  # asked twice: the same answer
        if actor == WATCHER:
            self._permit(plan, self._situation(plan), actor, policy.Intent.PROPOSE)
        run = new_run(f"r{secrets.token_hex(6)}", plan, actor, self._clock())
        return self._keep(run)

    def approve(self, run: Run, *, plan_hash: str, actor: str) -> Run:
        """Approve exactly the plan that was shown.

        Raises:
            RefusedError: this host only observes (an approval must not outlive that), or it waited too long.
        """
        self._same_plan(run, plan_hash)
        situation = self._situation(run.plan)
        if situation.profile is Mode.OBSERVE:
            raise RefusedError(f"{run.id} cannot be approved", hint=cure(Mode.OBSERVE))
        if policy.expired(run, situation.remediation, self._clock()):
            self._step(run, RunState.EXPIRED, Cause.APPROVAL_EXPIRED, WATCHER)
            raise RefusedError(f"{run.id} waited too long for its approval", hint="plan again")
        cause = Cause.POLICY if actor == WATCHER else Cause.OPERATOR
        return self._step(run, RunState.APPROVED, cause, actor)

    def apply(self, run: Run, *, plan_hash: str, actor: str) -> Run:
        """Start an approved plan, after a last look at policy, silences, fresh windows and the settings themselves.

        Raises:
            RefusedError: it may not run now, or its playbook is not what was judged; the run waits on, unless its plan
                is out of date.
            ConflictError: a setting is no longer what the plan says; the run ends refused.
        """
        self._same_plan(run, plan_hash)
        if run.state is not RunState.APPROVED:
            raise RefusedError(f"{run.id} is {run.state}, not approved", hint=f"`unveil runs approve {run.id}` first")
        situation = self._situation(run.plan)
        self._permit(run.plan, situation, actor, policy.Intent.APPLY, run)
        if stale := drifted(run.plan, self._settings.peek):
            self._step(run, RunState.REFUSED, Cause.PLAN_STALE, WATCHER, f"changed since: {', '.join(stale)}")
            raise ConflictError(f"{run.id} is out of date: {', '.join(stale)} changed since", hint="plan again")
        self._supervisor.prepare(run)
        return self._start(run, situation, actor)

    def dry_run(self, run: Run) -> None:
        """Let Ansible go through a plan in check mode; what it says becomes events of the run."""
        self._dry_runs.start(run)

    def cancel(self, run: Run, *, actor: str) -> Run:
        """Stop a run: one that waits ends at once, one under way is undone."""
        active = self._active.get(run.id)
        if active is None:
            return self._step(run, RunState.CANCELED, Cause.OPERATOR, actor)
        if active.run.state is RunState.APPLYING and active.child is not None:
            active.canceled_by = active.canceled_by or actor
            active.child.cancel()
            return active.run
        if active.run.state is RunState.VERIFYING:
            return self._roll_back(active.run, Cause.CANCELED, actor)
        raise RefusedError(f"{run.id} is {active.run.state}; it cannot be stopped in that", hint="wait a second")

    def roll_back(self, run: Run, *, actor: str) -> Run:
        """Put back what a run changed, as far as it is still ours.

        Raises:
            RefusedError: it has nothing to put back, its time for that is over, or another run has a setting in hand.
        """
        active = self._active.get(run.id)
        if active is not None:
            return self._roll_back(active.run, Cause.OPERATOR, actor)
        if run.state in TERMINAL and not self._undoable(run):
            raise RefusedError(
                f"{run.id} is {run.state} and can no longer be rolled back",
                hint=f"its settings before and after are in `unveil runs show {run.id} --json`",
            )
        for other in self._active.values():
            if shared := sorted(set(run.saved) & set(other.run.saved)):
                raise RefusedError(f"run {other.run.id} has {shared[0]} in hand", hint="wait for its end, or cancel it")
        return self._roll_back(run, Cause.OPERATOR, actor)

    def progress(self, identity: str) -> Progress | None:
        """Return how far the verification of a run is, None when it is not being verified."""
        active = self._active.get(identity)
        return None if active is None or active.verifier is None else active.verifier.progress()

    def _undoable(self, run: Run) -> bool:
        try:
            return policy.undoable(run, self._situation(run.plan).remediation, self._clock())
        except RefusedError:  # edited or gone since: no reason to leave the host as it is
            return self._clock() - run.steps[-1].at_s <= WITHOUT_REMEDIATION_S

    # The watch loop

    def adopt(self) -> tuple[str, ...]:
        """Take up what an earlier watcher left; return a line on each, for the log."""
        said = []
        for run in self._queries.runs(limit=1000, states=tuple(ACTIVE)):
            active = self._active[run.id] = ActiveRun(run)
            said.append(f"{run.id} was {run.state}: {RESUME[run.state]}")
            try:
                self._resume(active, RESUME[run.state])
            except (UnveilError, OSError) as error:  # `second` tries again
                said.append(f"{run.id}: {error}")
        return tuple(said)

    def second(self, vector: FeatureVector | None, matching: Callable[[str, Entity], bool | None]) -> tuple[str, ...]:
        """Look after everything under way; called once a second, with the newest window where there is a new one.

        Returns:
            What a person should know: one run's trouble keeps nobody from looking after the others, and is met again
            in the next second.
        """
        now_s = self._clock()
        self._telling.catch_up()
        troubles = [*self._dry_runs.second(now_s)]
        for active in list(self._active.values()):
            try:
                self._look_after(active, vector, matching, now_s)
            except (UnveilError, OSError) as error:
                troubles.append(f"run {active.run.id} ({active.run.state}) cannot go on: {error}")
        if not 0 < self._next_expiry_s - now_s <= EXPIRY_S:  # also when the clock was set back
            self._next_expiry_s = now_s + EXPIRY_S
            try:
                self._expire(now_s)
                self._supervisor.prune(now_s - SNAPSHOTS_S)
            except (UnveilError, OSError) as error:
                troubles.append(f"waiting runs were not looked through: {error}")
        return tuple(troubles)

    def _resume(self, active: ActiveRun, how: Resume) -> None:
        if how is Resume.ADOPT:
            self._adopt_child(active)
        elif how is Resume.VERIFY:
            active.verifier = self._verifier(active.run)
        elif how is Resume.RESTORE:
            self._restore(active.run, WATCHER)

    def _look_after(
        self,
        active: ActiveRun,
        vector: FeatureVector | None,
        matching: Callable[[str, Entity], bool | None],
        now_s: float,
    ) -> None:
        state = active.run.state
        if state is RunState.APPLYING and active.child is not None:
            self._follow_child(active, active.child, now_s)
        elif state is RunState.VERIFYING and active.verifier is not None:
            self._verify(active, active.verifier, vector, matching, now_s)
        elif state is RunState.ROLLING_BACK and active.ending is not None:
            self._step(active.run, *active.ending)
        else:
            self._resume(active, RESUME[state])

    def _permit(
        self, plan: Plan, situation: Situation, actor: str, intent: policy.Intent, run: Run | None = None
    ) -> None:
        approval = None if run is None else entered(run, RunState.APPROVED)
        permit(
            plan,
            situation,
            self._queries.runs(limit=500),
            intent=intent,
            person=actor != WATCHER,
            now_s=self._clock(),
            run_id=None if run is None else run.id,
            # A person's approval lifts the bounds of automation; the watcher's own does not.
            approved_s=None if approval is None or approval.actor == WATCHER else approval.at_s,
        )

    # Steps

    def _keep(self, run: Run) -> Run:
        self._journal.put_run(run)
        if run.id in self._active:
            self._active[run.id].run = run
        return run

    def _step(self, run: Run, state: RunState, cause: Cause, actor: str, detail: str = "") -> Run:
        """Journal a step, then let it hold."""
        stepped = self._keep(advance(run, state, cause, actor, self._clock(), detail=detail))
        if state not in ACTIVE and (ended := self._active.pop(run.id, None)) is not None:
            self._let_go(ended)
        _LOG.info("run %s: %s (%s) %s", run.id, state, cause, detail)
        return stepped

    def _let_go(self, active: ActiveRun) -> None:
        """Delete what a child that has ended left; its snapshot stays."""
        child, active.child = active.child, None
        if child is not None:
            try:
                self._supervisor.discard(child)
            except (UnveilError, OSError) as error:
                _LOG.warning("the files of run %s stay: %s", active.run.id, error)

    def _same_plan(self, run: Run, plan_hash: str) -> None:
        if run.plan.hash != plan_hash:
            raise ConflictError(f"{run.id} is not the plan that was shown", hint=f"look at `unveil runs show {run.id}`")

    def _start(self, run: Run, situation: Situation, actor: str) -> Run:
        saved = save_before(run, self._supervisor.directory_of(run.id), self._settings.peek, at_s=self._clock())
        if situation.baseline:
            saved = replace(saved, plan=replace(saved.plan, baseline=situation.baseline))
        run = self._step(saved, RunState.APPLYING, Cause.STARTED, actor)
        active = self._active[run.id] = ActiveRun(run)
        try:
            active.child = self._supervisor.start(run)
        except (UnveilError, OSError) as error:
            return self._step(run, RunState.FAILED_CLEAN, Cause.APPLY_FAILED, WATCHER, str(error))
        return run

    def _adopt_child(self, active: ActiveRun) -> None:
        try:
            active.child = self._supervisor.adopt(active.run.id)
        except UnreadableError as error:
            # Killed between the step and the start: no playbook ever ran. A request that is there and cannot be read
            # is another matter: what it changed is told by the settings alone.
            started = (self._supervisor.directory_of(active.run.id) / REQUEST).exists()
            detail = error.what if started else "it was never started"
            self._applied(active, Cause.LOST, changed=None if started else False, detail=detail)

    def _follow_child(self, active: ActiveRun, child: ChildRun, now_s: float) -> None:
        try:
            progress = child.poll()
        except UnreadableError as error:  # an answer that nobody can read is none
            self._applied(active, Cause.LOST, changed=None, detail=error.what)
            return
        self._telling.tell(active.run.id, now_s, *map(reported, progress.events))
        if progress.result is None:
            return
        result = progress.result
        detail = result.message + (f"; {result.survivors} processes survive" if result.survivors else "")
        self._applied(active, result.status.cause, changed=result.changed > 0 or None, detail=detail)

    def _applied(self, active: ActiveRun, cause: Cause, *, changed: bool | None, detail: str) -> None:
        """Take the step that follows the end of a playbook; see ``after_playbook``."""
        actor = active.canceled_by or WATCHER
        run, state, cause, detail = after_playbook(
            active.run, cause, self._settings.peek, changed=changed, canceled=bool(active.canceled_by), detail=detail
        )
        if state is RunState.ROLLING_BACK:
            self._roll_back(run, cause, actor, detail)
            return
        stepped = self._step(run, state, cause, actor, detail)
        if state is RunState.VERIFYING:
            active.verifier = self._verifier(stepped)
            self._let_go(active)
            self._changed()

    def _verifier(self, run: Run) -> Verifier:
        return Verifier(run.plan, self._clock(), written=run.written)

    def _verify(
        self,
        active: ActiveRun,
        verifier: Verifier,
        vector: FeatureVector | None,
        matching: Callable[[str, Entity], bool | None],
        now_s: float,
    ) -> None:
        run = active.run
        contents = {address: self._peek(address, now_s - verifier.started_s) for address in run.written}
        outcome = verifier.push(vector, matching(run.plan.fingerprint, run.plan.entity), contents, now_s)
        if outcome is None:
            return
        self._telling.tell(run.id, now_s, *map(measured, outcome.measured))
        if outcome.state is RunState.ROLLING_BACK:
            self._roll_back(run, outcome.cause, WATCHER, outcome.detail)
        else:
            self._step(run, outcome.state, outcome.cause, WATCHER, outcome.detail)

    def _roll_back(self, run: Run, cause: Cause, actor: str, detail: str = "") -> Run:
        if not wants_rollback(run.plan, cause):
            return self._step(run, RunState.FAILED_DIRTY, Cause.NO_ROLLBACK, actor, detail)
        run = self._step(run, RunState.ROLLING_BACK, cause, actor, detail)
        self._active.setdefault(run.id, ActiveRun(run))
        return self._restore(run, actor)

    def _restore(self, run: Run, actor: str) -> Run:
        """Put the saved values back and take the step that follows; `second` takes it when it cannot be journalled."""
        answers = self._settings.restore(run.saved, run.written)
        self._changed()
        end, cause, told = after_restore(run, answers)
        self._active[run.id].ending = (end, cause, actor, told)
        self._telling.tell(run.id, self._clock(), *map(restored, answers))
        return self._step(run, end, cause, actor, told)

    def _expire(self, now_s: float) -> None:
        for run in self._queries.runs(limit=200, states=(RunState.PLANNED, RunState.APPROVED)):
            try:
                late = policy.expired(run, self._situation(run.plan).remediation, now_s)
            except RefusedError:  # its remediation left the knowledge base: it can be looked at, never applied
                late = now_s - run.steps[-1].at_s > WITHOUT_REMEDIATION_S
            if late:
                self._step(run, RunState.EXPIRED, Cause.APPROVAL_EXPIRED, WATCHER)
