"""Fleet: one remediation over many hosts from one place, a batch at a time, with a run and a rollback for each host.

No watcher is needed on the hosts: values of the plan come from a person and the site; settings are read, written and
put back over the inventory's connections. Between two batches the settings of the last one must have held, and a
playbook of the site's own may have looked. At the first host that does not end well everything stops: what was changed
there is put back, the batches after it are untouched. Each step is in the fleet's own journal before it is taken, so
that a controller that was killed finds its place again.
"""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.engine.fleet_host import FleetStep
from unveil.engine.fleet_plan import ASKED, JOURNAL, modules_of, remediation_of, runs_of
from unveil.engine.granting import refuse_open_knowledge
from unveil.engine.run_settings import after_playbook
from unveil.errors import ConflictError, RefusedError, UnveilError
from unveil.execution.remote import Remote, putting_back, reading
from unveil.records.remediation import Mode
from unveil.records.run import RunState
from unveil.remediation import fleet
from unveil.remediation.calendar import frozen
from unveil.remediation.lifecycle import Cause, after_rollback, wants_rollback
from unveil.remediation.planner import drifted
from unveil.remediation.setting import equal
from unveil.store.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from unveil.engine.knowledge import KnowledgeInUse
    from unveil.execution.remote import HostAnswer
    from unveil.execution.request import Wanted
    from unveil.records.fleet import FleetPlan
    from unveil.records.run import Run

_UNDER_WAY = frozenset({RunState.APPLYING, RunState.VERIFYING, RunState.ROLLING_BACK})
_UNDOABLE = frozenset({RunState.KEPT, RunState.INCONCLUSIVE, RunState.REVERTED_BY_OTHER, RunState.FAILED_DIRTY})


class Fleet:
    """Carries one fleet plan out.

    Args:
        tell: called with (host, run, detail) after every step.
        profile: as for `unveil watch`; ``site`` leaves it to the knowledge base's profiles, which as shipped observe.
    """

    def __init__(
        self,
        home: Path,
        made: FleetPlan,
        knowledge: KnowledgeInUse,
        *,
        actor: str,
        profile: str = "site",
        tell: Callable[[str, Run], None] = lambda _host, _run: None,
    ) -> None:
        self._folder = home / made.id
        self._made = made
        self._knowledge = knowledge
        self._profile = profile
        self._fix = remediation_of(knowledge, made.remediation)
        self._lock = _claimed(self._folder)
        self._journal = Journal(self._folder / JOURNAL)
        self._remote = Remote(self._folder / ASKED, made.inventory, modules_of(knowledge))
        self.runs = runs_of(home, made)
        self._hosts = FleetStep(self.runs, self._journal, actor=actor, tell=tell)

    def close(self) -> None:
        """Let the fleet go."""
        self._journal.close()
        os.close(self._lock)

    def apply(self, *, roll_back_all: bool = False, past_failures: bool = False) -> bool:
        """Go on from where the plan stands, batch after batch; return whether every host ended well.

        Args:
            roll_back_all: when a host does not end well, put back what was changed on all of them.
            past_failures: hosts that have ended badly before do not keep the others from being begun.

        Raises:
            RefusedError: a host's profile is to observe, or the remediation is not what it was.
            ConflictError: a setting is no longer what the plan says; nothing more was begun.
        """
        self._refuse()
        self._take_up()
        known = set(self._failed()) if past_failures else set()
        for batch in fleet.batches([host.name for host in self._made.hosts if host.run], self._made.serial):
            waiting = [host for host in batch if self.runs[host].state in (RunState.PLANNED, RunState.APPROVED)]
            if waiting and not set(self._failed()) - known:
                self._batch(waiting)
        failed = self._failed()
        if failed and roll_back_all:
            self.roll_back(host for host, run in self.runs.items() if run.state is RunState.KEPT)
        return not failed and all(run.state in fleet.WELL for run in self.runs.values())

    def roll_back(self, hosts: Iterable[str]) -> None:
        """Put back what was changed on hosts, as far as it is still ours."""
        chosen = [host for host in hosts if self.runs[host].state in _UNDOABLE]
        for host in chosen:
            self._hosts.step(host, RunState.ROLLING_BACK, Cause.OPERATOR)
        self._put_back(chosen)

    def _failed(self) -> tuple[str, ...]:
        ended = [run for run in self.runs.values() if run.state not in (RunState.PLANNED, RunState.APPROVED)]
        bad = {run.id for run in fleet.stops(ended)}
        return tuple(host for host, run in self.runs.items() if run.id in bad)

    def _refuse(self) -> None:
        if self._fix.revision != self._made.revision:
            raise RefusedError(f"{self._fix.name} is not what it was when the plan was made", hint="plan again")
        refuse_open_knowledge(self._knowledge.root, self._fix.path)
        if (freeze := frozen(self._knowledge.current.profiles.freezes, time.time())) is not None:
            raise RefusedError(
                f"the site is frozen until the end of {freeze.last} (UTC): {freeze.reason.strip()}",
                hint="freezes are in inventory/profiles.yml; a rollback is not held back",
            )
        for host in self.runs:
            if self._knowledge.mode(self._fix, profile=self._profile, host=host) is Mode.OBSERVE:
                raise RefusedError(
                    f"the profile of {host} is to observe only",
                    hint="set it in inventory/profiles.yml, or say --profile manual",
                )

    def _batch(self, hosts: list[str]) -> None:
        """Take one batch through its life."""
        ready = self._begin(hosts)
        if not ready:
            return
        plans = {host: self.runs[host].plan for host in ready}
        first = plans[ready[0]]
        wanted = tuple((each.address, each.after) for each in first.changes if each.after is not None)
        try:
            answers = self._remote.play(
                ",".join(ready), Path(first.playbook), variables=first.variables, settings=wanted,
                timeout_s=first.timeout_s,
            )  # fmt: skip
        except UnveilError as error:
            self._after_playbook(ready, {}, error.what)
            return
        self._after_playbook(ready, answers, "")

    def _begin(self, hosts: list[str]) -> list[str]:
        """Save what the settings read, and return the hosts whose playbook may begin."""
        answers = self._read(hosts)
        if more := sorted(set(answers) - set(hosts)):  # a name that is a pattern: it would be played there, too
            raise ConflictError(
                f"{', '.join(hosts)!a} names {more[0]!a} as well; nothing more was begun",
                hint="give each host of the inventory a name that is no pattern of Ansible's",
            )
        ready = []
        for host in hosts:
            run, answer = self.runs[host], answers.get(host)
            if run.state is RunState.PLANNED:
                self._hosts.step(host, RunState.APPROVED, Cause.OPERATOR)
                run = self.runs[host]
            if answer is None or answer.failure:
                why = "it did not answer" if answer is None else answer.failure
                self._hosts.step(host, RunState.REFUSED, Cause.POLICY, why)
            elif stale := drifted(run.plan, answer.contents.get):
                self._hosts.step(host, RunState.REFUSED, Cause.PLAN_STALE, f"changed since: {', '.join(stale)}")
            else:
                asked = [change.address for change in run.plan.changes]  # whatever else it answered
                saved = {address: text for address in asked if (text := answer.contents.get(address)) is not None}
                self.runs[host] = replace(run, saved=saved)
                ready.append(host)
        if len(ready) < len(hosts):
            return []  # the others of the batch wait: nothing is begun beside a host that is not as planned
        for host in ready:
            self._hosts.step(host, RunState.APPLYING, Cause.STARTED)
        return ready

    def _after_playbook(self, hosts: list[str], answers: Mapping[str, HostAnswer], wrong: str) -> None:
        contents = self._read(hosts)
        verifying = []
        for host in hosts:
            answer, now = answers.get(host), contents.get(host)
            failure = wrong or ("it gave no answer" if answer is None else answer.failure)
            ended = Cause.APPLY_FAILED if failure else Cause.APPLIED
            read = (lambda _address: None) if now is None else now.contents.get
            changed = None if answer is None or not answer.changed else True
            run, state, cause, detail = after_playbook(
                self.runs[host], ended, read, changed=changed, canceled=False, detail=failure
            )
            self.runs[host] = run
            self._hosts.step(host, state, cause, detail)
            if state is RunState.VERIFYING:
                verifying.append(host)
        self._put_back([host for host in hosts if self.runs[host].state is RunState.ROLLING_BACK])
        self._verify(verifying)

    def _verify(self, hosts: list[str]) -> None:
        """Judge hosts whose playbook is through: the settings hold, and the site's own look finds nothing."""
        if not hosts:
            return
        time.sleep(max(self.runs[host].plan.verification.settings_hold_s for host in hosts))
        looked = self._look(hosts)
        contents = self._read(hosts)
        for host in hosts:
            run = self.runs[host]
            now = contents[host].contents if host in contents else {}
            foreign = [a for a, ours in run.written.items() if (text := now.get(a)) and not equal(a, text, ours)]
            if host not in contents or contents[host].failure:
                self._hosts.step(host, RunState.INCONCLUSIVE, Cause.NO_ANSWER, "its settings could not be read")
            elif foreign:
                detail = f"{', '.join(foreign)} no longer read as written"
                self._hosts.step(host, RunState.REVERTED_BY_OTHER, Cause.CHANGED_BY_OTHER, detail)
            elif failure := looked.get(host, ""):
                dirty = not wants_rollback(run.plan, Cause.NOT_VERIFIED)
                cause = Cause.NO_ROLLBACK if dirty else Cause.NOT_VERIFIED
                self._hosts.step(host, RunState.FAILED_DIRTY if dirty else RunState.ROLLING_BACK, cause, failure)
            else:
                self._hosts.step(host, RunState.KEPT, Cause.VERIFIED, f"{len(run.written)} settings hold")
        self._put_back([host for host in hosts if self.runs[host].state is RunState.ROLLING_BACK])

    def _look(self, hosts: list[str]) -> dict[str, str]:
        """Return host → what the site's own verification found wrong there."""
        if not self._made.verify:
            return {}
        try:
            answers = self._remote.play(
                ",".join(hosts), Path(self._made.verify), variables={}, settings=(), timeout_s=120.0
            )
        except UnveilError as error:
            return dict.fromkeys(hosts, f"the verification could not be run: {error.what}")
        return {host: answers[host].failure if host in answers else "the verification gave no answer" for host in hosts}

    def _put_back(self, hosts: list[str]) -> None:
        """Put saved values back where they are still ours, and take the step that follows."""
        if not hosts:
            return
        wanted = {host: putting_back(self.runs[host].saved, self.runs[host].written) for host in hosts}
        self._ask(hosts, wanted, write=True)
        contents = self._read(hosts)
        for host in hosts:
            run = self.runs[host]
            now = contents[host].contents if host in contents else {}
            foreign: list[str] = []
            failed: list[str] = []
            for address, before in run.saved.items():
                text = now.get(address)
                if text is not None and equal(address, text, before):
                    continue
                ours = run.written.get(address)
                still_ours = text is None or (ours is not None and equal(address, text, ours))
                (failed if still_ours else foreign).append(f"{address} reads {text!a}")
            state, cause = after_rollback(run, foreign=len(foreign), failed=len(failed))
            self._hosts.step(host, state, cause, "; ".join(failed or foreign) or f"{len(run.saved)} settings as before")

    def _read(self, hosts: list[str]) -> dict[str, HostAnswer]:
        wanted = {host: reading(each.address for each in self.runs[host].plan.changes) for host in hosts}
        return self._ask(hosts, wanted, write=False)

    def _ask(self, hosts: list[str], wanted: Mapping[str, tuple[Wanted, ...]], *, write: bool) -> dict[str, HostAnswer]:
        try:
            return self._remote.ask(",".join(hosts), wanted, write=write)
        except RefusedError:
            return {}

    def _take_up(self) -> None:
        """Bring runs that a killed controller left under way to an end; its processes are ended first."""
        under_way = {state: [h for h, run in self.runs.items() if run.state is state] for state in _UNDER_WAY}
        if not any(under_way.values()):
            return
        if left := self._remote.end_left_behind():
            raise ConflictError(f"{left} processes of an earlier controller cannot be ended", hint="end them by hand")
        if lost := under_way[RunState.APPLYING]:
            self._after_loss(lost)
        self._verify(under_way[RunState.VERIFYING])
        self._put_back(under_way[RunState.ROLLING_BACK])

    def _after_loss(self, hosts: list[str]) -> None:
        """Judge hosts by their settings: whether the playbook was through before its controller was killed."""
        contents = self._read(hosts)
        for host in hosts:
            plan, now = self.runs[host].plan, contents[host].contents if host in contents else {}
            wanted = [change for change in plan.changes if change.after is not None]
            through = all((t := now.get(c.address)) is not None and equal(c.address, t, c.after or "") for c in wanted)
            run, state, cause, detail = after_playbook(
                self.runs[host], Cause.APPLIED if through else Cause.LOST, now.get, changed=None, canceled=False,
                detail="" if through else "the controller was killed",
            )  # fmt: skip
            self.runs[host] = run
            self._hosts.step(host, state, cause, detail)
        self._put_back([host for host in hosts if self.runs[host].state is RunState.ROLLING_BACK])
        self._verify([host for host in hosts if self.runs[host].state is RunState.VERIFYING])


def _claimed(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise RefusedError(
            f"{folder.name} is being carried out already", hint="`unveil fleet show` says how far"
        ) from error
    return descriptor
