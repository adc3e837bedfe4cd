"""The watch loop as a process of its own: signals, and a full disk."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.client import Client
from unveil.errors import UnveilError, WatcherAbsentError
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Process:
    def __init__(self, state_dir: Path, kb: Path, log: Path, *arguments: str) -> None:
        self.state_dir = state_dir
        self.client = Client(state_dir / "control.sock")
        self.log = log  # not beside the state: that disk may be full
        with self.log.open("ab") as output:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "unveil", "watch", "--state-dir", str(state_dir), "--kb", str(kb), "--no-gpu",
                 "--profile", "manual", *arguments],
                stdout=output, stderr=output,
            )  # fmt: skip
        self.wait(lambda: self.client.call("ping"))

    def wait(self, condition: Callable[[], Any], seconds: float = 30.0) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(WatcherAbsentError):
                if value := condition():
                    return value
            assert self.child.poll() is None, self.log.read_text()
            time.sleep(0.1)
        pytest.fail(f"not within {seconds} s: {self.log.read_text()}")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.client.close()
        self.child.send_signal(number)
        return self.child.wait(20)


@pytest.fixture
def process(tmp_path: Path, kb: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(state_dir: Path | None = None, *arguments: str) -> Process:
        log = tmp_path / f"log{len(started)}"
        started.append(Process(state_dir or tmp_path / "watched", kb, log, *arguments))
        return started[-1]

    yield start
    for each in started:
        each.client.close()
        if each.child.poll() is None:
            each.child.kill()
            each.child.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_it_in_good_order(process: Callable[..., Process], number: signal.Signals) -> None:
    watcher = process()
    assert watcher.end(number) == 0, watcher.log.read_text()
    queries = Queries(watcher.state_dir / "journal.db")
    assert queries.watches()[0][2] is not None
    queries.close()
    assert not (watcher.state_dir / "control.sock").exists()
    assert "Traceback" not in watcher.log.read_text()


@pytest.mark.slow
def test_a_signal_that_comes_while_it_starts_ends_it_in_good_order_too(tmp_path: Path, kb: Path) -> None:
    program = (
        "import os, signal, sys, threading; from pathlib import Path\n"
        "from unveil.engine.settings import Settings; from unveil.engine import watch\n"
        "opened = watch.KnowledgeInUse\n"
        "def slow(*given, **more):\n    os.kill(os.getpid(), signal.SIGTERM)\n    return opened(*given, **more)\n"
        "watch.KnowledgeInUse = slow\n"
        "watch.run_watch(Settings(state_dir=Path(sys.argv[1]), kb=sys.argv[2], gpu=False))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "s"), str(kb)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    queries = Queries(tmp_path / "s/journal.db")
    assert queries.watches()[0][2] is not None
    queries.close()


@pytest.mark.slow
def test_sighup_has_the_knowledge_base_looked_at(process: Callable[..., Process], kb: Path) -> None:
    watcher = process()
    file = kb / "fingerprints/memory/some_dirt.yml"
    file.write_text(file.read_text().replace("level: low", "level: high"))
    watcher.child.send_signal(signal.SIGHUP)
    watcher.wait(lambda: watcher.client.call("status")["knowledge"]["generation"] == 2)
    assert watcher.end() == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of two megabytes."""
    if os.geteuid() != 0:
        pytest.skip("a file system is mounted: needs root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(place)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode != 0:
        pytest.skip(f"this machine lets nobody mount a tmpfs: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> Path:
    """Leave no room, and return the file that takes it."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return ballast


@pytest.mark.root
@pytest.mark.slow
def test_a_full_disk_is_said_judging_goes_on_no_run_starts_and_journalling_resumes(
    process: Callable[..., Process], small_disk: Path
) -> None:
    watcher = process(small_disk / "state")
    ask = watcher.client.call
    watcher.wait(lambda: ask("windows"))
    episode = watcher.wait(lambda: [each for each in ask("episodes") if each["state"] == "firing"])[0]
    run = ask("plan", episode=episode["id"])
    ask("approve", id=run["id"], hash=run["plan"]["hash"])
    ballast = fill(small_disk)
    problem = watcher.wait(lambda: ask("status")["problems"])[0]
    assert "cannot be written" in problem
    before = ask("status")["window"]["index"]
    watcher.wait(lambda: ask("status")["window"]["index"] >= before + 12)  # longer than ten faults in a row
    with pytest.raises(UnveilError, match=r"cannot be (written|saved)|No space"):
        ask("apply", id=run["id"], hash=run["plan"]["hash"])
    with pytest.raises(UnveilError, match="cannot be written"):
        ask("silence", fingerprint="*", seconds=60, reason="x")
    assert ask("run", id=run["id"])["run"]["steps"][-1]["state"] == "approved"
    missing = next(each for each in ask("status")["problems"] if "windows are missing" in each)
    assert "no run can start" in missing
    ballast.unlink()
    watcher.wait(lambda: not any("windows are missing" in each for each in ask("status")["problems"]))
    newest = ask("status")["window"]["index"]
    watcher.wait(lambda: ask("windows", limit=1)[0]["index"] >= newest + 2)
    indices = [window["index"] for window in ask("windows", limit=1000)]
    assert indices[0] - indices[-1] >= len(indices), "some are missing, and those after are there"
    assert watcher.end() == 0, watcher.log.read_text()
    assert "Traceback" not in watcher.log.read_text()


@pytest.mark.root
@pytest.mark.slow
def test_it_ends_in_order_while_its_disk_is_full(process: Callable[..., Process], small_disk: Path) -> None:
    watcher = process(small_disk / "state")
    watcher.wait(lambda: watcher.client.call("windows"))
    fill(small_disk)
    watcher.wait(lambda: watcher.client.call("status")["problems"])
    assert watcher.end() == 0, watcher.log.read_text()
    assert not (small_disk / "state/control.sock").exists()
