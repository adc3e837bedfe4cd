from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import RefusedError, UnreadableError
from unveil.execution import processes, snapshot
from unveil.execution.request import Status, load_result
from unveil.execution.supervisor import RunSupervisor, scrubbed_environment
from unveil.records.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable


def ansible(test: Any) -> Any:
    """Mark a test that starts Ansible, which takes seconds."""
    return pytest.mark.slow(pytest.mark.ansible(test))


WAIT = '- ansible.builtin.command: {argv: [python3, -c, "import time; time.sleep(%s)"]}'


def test_the_environment_of_a_child_is_made_not_inherited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("PYTHONPATH", "/tmp")
    monkeypatch.setenv("FAKE_NVML_STATE", "/tmp/state")
    monkeypatch.setenv("UNVEIL_NVML_LIBRARY", "/opt/libnvidia-ml.so.1")
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    made = scrubbed_environment("mark", tmp_path)
    assert set(made) == {"PATH", "HOME", "LANG", "LC_ALL", "UNVEIL_RUN", "UNVEIL_NVML_LIBRARY"}
    assert made["PATH"].startswith(str(Path(sys.executable).parent))
    assert os.environ["PATH"] not in made["PATH"] or os.environ["PATH"] == ""


def test_only_what_was_hashed_is_started_and_only_once(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path]
) -> None:
    plan = kit.plan(playbook("- ansible.builtin.debug: {msg: x}"))
    with pytest.raises(RefusedError, match="not what was hashed"):
        supervisor.start(kit.run(replace(plan, timeout_s=9.0)))
    run = kit.run(plan)
    (supervisor.directory_of(run.id) / "request.json").write_text("{}")
    with pytest.raises(RefusedError, match="already started"):
        supervisor.start(run)


def test_what_others_may_write_is_not_run(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path], tmp_path: Path
) -> None:
    path = playbook("- ansible.builtin.debug: {msg: x}")
    path.chmod(0o666)
    with pytest.raises(RefusedError, match="may be written by others"):
        supervisor.start(kit.run(kit.plan(path)))
    path.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        with pytest.raises(RefusedError, match="may be written by others"):
            supervisor.start(kit.run(kit.plan(path), 2))
    with pytest.raises(RefusedError, match="cannot be used"):
        supervisor.start(kit.run(kit.plan(tmp_path / "absent.yml"), 3))


def test_a_refused_dry_run_leaves_nothing(supervisor: RunSupervisor, kit: Any, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="cannot be used"):
        supervisor.dry_run(kit.plan(tmp_path / "absent.yml"))
    assert list(supervisor.directory.glob("*")) == []


def test_what_was_not_judged_is_not_played(kit: Any, playbook: Callable[..., Path], tmp_path: Path) -> None:
    def refuse(plan: Any, digests: Any) -> None:
        assert set(digests) == {plan.playbook, *(str(path) for path in kit.modules.glob("*.py"))}
        raise RefusedError("not what was judged")

    supervisor = RunSupervisor(tmp_path / "runs", kit.modules, judged=refuse)
    run = kit.run(kit.plan(playbook("- ansible.builtin.debug: {msg: x}")))
    for ask in (supervisor.prepare, supervisor.start):
        with pytest.raises(RefusedError, match="not what was judged"):
            ask(run)
    assert not (supervisor.directory_of(run.id) / "request.json").exists()


@ansible
def test_what_is_played_is_what_was_there_at_the_start_and_nothing_that_lies_beside_it(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path]
) -> None:
    path = playbook("- ansible.builtin.debug: {msg: \"said {{ word | default('nothing') }}\"}")
    for folder, name, text in (
        ("group_vars", "all.yml", "word: planted"),
        ("library", "unveil_setting.py", "raise SystemExit"),
        ("action_plugins", "debug.py", "raise SystemExit('planted')"),
    ):
        (path.parent / folder).mkdir()
        (path.parent / folder / name).write_text(text)
    run = kit.run(kit.plan(path))
    supervisor.prepare(run)
    path.write_text("- hosts: localhost\n  tasks: [{ansible.builtin.debug: {msg: changed meanwhile}}]\n")
    child = supervisor.start(run)
    result, events = kit.finish(child)
    assert result.status is Status.SUCCESSFUL, result
    assert [event.message for event in events if event.kind == "runner_on_ok"] == ["said nothing"]
    supervisor.discard(child)
    assert not (supervisor.directory / run.id).exists() or not any((supervisor.directory / run.id).iterdir())


@ansible
def test_a_child_outlives_its_watcher_and_the_next_one_adopts_it(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path], tmp_path: Path
) -> None:
    import json

    run = kit.run(kit.plan(playbook(WAIT % "2")))
    (tmp_path / "run.json").write_text(json.dumps(encode(run)))
    program = (
        "import json, os, signal, sys\n"
        "from pathlib import Path\n"
        "from unveil.execution.supervisor import RunSupervisor\n"
        "from unveil.records.codec import decode\n"
        "from unveil.records.run import Run\n"
        "run = decode(Run, json.loads(Path(sys.argv[1]).read_text()))\n"
        "RunSupervisor(Path(sys.argv[2]), Path(sys.argv[3]), host_root=sys.argv[4]).start(run)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    watcher = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "run.json", supervisor.directory, kit.modules, "/"], check=False
    )
    assert watcher.returncode == -signal.SIGKILL
    child = supervisor.adopt(run.id)
    assert child.poll().result is None, "it lives"
    result, events = kit.finish(child)
    assert (result.status, result.survivors) == (Status.SUCCESSFUL, 0)
    assert [event.kind for event in events][-1] == "playbook_on_stats"
    late = supervisor.adopt(run.id).poll()
    assert late.result == result, "one that has ended is adopted, too"
    assert len(late.events) == len(events)


@ansible
def test_a_child_that_was_killed_is_lost_and_leaves_nobody_behind(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path]
) -> None:
    child = supervisor.start(kit.run(kit.plan(playbook(WAIT % "90"))))
    end = time.monotonic() + 30
    while len(processes.marked(child.request.mark)) < 4 and time.monotonic() < end:
        assert child.poll().result is None
        time.sleep(0.1)
    assert child._process is not None
    child._process.kill()
    result, _ = kit.finish(child)
    assert (result.status, result.survivors) == (Status.LOST, 0)
    assert processes.marked(child.request.mark) == set()
    assert load_result(child.directory) == result
    assert supervisor.adopt(child.directory.name).poll().result == result


@ansible
def test_an_adopted_child_can_be_canceled(supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path]) -> None:
    started = supervisor.start(kit.run(kit.plan(playbook(WAIT % "90"))))
    adopted = supervisor.adopt(started.directory.name)
    adopted.cancel()  # before it can hear: it is asked again
    result, _ = kit.finish(adopted)
    assert (result.status, result.survivors) == (Status.CANCELED, 0)
    assert started._process is not None
    started._process.wait(10)


@ansible
def test_looking_never_waits(supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path]) -> None:
    child = supervisor.start(kit.run(kit.plan(playbook("- ansible.builtin.debug: {msg: x}"))))
    longest = 0.0
    end = time.monotonic() + 60
    while time.monotonic() < end:
        began = time.thread_time()
        result = child.poll().result
        longest = max(longest, time.thread_time() - began)
        if result is not None:
            break
        time.sleep(0.01)
    assert longest < 0.05, "CPU time of one look"
    kit.finish(child)
    supervisor.discard(child)
    assert not child.directory.exists()


@pytest.mark.ansible
def test_a_snapshot_outlives_the_run_until_it_is_pruned(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path]
) -> None:
    run = kit.run(kit.plan(playbook("- ansible.builtin.debug: {msg: x}")))
    note = snapshot.Snapshot(run=run.id, plan_hash=run.plan.hash, at_s=1.0, saved={"sysctl:vm.dirty_ratio": "20"})
    path = snapshot.save(supervisor.directory_of(run.id), note)
    child = supervisor.start(run)
    assert supervisor.prune(time.time() + 60) == 0, "not while it runs"
    kit.finish(child)
    supervisor.discard(child)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert snapshot.load(path.parent) == note
    assert supervisor.prune(time.time() - 60) == 0
    assert supervisor.prune(time.time() + 60) == 1
    assert not path.parent.exists()


def test_what_was_never_started_cannot_be_adopted(supervisor: RunSupervisor) -> None:
    with pytest.raises(UnreadableError):
        supervisor.adopt("r00000000000f")


def test_what_a_dry_run_left_is_pruned_like_an_old_snapshot(supervisor: RunSupervisor) -> None:
    left = supervisor.directory / "dry-0123456789ab-abcdef"
    left.mkdir(parents=True)
    (left / "request.json").write_text("{}")
    assert supervisor.prune(time.time() - 60) == 0
    assert supervisor.prune(time.time() + 60) == 1
    assert not left.exists()
