"""The traps of ansible-runner and Ansible, each met; T7, T13, T16 are about content: tests/playbooks, knowledge."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.execution import processes
from unveil.execution.child import Events, complaint, judge
from unveil.execution.request import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.execution.supervisor import RunSupervisor


def ansible(test: Any) -> Any:
    """Mark a test that starts Ansible, which takes seconds."""
    return pytest.mark.slow(pytest.mark.ansible(test))


STUBBORN = (
    "import os,signal,sys,time; os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "os.fork() or os.setsid(); open(sys.argv[1], 'a').write('x'); time.sleep(90)"
)


def long_task(argument: str, flag: Path) -> str:
    """Return a task that runs a program for a minute and a half."""
    argv = json.dumps(["python3", "-c", argument, str(flag)])
    return f"- ansible.builtin.command: {{argv: {argv}}}"


def wait_for(path: Path, child: Any, *, size: int = 1) -> None:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        if path.exists() and path.stat().st_size >= size:
            return
        progress = child.poll()
        assert progress.result is None, progress.result
        time.sleep(0.05)
    raise AssertionError("the task did not begin")


@ansible
def test_t1_t2_t5_a_cancel_leaves_no_process_even_of_those_that_do_not_want_to_end(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path], tmp_path: Path
) -> None:
    flag = tmp_path / "begun"
    child = supervisor.start(kit.run(kit.plan(playbook(long_task(STUBBORN, flag)))))
    wait_for(flag, child, size=2)
    assert len(processes.marked(child.request.mark)) >= 4, (
        "child, ansible-playbook, its worker, the program and its fork"
    )
    began = time.monotonic()
    child.cancel()
    result, _ = kit.finish(child)
    assert (result.status, result.survivors) == (Status.CANCELED, 0)
    assert time.monotonic() - began < 60.0, "three seconds of grace and a sweep, and not the minute and a half"
    assert processes.marked(child.request.mark) == set()


@pytest.mark.ansible
def test_t1_a_well_behaved_run_is_canceled_at_once(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path], tmp_path: Path
) -> None:
    flag = tmp_path / "begun"
    program = "import sys,time; open(sys.argv[1], 'a').write('x'); time.sleep(90)"
    child = supervisor.start(kit.run(kit.plan(playbook(long_task(program, flag)))))
    wait_for(flag, child)
    began = time.monotonic()
    child.cancel()
    result, _ = kit.finish(child)
    assert (result.status, result.survivors) == (Status.CANCELED, 0)
    assert time.monotonic() - began < 60.0, "and not after the minute and a half"


@ansible
def test_t1_a_run_that_takes_too_long_is_ended(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path], tmp_path: Path
) -> None:
    plan = kit.plan(playbook(long_task("import time; time.sleep(90)", tmp_path / "x")), timeout_s=3.0)
    result, _ = kit.finish(supervisor.start(kit.run(plan)))
    assert (result.status, result.survivors, result.message) == (Status.TIMEOUT, 0, "stopped after 3 s")


def test_t3_t4_handing_an_event_over_neither_waits_nor_raises(tmp_path: Path) -> None:
    events = Events(tmp_path / "events.jsonl")
    release = threading.Event()
    events._note = lambda *_: release.wait(100)  # type: ignore[assignment,method-assign]  # a disk that does not answer
    began = time.monotonic()
    for number in range(1000):
        assert events.put({"event": "runner_on_ok", "counter": number}) is False
    events.put({"event": "runner_on_ok", "event_data": object(), "counter": object()})
    events.put({"event": ["unhashable"]})
    assert time.monotonic() - began < 50, "who waited for the disk once would wait for longer"
    release.set()
    events.close()
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) >= 1000


HOSTILE = {
    "template": "{{ lookup('pipe', 'touch PWNED') }}",
    "statement": "{% for x in range(3) %}{{ x }}{% endfor %}",
    "shell": "x; touch PWNED; $(touch PWNED) `touch PWNED` && touch PWNED",
    "lines": "a\nb\r\nc",
    "screen": "\x1b[2J\x1b]0;owned\x07",
    "yaml": "!unsafe 'x': [1, {a: b}]",
    "long": "y" * 65536,
    "words": "no",
    "unicode": "ü\u202e\U0001f600",
}


@ansible
def test_t6_t14_t18_hostile_text_stays_text(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path], tmp_path: Path
) -> None:
    pwned = tmp_path / "PWNED"
    values = {name: text.replace("PWNED", str(pwned)) for name, text in HOSTILE.items()}
    out = tmp_path / "out.json"
    tasks = f"""
- name: Write all that came
  ansible.builtin.copy:
    dest: {out}
    mode: "0600"
    content: "{{{{ vars | dict2items | selectattr('key', 'in', {sorted(values)}) | items2dict | to_json }}}}"
- name: Show it
  ansible.builtin.debug:
    msg: "{{{{ template }}}} {{{{ screen }}}}"
- name: Give it to a module
  ansible.builtin.command:
    argv: [printf, "%s", "{{{{ template }}}}", "{{{{ shell }}}}"]
"""
    plan = kit.plan(playbook(tasks), variables=values, untrusted=tuple(sorted(values)))
    result, events = kit.finish(supervisor.start(kit.run(plan)))
    assert result.status is Status.SUCCESSFUL, result.message
    assert not pwned.exists()
    assert json.loads(out.read_text()) == values
    assert all(character.isprintable() or character in "\n\t" for event in events for character in event.message)
    assert any("lookup('pipe'" in event.message for event in events)
    assert any(difference.after for difference in result.differences), "differences come from events"


@ansible
def test_t17_strict_turns_a_template_that_is_not_ours_into_a_failure(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path], tmp_path: Path
) -> None:
    path = playbook('- ansible.builtin.debug: {msg: "{{ text }}"}')
    plan = kit.plan(path, variables={"text": "{{ 1 == 1 }}"})
    strict, _ = kit.finish(supervisor.start(kit.run(plan), strict=True))
    assert strict.status is Status.FAILED
    assert "ntrusted" in strict.message
    assert kit.finish(supervisor.start(kit.run(plan, 2)))[0].status is Status.SUCCESSFUL


@ansible
def test_t9_t10_nothing_of_ours_leaks_and_nothing_of_one_run_reaches_the_next(
    supervisor: RunSupervisor,
    kit: Any,
    playbook: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLOUD_TOKEN", "s3cr3t-t0ken")
    monkeypatch.setenv("ANSIBLE_STRATEGY", "no_such_strategy")
    flag, wait = tmp_path / "begun", "import sys,time; open(sys.argv[1], 'a').write('x'); time.sleep(1.5)"
    first = supervisor.start(kit.run(kit.plan(playbook(long_task(wait, flag)), variables={"word": "abracadabra"})))
    wait_for(flag, first)
    for pid in processes.marked(first.request.mark):
        assert b"s3cr3t" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert b"abracadabra" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    for path in first.directory.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, f"{path} may be read by others"
        assert not path.is_file() or b"s3cr3t" not in path.read_bytes()
    assert kit.finish(first)[0].status is Status.SUCCESSFUL
    assert sorted(path.name for path in first.directory.iterdir()) == [
        "child.json",
        "child.log",
        "events.jsonl",
        "request.json",
        "result.json",
    ], "artifacts are gone"
    tasks = "- ansible.builtin.assert: {that: [word is undefined]}"
    assert kit.finish(supervisor.start(kit.run(kit.plan(playbook(tasks)), 2)))[0].status is Status.SUCCESSFUL


@ansible
def test_t11_a_dry_run_changes_nothing_and_does_not_stick(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path], tree: Path
) -> None:
    tasks = """
- unveil_setting:
    settings: "{{ unveil_settings }}"
    root: "{{ unveil_host_root }}"
"""
    address = f"file:/{kit.thp}"
    plan = kit.plan(playbook(tasks), settings={address: ("always [madvise] never", "always")})
    before = kit.content(tree)
    dry, _ = kit.finish(supervisor.dry_run(plan))
    assert (dry.status, dry.check, dry.changed) == (Status.SUCCESSFUL, True, 1)
    assert [(each.name, each.before, each.after) for each in dry.differences] == [
        (address, "always [madvise] never", "always")
    ]
    assert kit.content(tree) == before
    real, _ = kit.finish(supervisor.start(kit.run(plan)))
    assert (real.status, real.check, real.changed) == (Status.SUCCESSFUL, False, 1)
    assert (tree / kit.thp).read_text() == "[always] madvise never\n"
    again, _ = kit.finish(supervisor.start(kit.run(plan, 2)))
    assert (again.status, again.changed, again.differences) == (Status.SUCCESSFUL, 0, ())


@pytest.mark.ansible
def test_t12_a_play_on_no_host_is_no_success(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path]
) -> None:
    path = playbook("- ansible.builtin.debug: {msg: x}", hosts="misspelt")
    result, _ = kit.finish(supervisor.start(kit.run(kit.plan(path))))
    assert (result.status, result.message) == (Status.FAILED, "no host was processed")


@ansible
def test_a_playbook_that_cannot_be_run_says_why(
    supervisor: RunSupervisor, kit: Any, playbook: Callable[..., Path]
) -> None:
    path = playbook("- no_such_module: {}")
    result, _ = kit.finish(supervisor.start(kit.run(kit.plan(path))))
    assert result.status is Status.FAILED
    assert "no_such_module" in result.message
    path.write_text(
        "- hosts: localhost\n  tasks:\n    - ansible.builtin.fail: {msg: 'out of \x07order'}\n".replace("\x07", "")
    )
    result, events = kit.finish(supervisor.start(kit.run(kit.plan(path), 2)))
    assert "out of order" in result.message
    assert any(event.failed for event in events)


def test_success_needs_an_exit_status_hosts_and_no_failure(tmp_path: Path) -> None:
    events = Events(tmp_path / "events.jsonl")
    good: dict[str, Any] = {"processed": {"localhost": 1}, "failures": {}, "dark": {}}
    for rc, wrong, statistics, expected in [
        (0, "", good, Status.SUCCESSFUL),
        (2, "", good, Status.FAILED),
        (None, "", good, Status.FAILED),
        (0, "odd command", good, Status.FAILED),
        (0, "", {}, Status.FAILED),
        (0, "", {**good, "failures": {"localhost": 1}}, Status.FAILED),
        (0, "", {**good, "dark": {"localhost": 1}}, Status.FAILED),
    ]:
        events.statistics = statistics
        status, message = judge(rc, wrong, events)
        assert status is expected
        assert bool(message) is (expected is Status.FAILED)
    events.close()


def test_the_first_error_is_the_complaint() -> None:
    assert complaint("noise\n[ERROR]: it is broken\n[ERROR]: more\n") == "[ERROR]: it is broken"
    assert complaint("only\nthis\n\n") == "this"
    assert complaint("") == ""
