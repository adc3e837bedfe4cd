# ruff: noqa: E501, PTH103, PTH118, PTH123, PT017 -- names stand as they are; folders that are no text need bytes
"""Tenants choose every name they can to be run, lost or misdrawn: through match, plan, playbook, log and command line.

A scratch host holds a cgroup of each name, throttled on an idle machine, under a real watcher; one real playbook shows
all of them. Process and container names, which may be longer than a folder's name, go through the playbook, too.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import RefusedError
from unveil.execution.supervisor import RunSupervisor
from unveil.records.entity import HOST
from unveil.records.plain_text import plain
from unveil.records.remediation import Variable, VerificationRule
from unveil.records.run import Plan
from unveil.remediation.lifecycle import new_run
from unveil.remediation.planner import digest
from unveil.remediation.variables import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
CANARY = "/tmp/unveil-hostile-canary"
RUN = f"touch {CANARY}"
TEMPLATES = [
    f"{{{{ lookup('pipe', '{RUN}') }}}}", f"{{{{ query('pipe', '{RUN}') }}}}", "{{ 7*7 }}", "{{ hostvars }}",
    "{% for x in range(9) %}x{% endfor %}", "{{ ''.__class__.__mro__[1].__subclasses__() }}", "{# comment #}",
    "{{ undefined_variable }}", "{{ unveil_settings }}", "{{", "}}", "{%", "{{ '{{ 1 }}' }}", "{{ lookup('env','PATH') }}",
    "{{ config.items() }}", "{{ cycler.__init__.__globals__ }}", "!unsafe x", "__ansible_unsafe", "AnsibleUnsafe",
    "#jinja2: variable_start_string:'['", "[[ 7*7 ]]", "${7*7}", "#{7*7}", "<%= 7*7 %>", "{{7*7}}" * 20,
]  # fmt: skip
SHELL = [
    f"$({RUN})", f"`{RUN}`", f"; {RUN}", f"| {RUN}", f"&& {RUN}", f"'; {RUN}; '", f'"; {RUN}; "', f"x\n{RUN}",
    f"--exec={RUN}", "-rf", "--help", "$IFS", "~root", "*", "?", "a b", "a\tb", ">out", "<in", "%n%s", "\\", "'", '"',
]  # fmt: skip
YAML = [
    "- a",
    "a: b",
    "!!python/object/apply:os.system [id]",
    "&a",
    "*a",
    "on",
    "null",
    "~",
    "012",
    "1e3",
    "---",
    "...",
]
SCREEN = [
    "\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b[31mred", "\x9b31m", "\r0 % overwritten", "\x08\x08\x08", "\x00".replace("\0", "\x01"),
    "[red]markup[/red]", "[link=file:///etc/passwd]x[/link]", "\u202egnp.exe", "\u2066x\u2069", "\u200bzero", "\u2028line",
    "e\u0301" * 8, "Z\u0351\u0351\u0351\u0351\u0351\u0351", "\ufeffbom", "\U0001f4a5", "\u0430dmin", "\x7f", "\x85next",
]  # fmt: skip
BYTES = [b"\xff\xfe", b"\xc3\x28", b"bad\x80utf8", b"\xed\xa0\x80"]
LONG = "A" * 65_536
NAMES = [*TEMPLATES, *SHELL, *YAML, *SCREEN]


def folder_names() -> list[bytes]:
    """Return the names that a folder can have: no slash, no NUL, at most 255 bytes, none twice."""
    encoded = [name.encode().replace(b"/", b"_")[:255] for name in NAMES]
    return list(dict.fromkeys([*encoded, *BYTES]))


@pytest.fixture
def canary() -> Iterator[Path]:
    path = Path(CANARY)
    path.unlink(missing_ok=True)
    yield path
    path.unlink(missing_ok=True)


def test_there_are_sixty_of_them_and_more() -> None:
    assert len(NAMES) + len(BYTES) >= 60
    assert len(folder_names()) >= 60


@pytest.mark.ansible
@pytest.mark.slow
def test_a_playbook_shows_every_name_whole_and_runs_none(tmp_path: Path, canary: Path) -> None:
    values = (*(clean(name)[:4096] for name in NAMES), *(clean(os.fsdecode(name)) for name in BYTES), clean(LONG))
    folder = tmp_path / "kb"
    folder.mkdir(mode=0o700)
    playbook = folder / "apply.yml"
    playbook.write_text(
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n"
        '    - name: Say whose it is\n      ansible.builtin.debug:\n        msg: "{{ item }}"\n'
        '      loop: "{{ tenants }}"\n'
    )
    plan = plan_of(playbook, {"tenants": values})
    supervisor = RunSupervisor(tmp_path / "runs", ROOT / "playbooks/modules")
    child = supervisor.start(new_run("r000000000001", plan, "uid:0", 0.0))
    events: list[Any] = []
    end = time.monotonic() + 90
    while time.monotonic() < end:
        progress = child.poll()
        events += progress.events
        if progress.result is not None:
            break
        time.sleep(0.1)
    assert progress.result is not None
    assert progress.result.status == "successful", progress.result.message
    assert not canary.exists(), "a name was run"
    log = (supervisor.directory_of("r000000000001") / "child.log").read_bytes()
    assert b"\x1b" not in log
    assert events
    text = (supervisor.directory_of("r000000000001") / "events.jsonl").read_text()
    assert "49" not in {event.message for event in events}, "a template was computed"
    assert text.isprintable() or all(line.isprintable() for line in text.splitlines())
    while child._process is not None and child._process.poll() is None:
        time.sleep(0.05)


def plan_of(playbook: Path, variables: dict[str, Any]) -> Plan:
    from dataclasses import replace

    plan = Plan(
        remediation="show", remediation_revision="1", playbook=str(playbook), fingerprint="f", episode="e0", entity=HOST,
        variables=variables, untrusted=tuple(variables), changes=(),
        verification=VerificationRule(within_s=1.0, settings_hold_s=1.0, clear_s=1.0), timeout_s=80.0, mode="manual",
        impact="low", reversible=True, rollback_triggers=(), baseline={}, created_s=0.0, hash="",
    )  # fmt: skip
    return replace(plan, hash=digest(plan))


@pytest.mark.parametrize("name", [*NAMES, *map(os.fsdecode, BYTES), LONG])
def test_a_name_reaches_no_address_and_is_drawn_on_one_line(name: str) -> None:
    from unveil.remediation.variables import _check

    address = Variable(name="x", type="string", origin="match.cgroup", pattern=r"^(/[\w.:@=+,~\\-]+)+$")
    try:
        value = _check(address, f"/{name}", RefusedError)
    except RefusedError as refused:
        assert refused.what.isprintable()
        assert len(refused.what) < 400
    else:
        assert isinstance(value, str)
        assert not set(value) & set("{}$`;|&'\"\n\x1b*? "), "only what its author foresaw"
    shown = _check(Variable(name="x", type="string", untrusted=True, max_length=253), name, RefusedError)
    for text in (plain(name), plain(shown), ascii(name)[:200]):
        assert text.isprintable()
        assert "\n" not in text
        assert len(text) <= 200


class Throttled:
    """A scratch host with one throttled cgroup for each name, whose counters go up ten times a second."""

    def __init__(self, root: Path) -> None:
        self.root = root
        base = os.fsencode(root / "sys/fs/cgroup")
        self.folders = [os.path.join(base, name) for name in folder_names()]
        for folder in self.folders:
            os.makedirs(folder)
            Path(os.fsdecode(folder), "cpu.max").write_text("50000 100000\n")
        mount = "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
        for name in ("proc/1", "proc/self"):
            (root / name).mkdir(parents=True)
            (root / name / "mountinfo").write_text(mount)
        (root / "sys/fs/cgroup/cgroup.controllers").write_text("cpu memory\n")
        self._stop = threading.Event()
        self._tick(1)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _tick(self, number: int) -> None:
        (self.root / "proc/stat").write_text(
            f"cpu  {number * 5} 0 {number} {number * 14} 0 0 0 0 0 0\ncpu0 {number * 5} 0 {number} {number * 14} 0 0 0 0 0 0\n"
            f"intr 0\nctxt {number * 100}\nbtime 1\nprocesses {number}\nprocs_running 1\nprocs_blocked 0\n"
        )
        stat = (
            f"usage_usec {number * 50000}\nuser_usec {number * 40000}\nsystem_usec {number * 10000}\n"
            f"nr_periods {number * 2}\nnr_throttled {number}\nthrottled_usec {number * 40000}\n"
        ).encode()
        for folder in self.folders:
            with open(os.path.join(folder, b"cpu.stat"), "wb") as file:
                file.write(stat)

    def _run(self) -> None:
        number = 1
        while not self._stop.wait(0.1):
            number += 1
            self._tick(number)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_cgroups_of_every_name_are_found_planned_and_drawn(
    host: Callable[..., Any], tmp_path: Path, canary: Path
) -> None:
    throttled = Throttled(tmp_path / "host")
    try:
        watcher = host("--no-gpu", "--host-root", str(throttled.root), "--profile", "manual")
        wanted = min(60, len(throttled.folders))

        def firing() -> list[Any] | None:
            found = [each for each in watcher.client.call("episodes", open_only=True) if each["state"] == "firing"]
            return found if len(found) >= wanted else None

        episodes = watcher.wait("every cgroup's episode fires", firing, seconds=60)
        keys = [each["entity"]["key"] for each in episodes]
        assert len(set(keys)) == len(keys), "none stands for another"
        refused = planned = 0
        for episode in episodes:
            try:
                run = watcher.client.call("plan", episode=episode["id"])
                planned += 1
                assert all(change["address"].startswith("cgroup:/") for change in run["plan"]["changes"])
            except RefusedError as error:
                refused += 1
                assert error.what.isprintable()
        assert refused >= 40, "a name that its author did not foresee reaches no plan"
        assert planned >= 1
        for words in (["episodes"], ["status"], ["runs", "list"], ["explain", "cgroup_cpu_quota_throttling"]):
            told = watcher.unveil(*words)
            assert "Traceback" not in told.stderr, words
            text = told.stdout.replace("\n", "")
            assert all(c.isprintable() for c in text), (words, [c for c in text if not c.isprintable()][:5])
            assert "\u202e" not in told.stdout
        whole = json.loads(watcher.unveil("episodes", "--limit", "200", "--json").stdout)
        assert {each["entity"]["key"] for each in whole} >= set(keys), "nothing is lost to a machine"
        assert all(line.isprintable() for line in watcher.log().splitlines())
        assert "Traceback" not in watcher.log()
        assert not canary.exists(), "a name was run"
    finally:
        throttled.close()
