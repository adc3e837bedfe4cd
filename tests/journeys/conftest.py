"""A real watcher as a process, a real patient in a cgroup of its own, and every setting put back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.client import Client
from unveil.errors import UnveilError, WatcherAbsentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def wait_for(what: str, condition: Callable[[], Any], *, seconds: float) -> Any:
    """Return the first truthy value of a condition; fail the test when the time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(WatcherAbsentError):
            if value := condition():
                return value
        time.sleep(0.1)
    pytest.fail(f"{what}: not within {seconds} s")


@dataclass
class Host:
    """One `unveil watch` and its client."""

    folder: Path
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    well: list[dict[str, Any]] = field(default_factory=list)

    wait = staticmethod(wait_for)

    def __post_init__(self) -> None:
        self.client = Client(self.folder / "control.sock")

    def start(self) -> None:
        log = (self.folder.parent / f"{self.folder.name}.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unveil", "watch", "--state-dir", str(self.folder), *self.arguments],
            stdout=log, stderr=log, env={**os.environ, **self.environment},
        )  # fmt: skip
        log.close()
        wait_for("the watcher answers", lambda: self.client.call("ping"), seconds=90)

    def kill(self) -> None:
        assert self.process
        self.client.close()
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.client.close()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def log(self) -> str:
        return (self.folder.parent / f"{self.folder.name}.log").read_text()

    def unveil(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a person would."""
        return subprocess.run(
            [sys.executable, "-m", "unveil", *words, "--state-dir", str(self.folder)],
            capture_output=True, text=True, check=False, timeout=90, env={**os.environ, **self.environment},
        )  # fmt: skip

    def episode(self, fingerprint: str, entity: str, *, seconds: float) -> dict[str, Any]:
        """Return the firing episode of a fingerprint on an entity."""

        def find() -> dict[str, Any] | None:
            for each in self.client.call("episodes", open_only=True):
                name = f"{each['entity']['kind']}:{each['entity']['key']}"
                if each["fingerprint"] == fingerprint and name == entity and each["state"] == "firing":
                    return dict(each)
            return None

        found: dict[str, Any] = wait_for(f"{fingerprint} fires on {entity}", find, seconds=seconds)
        return found

    def run(self, identity: str) -> dict[str, Any]:
        told: dict[str, Any] = self.client.call("run", id=identity)["run"]
        return told

    def again(self, identity: str) -> int:
        """Play a run's playbook once more, by hand, and return how many tasks changed something."""
        plan = self.run(identity)["plan"]
        wanted = [{"address": each["address"], "value": each["after"]} for each in plan["changes"] if each["after"]]
        given = {**plan["variables"], "unveil_settings": wanted, "ansible_python_interpreter": sys.executable}
        modules = Path(plan["playbook"]).parents[1] / "modules"
        played = subprocess.run(
            [Path(sys.executable).parent / "ansible-playbook", "-i", "localhost,", "-c", "local", plan["playbook"],
             "-e", json.dumps(given)],
            capture_output=True, text=True, check=False, timeout=120,
            env={**os.environ, "ANSIBLE_LIBRARY": str(modules), "ANSIBLE_MODULE_UTILS": str(modules)},
        )  # fmt: skip
        counts = re.search(r"ok=([1-9]\d*) +changed=(\d+) +unreachable=0 +failed=0", played.stdout)
        assert counts, played.stdout + played.stderr
        return int(counts[2])

    def ended(self, identity: str, *, seconds: float) -> str:
        """Return the state in which a run ended."""
        busy = {"planned", "approved", "applying", "verifying", "rolling_back"}

        def state() -> str | None:
            with contextlib.suppress(UnveilError):
                now = str(self.run(identity)["steps"][-1]["state"])
                return None if now in busy else now
            return None

        ended: str = wait_for(f"{identity} ends", state, seconds=seconds)
        return ended


def _hosts(folder: Path) -> Iterator[Callable[..., Host]]:
    """Start watchers; each is stopped at the end."""
    started: list[Host] = []

    def start(*arguments: str, **environment: str) -> Host:
        watcher = Host(folder / f"state{len(started)}", arguments, environment)
        started.append(watcher)
        watcher.start()
        return watcher

    yield start
    for watcher in started:
        watcher.stop()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Callable[..., Host]]:
    """Start watchers; each is stopped at the end."""
    yield from _hosts(tmp_path)


@pytest.fixture(scope="module")
def lasting_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Host]]:
    """Start watchers for all tests of a file."""
    yield from _hosts(tmp_path_factory.mktemp("lasting"))


@dataclass
class Patient:
    """A workload in a cgroup of its own."""

    process: subprocess.Popen[str]
    cgroup: str
    output: Path

    def anon_huge_kb(self) -> int:
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(next(line.split()[1] for line in rollup.splitlines() if line.startswith("AnonHugePages:")))


def _hierarchies() -> list[Path]:
    """Return where a cgroup must be made so that its memory and CPU time are counted."""
    v1 = [Path("/sys/fs/cgroup") / name for name in ("memory", "cpu", "cpuacct", "cpuset")]
    there = [path for path in v1 if (path / "cgroup.procs").exists()]
    return there or [Path("/sys/fs/cgroup")]


@pytest.fixture
def cgroup() -> Iterator[str]:
    """Make a cgroup (in every hierarchy that counts) and remove it with everything in it."""
    name = f"unveil-journey-{os.getpid()}"
    made = []
    try:
        for hierarchy in _hierarchies():
            folder = hierarchy / name
            folder.mkdir()
            made.append(folder)
            for seed in ("cpuset.cpus", "cpuset.mems"):  # a new v1 cpuset is empty and takes nobody in
                if (folder / seed).exists() and (hierarchy / seed).exists():
                    (folder / seed).write_text((hierarchy / seed).read_text())
    except OSError as error:
        for folder in made:
            folder.rmdir()
        pytest.skip(f"this kernel lets nobody make a cgroup: {error}")
    yield f"/{name}"
    for folder in made:
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    for folder in made:
        for _ in range(100):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.05)


@pytest.fixture
def patient(cgroup: str, tmp_path: Path) -> Iterator[Callable[..., Patient]]:
    """Start the demo's workload inside the cgroup."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> Patient:
        output = tmp_path / "patient.log"
        folders = [str(hierarchy / cgroup.lstrip("/") / "cgroup.procs") for hierarchy in _hierarchies()]
        enter = "import sys\nfor path in sys.argv[1].split(','): open(path, 'w').write('0')\n"
        program = f"{enter}from unveil.demo.workload import main\nmain(sys.argv[2:])"
        with output.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", program, ",".join(folders), *arguments], stdout=log, text=True
            )
        started.append(process)
        return Patient(process, cgroup, output)

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def thp_madvise() -> Iterator[bytes]:
    """Set THP as most distributions ship it; put back what was there."""
    try:
        before = THP.read_bytes()
        THP.write_text("madvise")
    except OSError as error:
        pytest.skip(f"this kernel's huge pages cannot be set: {error}")
    yield THP.read_bytes()
    THP.write_text(before.decode().partition("[")[2].partition("]")[0])


@pytest.fixture
def knowledge_base(tmp_path: Path) -> Path:
    """Return a copy of the shipped knowledge base that a test may edit."""
    root = Path(__file__).parents[2]
    copy = tmp_path / "kb"
    copy.mkdir(mode=0o700)
    for folder in ("fingerprints", "playbooks", "schemas", "inventory"):
        shutil.copytree(root / folder, copy / folder)
    return copy
