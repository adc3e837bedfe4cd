"""``kb test --playbooks``: play the playbooks that cases plan, on a tree of plain files that stands for a host.

Each is asked five times over: does check mode leave every byte alone, does it write what was planned, does a second
time change nothing, does a rollback bring back byte for byte what was there, and does text that a tenant chose stay
text? The dry run is in Ansible's strict mode, where a template in data is a failure. Real Ansible, the watcher's own
supervisor and settings; no root is needed.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import UnveilError
from unveil.execution.places import Places
from unveil.execution.request import Status
from unveil.execution.settings import Outcome, Settings
from unveil.execution.supervisor import RunSupervisor
from unveil.records.run import Run, RunState, Step
from unveil.remediation.planner import digest
from unveil.remediation.setting import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from unveil.execution.request import RunResult
    from unveil.execution.supervisor import ChildRun
    from unveil.records.run import Plan

HOSTILE = "{{ lookup('pipe', 'touch pwned') }}$(touch pwned);`touch pwned`\n\x1b[31m' \" --"
_MOUNTS = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of one playbook.

    Attributes:
        failures: what was not as it should be; empty when it passed.
        skipped: why it could not be played here, empty when it was.
    """

    remediation: str
    failures: tuple[str, ...] = ()
    skipped: str = ""


def play(plan: Plan, modules: Path, scratch: Path) -> Played:
    """Play a plan's playbook in a scratch folder.

    Args:
        plan: with the content of each setting before and after.
        modules: our Ansible modules.
        scratch: an empty folder.
    """
    root = scratch / "host"
    if why := _furnish(plan, root):
        return Played(remediation=plan.remediation, skipped=why)
    stage = _Stage(plan, RunSupervisor(scratch / "runs", modules, host_root=str(root)), root)
    return Played(remediation=plan.remediation, failures=tuple(stage.act()))


def _furnish(plan: Plan, root: Path) -> str:
    """Write the settings of a plan as they were before, or return why they cannot be files."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(_MOUNTS)
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/cgroup.controllers").write_text("cpu cpuset io memory\n")
    places = Places(root)
    if not plan.changes:
        return "no case plans a change of a setting"
    for change in plan.changes:
        try:
            path = Path(places.path(parse_address(change.address)))
        except UnveilError as error:
            return error.what
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{change.before or ''}\n")
    return ""


def play_all(plans: Sequence[Plan], modules: Path, *, jobs: int, advance: Callable[[int], None]) -> tuple[Played, ...]:
    """Play several, side by side, each in a scratch folder of its own that is deleted afterwards.

    Args:
        advance: told how many are done.
    """

    def one(plan: Plan) -> Played:
        with tempfile.TemporaryDirectory(prefix="unveil-playbook-") as scratch:
            return play(plan, modules, Path(scratch))

    found = []
    with ThreadPoolExecutor(jobs) as pool:
        for played in pool.map(one, plans):
            found.append(played)
            advance(len(found))
    return tuple(found)


class _Stage:
    """One plan on one tree."""

    def __init__(self, plan: Plan, supervisor: RunSupervisor, root: Path) -> None:
        self.plan = plan
        self.supervisor = supervisor
        self.root = root
        self.settings = Settings(root)

    def act(self) -> list[str]:
        """Return what went wrong."""
        before = self._tree()
        hostile = dict(self.plan.variables) | dict.fromkeys(self.plan.untrusted, HOSTILE)
        plan = replace(self.plan, variables=hostile)
        plan = replace(plan, hash=digest(plan))
        failures: list[str] = []
        self._judge("check mode", self._end(self.supervisor.dry_run(self.plan, strict=True)), failures)
        if self._tree() != before:
            failures.append("check mode wrote something")
        saved = {change.address: self.settings.read(change.address) for change in plan.changes}
        self._judge("apply", self._run(plan), failures)
        failures += [
            f"{each.address} is {self.settings.read(each.address)!r} after it, not {each.after!r}"
            for each in plan.changes
            if each.after is not None
            and not self.settings.equal(each.address, self.settings.read(each.address), each.after)
        ]
        applied, written = self._tree(), {address: self.settings.read(address) for address in saved}
        again = self._run(plan)
        self._judge("apply again", again, failures)
        if again.changed or self._tree() != applied:
            failures.append("a second time changes something")
        left = [each for each in self.settings.restore(saved, written) if each.outcome is Outcome.FAILED]
        failures += [f"rollback: {each.address}: {each.reason}" for each in left]
        if self._tree() != before:
            failures.append("a rollback does not bring back what was there")
        if list(self.root.parent.rglob("pwned")):
            failures.append("text that a tenant chose was carried out")
        return failures

    def _run(self, plan: Plan) -> RunResult:
        step = Step(at_s=0.0, state=RunState.APPLYING, cause="test", actor="test")
        run = Run(id=f"r{secrets.token_hex(6)}", plan=plan, steps=(step,), saved={}, written={})
        return self._end(self.supervisor.start(run))

    def _end(self, child: ChildRun) -> RunResult:
        while (result := child.poll().result) is None or not child.gone:
            time.sleep(_POLL_S)
        return result

    def _judge(self, what: str, result: RunResult, failures: list[str]) -> None:
        if result.status is not Status.SUCCESSFUL:
            failures.append(f"{what}: {result.status}: {result.message}")

    def _tree(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}
