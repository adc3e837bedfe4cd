"""RunLife: what happens to runs once they have begun; the only place that makes the host change.

Driven by the watch loop once a second. Nothing here waits: playbooks run in children, settings are read and put back
natively. A step that begins something is in the journal, on the disk, before it is taken. One that ends or undoes
something does not wait for a full disk: the settings are put right first, and the step is written when there is room.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.engine.active_run import ActiveRun
from unveil.engine.run_events import measured, reported, restored
from unveil.engine.run_settings import after_playbook, after_restore, save_before
from unveil.errors import RefusedError, UnreadableError, UnveilError
from unveil.execution.request import REQUEST
from unveil.records.run import RunState
from unveil.remediation.lifecycle import ACTIVE, RESUME, Cause, Resume, advance, wants_rollback
from unveil.remediation.verification import Verifier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from unveil.engine.run_keeping import RunKeeping
    from unveil.engine.run_telling import RunTelling
    from unveil.execution.settings import Settings
    from unveil.execution.supervisor import ChildRun, RunSupervisor
    from unveil.records.entity import Entity
    from unveil.records.feature import FeatureVector
    from unveil.records.run import Run
    from unveil.remediation.verification import Progress

_LOG = logging.getLogger(__name__)
WATCHER = "watcher"
_FIRST_ON_THE_DISK = frozenset({RunState.PLANNED, RunState.APPROVED, RunState.APPLYING})


class RunLife:
    """The runs that have the host in hand.

    Args:
        peek: content of a managed setting as cheaply as it can be had, at a time; for looking every second.
        changed: called after the host was changed, so that detectors start to gather evidence anew.
        clock: wall clock, seconds since the epoch.
    """

    def __init__(
        self,
        *,
        keeping: RunKeeping,
        telling: RunTelling,
        settings: Settings,
        supervisor: RunSupervisor,
        peek: Callable[[str, float], str | None],
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._keeping = keeping
        self._telling = telling
        self._settings = settings
        self._supervisor = supervisor
        self._peek = peek
        self._changed = changed
        self._clock = clock
        self.active: dict[str, ActiveRun] = {}

    def step(self, run: Run, state: RunState, cause: Cause, actor: str, detail: str = "") -> Run:
        """Journal a step, then let it hold.

        Raises:
            RefusedError: the lifecycle has no such step.
            UnwritableError: it begins something, and the disk does not take it.
        """
        stepped = advance(run, state, cause, actor, self._clock(), detail=detail)
        if state in _FIRST_ON_THE_DISK:
            self._keeping.keep(stepped)
        else:
            self._keeping.keep_anyway(stepped)
        if run.id in self.active:
            self.active[run.id].run = stepped
        if state not in ACTIVE and (ended := self.active.pop(run.id, None)) is not None:
            self._let_go(ended)
        _LOG.info("run %s: %s (%s) %s", run.id, state, cause, detail)
        return stepped

    def start(self, run: Run, actor: str, *, baseline: Mapping[str, float]) -> Run:
        """Save what the settings read, and start the playbook of an approved run.

        Args:
            baseline: the features that verification compares, measured now.
        """
        saved = save_before(run, self._supervisor.directory_of(run.id), self._settings.peek, at_s=self._clock())
        if baseline:
            saved = replace(saved, plan=replace(saved.plan, baseline=baseline))
        run = self.step(saved, RunState.APPLYING, Cause.STARTED, actor)
        active = self.active[run.id] = ActiveRun(run)
        try:
            active.child = self._supervisor.start(run)
        except (UnveilError, OSError) as error:
            return self.step(run, RunState.FAILED_CLEAN, Cause.APPLY_FAILED, WATCHER, str(error))
        return run

    def cancel(self, active: ActiveRun, actor: str) -> Run:
        """Stop a run that has begun; what it changed is undone.

        Raises:
            RefusedError: it is being put back already.
        """
        if active.run.state is RunState.APPLYING and active.child is not None:
            active.canceled_by = active.canceled_by or actor
            active.child.cancel()
            return active.run
        if active.run.state is RunState.VERIFYING:
            return self.roll_back(active.run, Cause.CANCELED, actor)
        raise RefusedError(f"{active.run.id} is {active.run.state}; it cannot be stopped in that", hint="wait a second")

    def roll_back(self, run: Run, cause: Cause, actor: str, detail: str = "") -> Run:
        """Put the saved values back, where the plan asks for that."""
        if not wants_rollback(run.plan, cause):
            return self.step(run, RunState.FAILED_DIRTY, Cause.NO_ROLLBACK, actor, detail)
        run = self.step(run, RunState.ROLLING_BACK, cause, actor, detail)
        self.active.setdefault(run.id, ActiveRun(run))
        return self._restore(run, actor)

    def progress(self, identity: str) -> Progress | None:
        """Return how far the verification of a run is, None when it is not being verified."""
        active = self.active.get(identity)
        return None if active is None or active.verifier is None else active.verifier.progress()

    def take_up(self, run: Run) -> str:
        """Take up a run that an earlier watcher left; return a line on it, for the log."""
        active = self.active[run.id] = ActiveRun(run)
        how = RESUME[run.state]
        try:
            self._resume(active, how)
        except (UnveilError, OSError) as error:  # `second` tries again
            return f"{run.id} was {run.state}: {how}, but {error}"
        return f"{run.id} was {run.state}: {how}"

    def second(self, vector: FeatureVector | None, matching: Callable[[str, Entity], bool | None]) -> tuple[str, ...]:
        """Look after everything under way; return what a person should know."""
        now_s = self._clock()
        troubles = []
        for active in list(self.active.values()):
            try:
                self._look_after(active, vector, matching, now_s)
            except (UnveilError, OSError) as error:
                troubles.append(f"run {active.run.id} ({active.run.state}) cannot go on: {error}")
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
        else:
            self._resume(active, RESUME[state])

    def _let_go(self, active: ActiveRun) -> None:
        """Delete what a child that has ended left; its snapshot stays."""
        child, active.child = active.child, None
        if child is not None:
            try:
                self._supervisor.discard(child)
            except (UnveilError, OSError) as error:
                _LOG.warning("the files of run %s stay: %s", active.run.id, error)

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
            self.roll_back(run, cause, actor, detail)
            return
        stepped = self.step(run, state, cause, actor, detail)
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
            self.roll_back(run, outcome.cause, WATCHER, outcome.detail)
        else:
            self.step(run, outcome.state, outcome.cause, WATCHER, outcome.detail)

    def _restore(self, run: Run, actor: str) -> Run:
        """Put the saved values back and take the step that follows."""
        answers = self._settings.restore(run.saved, run.written)
        self._changed()
        end, cause, told = after_restore(run, answers)
        self._telling.tell(run.id, self._clock(), *map(restored, answers))
        return self.step(run, end, cause, actor, told)
