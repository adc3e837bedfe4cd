"""RunDriver: what people, and within limits automation, ask of runs; and the runs that wait for an answer.

Whether something may be done is `policy`'s to decide, what follows what the lifecycle's; what happens to a run once it
has begun is in `run_life.py`. Nothing here waits for anything.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unveil.engine.dry_runs import DryRuns
from unveil.engine.people import entitled_by, lapsed
from unveil.engine.run_keeping import RunKeeping
from unveil.engine.run_life import WATCHER, RunLife
from unveil.engine.run_telling import RunTelling
from unveil.engine.situation import cure, permit
from unveil.errors import ConflictError, RefusedError, UnveilError
from unveil.records.remediation import Mode
from unveil.records.run import RunState
from unveil.remediation import policy
from unveil.remediation.lifecycle import ACTIVE, RESUME, TERMINAL, Cause, Resume, entered, new_run
from unveil.remediation.planner import drifted

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.reserve import Reserve
    from unveil.engine.situation import Situation
    from unveil.execution.settings import Settings
    from unveil.execution.supervisor import RunSupervisor
    from unveil.records.entity import Entity
    from unveil.records.feature import FeatureVector
    from unveil.records.run import Plan, Run
    from unveil.records.site import Profiles
    from unveil.remediation.verification import Progress
    from unveil.store.journal import Journal
    from unveil.store.queries import Queries

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
        reserve: room for writing a rollback down when the disk is full.
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
        reserve: Reserve,
    ) -> None:
        self._queries = queries
        self._settings = settings
        self._supervisor = supervisor
        self._situation = situation
        self._clock = clock
        self._keeping = RunKeeping(journal, reserve)
        self._telling = RunTelling(journal)
        self.life = RunLife(
            keeping=self._keeping, telling=self._telling, settings=settings, supervisor=supervisor, peek=peek,
            changed=changed, clock=clock,
        )  # fmt: skip
        self._dry_runs = DryRuns(supervisor, self._telling)
        self._next_expiry_s = 0.0

    @property
    def active(self) -> int:
        """Return how many runs have the host in hand."""
        return len(self.life.active)

    def newest(self, run: Run) -> Run:
        """Return a run as it stands, also where a full disk keeps that out of the journal."""
        return self._keeping.newest(run)

    def progress(self, identity: str) -> Progress | None:
        """Return how far the verification of a run is, None when it is not being verified."""
        return self.life.progress(identity)

    def propose(self, plan: Plan, *, actor: str) -> Run:
        """Journal a plan as a run that waits for approval; return one with the same plan that already waits.

        Automation also joins a run of another episode that does the very same to the very same settings.

        Raises:
            RefusedError: the watcher itself may not propose it now; a person may always plan.
        """
        for run in self._queries.runs(limit=50, states=(RunState.PLANNED, RunState.APPROVED, *ACTIVE)):
            if run.plan.hash == plan.hash and run.plan.episode == plan.episode:
                return run  # asked twice: the same answer
            if actor == WATCHER and policy.does_the_same(run.plan, plan):
                return run
        if actor == WATCHER:
            self._permit(plan, self._situation(plan), actor, policy.Intent.PROPOSE)
        run = new_run(f"r{os.urandom(6).hex()}", plan, actor, self._clock())
        self._keeping.keep(run)
        return run

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
            self.life.step(run, RunState.EXPIRED, Cause.APPROVAL_EXPIRED, WATCHER)
            raise RefusedError(f"{run.id} waited too long for its approval", hint="plan again")
        if actor == WATCHER:
            return self.life.step(run, RunState.APPROVED, Cause.POLICY, actor)
        by = "" if situation.calendar is None else entitled_by(run.plan.impact, actor, situation.calendar)
        return self.life.step(run, RunState.APPROVED, Cause.OPERATOR, actor, by)

    def apply(self, run: Run, *, plan_hash: str, actor: str) -> Run:
        """Start an approved plan, after a last look at policy, silences, fresh windows and the settings themselves.

        Raises:
            RefusedError: it may not run now, or its playbook is not what was judged; the run waits on, unless its plan
                is out of date, or who approved it may no longer approve it: then it ends refused.
            ConflictError: a setting is no longer what the plan says; the run ends refused.
        """
        self._same_plan(run, plan_hash)
        if run.state is not RunState.APPROVED:
            raise RefusedError(f"{run.id} is {run.state}, not approved", hint=f"`unveil runs approve {run.id}` first")
        situation = self._situation(run.plan)
        self._refuse_lapsed(run, situation.calendar)
        self._permit(run.plan, situation, actor, policy.Intent.APPLY, run)
        if stale := drifted(run.plan, self._settings.peek):
            self.life.step(run, RunState.REFUSED, Cause.PLAN_STALE, WATCHER, f"changed since: {', '.join(stale)}")
            raise ConflictError(f"{run.id} is out of date: {', '.join(stale)} changed since", hint="plan again")
        self._supervisor.prepare(run)
        return self.life.start(run, actor, baseline=situation.baseline)

    def expect(self, mode: Mode) -> None:
        """Have a playbook's process ready, for two minutes, where a run is likely to need one soon."""
        if mode is not Mode.OBSERVE:
            self._supervisor.stand_by()

    def close(self) -> None:
        """Let a process that stands by go. Runs under way go on."""
        self._supervisor.close()

    def dry_run(self, run: Run) -> None:
        """Let Ansible go through a plan in check mode; what it says becomes events of the run."""
        self._dry_runs.start(run)

    def cancel(self, run: Run, *, actor: str) -> Run:
        """Stop a run: one that waits ends at once, one under way is undone."""
        active = self.life.active.get(run.id)
        if active is None:
            return self.life.step(self.newest(run), RunState.CANCELED, Cause.OPERATOR, actor)
        return self.life.cancel(active, actor)

    def roll_back(self, run: Run, *, actor: str) -> Run:
        """Put back what a run changed, as far as it is still ours. Never refused for want of room on the disk.

        Raises:
            RefusedError: it has nothing to put back, its time for that is over, or another run has a setting in hand.
        """
        active = self.life.active.get(run.id)
        if active is not None:
            return self.life.roll_back(active.run, Cause.OPERATOR, actor)
        run = self.newest(run)
        if run.state in TERMINAL and not self._undoable(run):
            raise RefusedError(
                f"{run.id} is {run.state} and can no longer be rolled back",
                hint=f"its settings before and after are in `unveil runs show {run.id} --json`",
            )
        for other in self.life.active.values():
            if shared := sorted(set(run.saved) & set(other.run.saved)):
                raise RefusedError(f"run {other.run.id} has {shared[0]} in hand", hint="wait for its end, or cancel it")
        return self.life.roll_back(run, Cause.OPERATOR, actor)

    def _undoable(self, run: Run) -> bool:
        try:
            return policy.undoable(run, self._situation(run.plan).remediation, self._clock())
        except RefusedError:  # edited or gone since: no reason to leave the host as it is
            return self._clock() - run.steps[-1].at_s <= WITHOUT_REMEDIATION_S

    # The watch loop

    def adopt(self) -> tuple[str, ...]:
        """Take up what an earlier watcher left; return a line on each, for the log."""
        self._keeping.catch_up()  # nothing is owed yet: the reserve is made whole
        said = [self.life.take_up(run) for run in self._queries.runs(limit=1000, states=tuple(ACTIVE))]
        said += [f"{run.id} was {run.state}: {RESUME[run.state]}" for run in self._to_decide()]
        return tuple(said)

    def second(self, vector: FeatureVector | None, matching: Callable[[str, Entity], bool | None]) -> tuple[str, ...]:
        """Look after everything under way; called once a second, with the newest window where there is a new one.

        Returns:
            What a person should know: one run's trouble keeps nobody from looking after the others, and is met again
            in the next second.
        """
        now_s = self._clock()
        self._telling.catch_up()
        troubles = [*self._dry_runs.second(now_s), *self.life.second(vector, matching)]
        if self._keeping.owes:
            troubles += self._keeping.catch_up()
        if not 0 < self._next_expiry_s - now_s <= EXPIRY_S:  # also when the clock was set back
            self._next_expiry_s = now_s + EXPIRY_S
            try:
                self._expire(now_s)
                self._decide()
                self._supervisor.prune(now_s - SNAPSHOTS_S)
                self._keeping.catch_up()
            except (UnveilError, OSError) as error:
                troubles.append(f"waiting runs were not looked through: {error}")
        return tuple(troubles)

    def _to_decide(self) -> tuple[Run, ...]:
        """Return the runs that the profile approved, not a person, and that were not begun."""
        waiting = self._queries.runs(limit=200, states=(RunState.APPROVED,))
        return tuple(run for run in waiting if RESUME[run.state] is Resume.DECIDE and run.steps[-1].actor == WATCHER)

    def _decide(self) -> None:
        """Apply what the profile approved, once policy and fresh windows agree; refuse it when they no longer do."""
        for run in self._to_decide():
            try:
                if self._situation(run.plan).still_matching is False:
                    self.life.step(run, RunState.REFUSED, Cause.NOT_MATCHING, WATCHER, "it cleared by itself")
                else:
                    self.apply(run, plan_hash=run.plan.hash, actor=WATCHER)
            except (RefusedError, ConflictError):
                continue  # it waits on, until it expires; or it has just ended refused

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

    def _refuse_lapsed(self, run: Run, site: Profiles | None) -> None:
        """End a run whose approver may not approve it any more; what the profile approved is the policy's to judge."""
        approval = entered(run, RunState.APPROVED)
        if site is None or approval is None or approval.actor == WATCHER:
            return
        if why := lapsed(run.plan.impact, approval.actor, site):
            self.life.step(run, RunState.REFUSED, Cause.APPROVAL_LAPSED, WATCHER, why)
            raise RefusedError(f"the approval of {run.id} has lapsed: {why}", hint="plan again, and have it approved")

    def _same_plan(self, run: Run, plan_hash: str) -> None:
        if run.plan.hash != plan_hash:
            raise ConflictError(f"{run.id} is not the plan that was shown", hint=f"look at `unveil runs show {run.id}`")

    def _expire(self, now_s: float) -> None:
        for run in self._queries.runs(limit=200, states=(RunState.PLANNED, RunState.APPROVED)):
            try:
                late = policy.expired(run, self._situation(run.plan).remediation, now_s)
            except RefusedError:  # its remediation left the knowledge base: it can be looked at, never applied
                late = now_s - run.steps[-1].at_s > WITHOUT_REMEDIATION_S
            if late:
                self.life.step(run, RunState.EXPIRED, Cause.APPROVAL_EXPIRED, WATCHER)
