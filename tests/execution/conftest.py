"""Plans that are really carried out: in a tree of plain files that stands for a host, or on this machine's kernel."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.execution.supervisor import RunSupervisor
from unveil.records.entity import HOST
from unveil.records.remediation import VerificationRule
from unveil.records.run import Plan, SettingChange
from unveil.remediation.lifecycle import new_run
from unveil.remediation.planner import digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.execution.request import RunEvent, RunResult
    from unveil.execution.supervisor import ChildRun
    from unveil.records.fact import FactValue
    from unveil.records.run import Run

MODULES = Path(__file__).parents[2] / "playbooks/modules"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
TREE = {
    THP: "always [madvise] never\n",
    "proc/sys/vm/dirty_ratio": "20\n",
    "proc/sys/vm/dirty_bytes": "0\n",
    "proc/irq/24/smp_affinity_list": "0-1\n",
    "proc/irq/25/smp_affinity_list": "1\n",
    "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    "sys/fs/cgroup/pod1/cpu.max": "50000 100000\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Give a tree that stands for a host."""
    root = tmp_path / "host"
    for name, text in TREE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def kit() -> Kit:
    """Give what makes, runs and looks at plans."""
    return Kit()


class Kit:
    """The functions below, for tests that cannot import them."""

    thp = THP
    modules = MODULES

    def plan(self, playbook: Path, **given: Any) -> Plan:
        return plan_of(playbook, **given)

    def run(self, plan: Plan, number: int = 1) -> Run:
        return run_of(plan, number)

    def finish(self, child: ChildRun, *, seconds: float = 60.0) -> tuple[RunResult, list[RunEvent]]:
        return finish(child, seconds=seconds)

    def content(self, root: Path) -> dict[str, bytes]:
        return content_of(root)


def content_of(root: Path) -> dict[str, bytes]:
    """Return every file of a tree."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture
def playbook(tmp_path: Path) -> Callable[[str], Path]:
    """Write a playbook with the given tasks (YAML, not indented) and return its path."""

    def write(tasks: str, *, hosts: str = "localhost") -> Path:
        folder = tmp_path / "playbook"
        folder.mkdir(exist_ok=True)
        indented = "".join(f"    {line}\n" for line in tasks.strip().splitlines())
        path = folder / "apply.yml"
        path.write_text(f"- hosts: {hosts}\n  gather_facts: false\n  tasks:\n{indented}")
        return path

    return write


def plan_of(
    playbook: Path,
    *,
    settings: dict[str, tuple[str, str | None]] | None = None,
    variables: dict[str, FactValue] | None = None,
    untrusted: tuple[str, ...] = (),
    timeout_s: float = 60.0,
) -> Plan:
    """Return a plan for a playbook: address → (before, after)."""
    changes = tuple(
        SettingChange(address=address, before=before, after=after)
        for address, (before, after) in (settings or {}).items()
    )
    plan = Plan(
        remediation="test",
        remediation_revision="1",
        playbook=str(playbook),
        fingerprint="test",
        episode="e000000000000",
        entity=HOST,
        variables=variables or {},
        untrusted=untrusted,
        changes=changes,
        verification=VerificationRule(within_s=45.0, settings_hold_s=3.0, clear_s=5.0),
        timeout_s=timeout_s,
        mode="approve",
        impact="low",
        reversible=True,
        rollback_triggers=("apply_failed", "verify_failed", "canceled", "timeout", "operator"),
        baseline={},
        created_s=0.0,
        hash="",
    )
    return replace(plan, hash=digest(plan))


def run_of(plan: Plan, number: int = 1) -> Run:
    """Return a fresh run of a plan."""
    return new_run(f"r{number:012x}", plan, "uid:0", 0.0)


def finish(child: ChildRun, *, seconds: float = 60.0) -> tuple[RunResult, list[RunEvent]]:
    """Poll a child until it has a result."""
    events: list[RunEvent] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        progress = child.poll()
        events += progress.events
        if progress.result is not None:
            child.poll()
            if child._process is not None:
                child._process.wait(60)  # reaped, so that nothing of it is left to the next test
            return progress.result, events
        time.sleep(0.05)
    pytest.fail(f"no result within {seconds} s: {(child.directory / 'child.log').read_text()}")


@pytest.fixture
def supervisor(tmp_path: Path, tree: Path) -> RunSupervisor:
    """Give a supervisor whose modules act on the tree."""
    return RunSupervisor(tmp_path / "runs", MODULES, host_root=str(tree))
