"""``kb test --playbooks``: play the playbooks that cases plan, on a tree of plain files that stands for a host.

Each is asked five times over: does check mode leave every byte alone, does it write what was planned, does a second
time change nothing, does a rollback bring back byte for byte what was there, and does text that a tenant chose stay
text? The dry run is in Ansible's strict mode, where a template in data is a failure. Real Ansible, the watcher's own
child, supervisor and settings; no root is needed.

Several share one start of Ansible, each pass of theirs (check, apply, apply again) its own. What a shared start says
is believed only when it passes as a whole: else each of them is played by itself, as the watcher would.
"""

from __future__ import annotations

import secrets
import tempfile
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.errors import UnveilError
from unveil.execution.places import Places
from unveil.execution.request import Status
from unveil.execution.settings import Outcome, Settings
from unveil.execution.several import Part, play_several
from unveil.execution.supervisor import RunSupervisor
from unveil.knowledge.yaml_positions import read_yaml
from unveil.records.entity import EntityKind
from unveil.records.run import Run, RunState, Step
from unveil.remediation.planner import digest
from unveil.remediation.setting import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from unveil.execution.request import RunResult
    from unveil.execution.supervisor import ChildRun
    from unveil.records.run import Plan

HOSTILE = "{{ lookup('pipe', 'touch pwned') }}$(touch pwned);`touch pwned`\n\x1b[31m' \" --"
PASSES = 3  # of each: check mode, apply, apply again
SHARE = 7  # that share a start: more save little, and have more to play anew when one of them fails
TARGET = "{{ unveil_target | default('localhost') }}"
_MOUNTS = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
_POLL_S = 0.1
_SHADOWING = {"vars", "vars_files", "vars_prompt", "roles", "set_fact", "include_vars", "include_role", "import_role"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of one playbook.

    Attributes:
        failures: what was not as it should be; empty when it passed.
        skipped: why it was not played, empty when it was.
        remembered: it passed earlier, and nothing has changed since.
    """

    remediation: str
    failures: tuple[str, ...] = ()
    skipped: str = ""
    remembered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """How one pass of one playbook ended: why it failed, empty when it did not, and how many tasks changed anything."""

    failure: str = ""
    changed: int = 0


class _Stage:
    """One plan on one tree, and what is found wrong with it."""

    def __init__(self, plan: Plan, scratch: Path) -> None:
        self.scratch = scratch
        self.root = scratch / "host"
        self.plan = plan
        hostile = replace(plan, variables=dict(plan.variables) | dict.fromkeys(plan.untrusted, HOSTILE))
        self.hostile = replace(hostile, hash=digest(hostile))
        self.failures: list[str] = []
        self.skipped = _furnish(plan, self.root)
        self._settings = Settings(self.root)
        self._before = self._tree()
        changes = () if self.skipped else plan.changes
        self._saved = {change.address: self._settings.read(change.address) for change in changes}
        self._applied: dict[str, bytes] = {}
        self._written: dict[str, str] = {}

    def checked(self, said: _Said) -> None:
        """Judge check mode."""
        self._note("check mode", said)
        if self._tree() != self._before:
            self.failures.append("check mode wrote something")

    def applied(self, said: _Said) -> None:
        """Judge the first apply."""
        self._note("apply", said)
        for change in self.plan.changes:
            now = self._settings.read(change.address)
            if change.after is not None and not self._settings.equal(change.address, now, change.after):
                self.failures.append(f"{change.address} is {now!r} after it, not {change.after!r}")
            self._written[change.address] = now
        self._applied = self._tree()

    def applied_again(self, said: _Said) -> None:
        """Judge the second apply, undo what was done, and judge that."""
        self._note("apply again", said)
        if said.changed or self._tree() != self._applied:
            self.failures.append("a second time changes something")
        left = [each for each in self._settings.restore(self._saved, self._written) if each.outcome is Outcome.FAILED]
        self.failures += [f"rollback: {each.address}: {each.reason}" for each in left]
        if self._tree() != self._before:
            self.failures.append("a rollback does not bring back what was there")
        if list(self.scratch.rglob("pwned")):
            self.failures.append("text that a tenant chose was carried out")

    def _note(self, what: str, said: _Said) -> None:
        if said.failure:
            self.failures.append(f"{what}: {said.failure}")

    def _tree(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}


def _furnish(plan: Plan, root: Path) -> str:
    """Write the settings of a plan as they were before, or return why they cannot be files."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(_MOUNTS)
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/cgroup.controllers").write_text("cpu cpuset io memory\n")
    for node in ("node0", "node1"):
        (root / "sys/devices/system/node" / node).mkdir(parents=True)
    if plan.entity.kind is EntityKind.CGROUP:  # that has no process
        cgroup = root / "sys/fs/cgroup" / plan.entity.key.lstrip("/")
        cgroup.mkdir(parents=True, exist_ok=True)
        (cgroup / "cgroup.procs").touch()
        (cgroup / "memory.stat").write_text("anon 0\nanon_thp 0\n")
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


def play_all(
    plans: Sequence[Plan],
    modules: Path,
    *,
    jobs: int,
    advance: Callable[[int], None],
    told: Callable[[Plan, Played], None] = lambda _plan, _played: None,
) -> tuple[Played, ...]:
    """Play several, side by side, each in a scratch folder of its own that is deleted afterwards.

    Args:
        plans: with the content of each setting before and after.
        modules: our Ansible modules.
        advance: told how many passes are done, of `PASSES` a plan.
        told: what became of each that was played, as soon as it is known.
    """
    found: dict[str, Played] = {}
    theatre = _Theatre(modules)
    with tempfile.TemporaryDirectory(prefix="unveil-playbook-") as scratch, ThreadPoolExecutor(jobs) as pool:
        try:
            waiting = {
                pool.submit(theatre.play, share, Path(scratch) / f"share{number}")
                for number, share in enumerate(_shares(plans, jobs))
            }
            while waiting:
                done, waiting = wait(waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                advance(theatre.passes)
                for plan, played in (each for share in done for each in share.result()):
                    found[plan.remediation] = played
                    told(plan, played)
        finally:  # a person ends it: nothing may go on
            theatre.stop.set()
            pool.shutdown(cancel_futures=True)
    return tuple(found[plan.remediation] for plan in plans)


def play(plan: Plan, modules: Path, scratch: Path) -> Played:
    """Play a plan's playbook by itself, in an empty folder."""
    return _Theatre(modules).alone(plan, scratch)


def _shares(plans: Sequence[Plan], jobs: int) -> Iterator[tuple[Plan, ...]]:
    """Yield the plans in shares as even as can be, the single ones first."""
    shared = []
    for plan in plans:
        if may_share(Path(plan.playbook)):
            shared.append(plan)
        else:
            yield (plan,)
    count = max(jobs, -(-len(shared) // SHARE))
    yield from (share for start in range(count) if (share := tuple(shared[start::count])))


def may_share(playbook: Path) -> bool:
    """Return whether a playbook does the same beside others: one play, for our target, whose variables are the plan's.

    A variable of a play or a task is weaker than one of a run, but stronger than one of an imported playbook.
    """
    try:
        plays = read_yaml(str(playbook), playbook.read_bytes()).data
    except OSError:
        return False
    alone = isinstance(plays, list) and len(plays) == 1 and isinstance(plays[0], dict)
    return alone and plays[0].get("hosts") == TARGET and not _keys(plays) & _SHADOWING


def _keys(value: Any) -> set[str]:
    """Return every key of a YAML value, modules by their short names."""
    if isinstance(value, list):
        return set().union(*map(_keys, value))
    if isinstance(value, dict):
        return {str(key).rpartition(".")[2] for key in value}.union(*map(_keys, value.values()))
    return set()


class _Theatre:
    """Plays plans, together or alone, until it is stopped."""

    def __init__(self, modules: Path) -> None:
        self.stop = threading.Event()
        self.passes = 0
        self._modules = modules
        self._lock = threading.Lock()

    def play(self, plans: Sequence[Plan], scratch: Path) -> list[tuple[Plan, Played]]:
        """Play a share, together if there are several; what fails together is played alone."""
        if len(plans) > 1:
            told = self._together(plans, scratch / "together")
            if told is not None:
                return told
            self._advance(-PASSES * len(plans))
        alone = ((plan, number) for number, plan in enumerate(plans) if not self.stop.is_set())
        return [(plan, self.alone(plan, scratch / f"alone{number}")) for plan, number in alone]

    def alone(self, plan: Plan, scratch: Path) -> Played:
        """Play one as the watcher would."""
        stage = _Stage(plan, scratch)
        if stage.skipped:
            self._advance(PASSES)
            return Played(remediation=plan.remediation, skipped=stage.skipped)
        supervisor = RunSupervisor(scratch / "runs", self._modules, host_root=str(stage.root))
        stage.checked(self._end(supervisor.dry_run(plan, strict=True)))
        stage.applied(self._end(supervisor.start(_run_of(stage.hostile))))
        stage.applied_again(self._end(supervisor.start(_run_of(stage.hostile))))
        return Played(remediation=plan.remediation, failures=tuple(stage.failures))

    def _together(self, plans: Sequence[Plan], scratch: Path) -> list[tuple[Plan, Played]] | None:
        """Play a share in one start a pass; None when anything in it was not as it should be."""
        stages = {plan.remediation: _Stage(plan, scratch / plan.remediation) for plan in plans}
        on = {name: stage for name, stage in stages.items() if not stage.skipped}
        steps: tuple[tuple[bool, Callable[[_Stage, _Said], None]], ...] = (
            (True, _Stage.checked), (False, _Stage.applied), (False, _Stage.applied_again),
        )  # fmt: skip
        for number, (check, judge) in enumerate(steps):
            parts = {
                name: Part(plan=stage.plan if check else stage.hostile, host_root=str(stage.root))
                for name, stage in on.items()
            }
            folder = scratch / f"pass{number}"
            result, answers = play_several(
                parts, folder, self._modules, check=check, strict=check, stop=self.stop
            ) if parts else (None, {})  # fmt: skip
            self._advance(len(plans))
            if parts and (result is None or result.status is not Status.SUCCESSFUL or set(answers) != set(parts)):
                self._advance((len(steps) - number - 1) * len(plans))
                return None
            for name, stage in on.items():
                judge(stage, _Said(failure=answers[name].failure, changed=answers[name].changed))
        if any(stage.failures for stage in stages.values()) or list(scratch.rglob("pwned")):
            return None
        return [(stage.plan, Played(remediation=name, skipped=stage.skipped)) for name, stage in stages.items()]

    def _end(self, child: ChildRun) -> _Said:
        while (result := child.poll().result) is None or not child.gone:
            if self.stop.is_set():
                child.cancel()
            time.sleep(_POLL_S)
        self._advance(1)
        return _said(result)

    def _advance(self, passes: int) -> None:
        with self._lock:
            self.passes += passes


def _said(result: RunResult) -> _Said:
    failure = "" if result.status is Status.SUCCESSFUL else f"{result.status}: {result.message}"
    return _Said(failure=failure, changed=result.changed)


def _run_of(plan: Plan) -> Run:
    step = Step(at_s=0.0, state=RunState.APPLYING, cause="test", actor="test")
    return Run(id=f"r{secrets.token_hex(6)}", plan=plan, steps=(step,), saved={}, written={})
