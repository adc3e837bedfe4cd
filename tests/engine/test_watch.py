"""The watch loop in this process and as a process of its own: a few seconds of real life, faults, and a full disk."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.client import Client
from unveil.engine.settings import Settings
from unveil.engine.watch import MOST_FAULTS, Watch
from unveil.errors import BadInputError, RefusedError, UnveilError, WatcherAbsentError
from unveil.records.match import EpisodeState
from unveil.records.remediation import Mode
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def windows_of(state_dir: Path) -> list[int]:
    queries = Queries(state_dir / "journal.db")
    indices = [window.index for window in queries.windows(limit=1000)]
    queries.close()
    return indices[::-1]


@pytest.mark.parametrize("gone", ["", "journal.db", "watch.lock"])
def test_a_watcher_whose_state_is_taken_away_ends_and_hinders_no_other(
    watch: Callable[..., Any], tmp_path: Path, gone: str
) -> None:
    watcher = watch()
    (tmp_path / "watch" / gone).rename(tmp_path / "away")
    other = watch(state_dir=tmp_path / "watch") if gone == "" else None
    timer = threading.Timer(20, watcher.stop)
    timer.start()
    with pytest.raises(RefusedError, match="removed or replaced"):
        watcher.run()
    timer.cancel()
    watcher.close()
    if other is not None:
        assert (tmp_path / "watch/control.sock").exists()


@pytest.mark.slow
def test_a_few_seconds_of_watching_leave_windows_an_episode_and_good_order(
    watch: Callable[..., Any], tmp_path: Path
) -> None:
    watcher = watch(run=6.3, host_root=Path("/"))
    assert watcher.lateness.taken >= 55
    assert watcher.status()["window"]["index"] >= 2
    assert watcher.status()["problems"] == []
    (episode,) = watcher.pipeline.episodes.open
    assert (episode.fingerprint, episode.state) == ("some_dirt", EpisodeState.FIRING)
    watcher.close()
    indices = windows_of(tmp_path / "watch")
    assert indices == list(range(len(indices)))
    assert len(indices) >= 3
    queries = Queries(tmp_path / "watch/journal.db")
    ((number, started_s, ended_s),) = queries.watches()
    assert number == 1
    assert ended_s is not None
    assert ended_s > started_s
    queries.close()
    assert not (tmp_path / "watch/control.sock").exists()

    again = watch(host_root=Path("/"))
    assert [each.id for each in again.pipeline.episodes.open] == [episode.id], "it goes on in the next watcher"


@pytest.mark.slow
def test_it_is_asked_while_it_runs(watch: Callable[..., Any], tmp_path: Path) -> None:
    told: list[Any] = []

    def ask() -> None:
        client = Client(tmp_path / "watch/control.sock")
        for _ in range(60):
            with contextlib.suppress(WatcherAbsentError):
                told.append(client.call("status"))
                client.call("ping")
                break
            time.sleep(0.1)
        client.close()

    asking = threading.Thread(target=ask)
    asking.start()
    watch(run=2.5, host_root=Path("/"))
    asking.join()
    assert told[0]["pid"] == os.getpid()


def test_two_watchers_do_not_share_a_directory_and_the_refused_one_leaves_nothing_open(
    watch: Callable[..., Any], tmp_path: Path
) -> None:
    first = watch()
    with pytest.raises(RefusedError, match="another watcher"):
        watch()
    assert (tmp_path / "watch/control.sock").exists(), "the first one's socket is not taken away"
    first.close()
    watch()


SLOW = pytest.mark.slow


@pytest.mark.parametrize("wrong", ["socket", pytest.param("kb", marks=SLOW), pytest.param("rule", marks=SLOW)])
def test_a_start_that_fails_leaves_nothing_open_and_the_directory_free(
    watch: Callable[..., Any], tmp_path: Path, wrong: str
) -> None:
    descriptors, threads = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    changes = {
        "socket": {"state_dir": tmp_path / ("x" * 120)},
        "kb": {"kb": str(tmp_path / "absent")},
        "rule": {"rule": "nonsense|and more"},
    }[wrong]
    with pytest.raises(BadInputError):
        watch(**changes)
    assert threading.active_count() == threads
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
    if wrong != "socket":
        watch()


def step_fails(watcher: Any, times: int) -> None:
    """Let judging fail so often, in the middle of the real thing."""
    push, failed = watcher.pipeline.push, []

    def fail(*arguments: Any, **more: Any) -> Any:
        if len(failed) < times:
            failed.append(1)
            raise ZeroDivisionError("a fault")
        return push(*arguments, **more)

    watcher.pipeline.push = fail


def test_a_fault_in_a_step_is_counted_and_seen_and_does_not_end_the_watch(watch: Callable[..., Any]) -> None:
    watcher = watch()
    step_fails(watcher, 3)
    looked_after: list[int] = []
    second = watcher.runs.second
    watcher.runs.second = lambda *given: looked_after.append(1) or second(*given)
    for number in range(5):
        watcher._guarded(watcher._second, number)
        watcher._guarded(watcher._housekeeping.second, number)
    assert watcher.status()["problems"] == ["a fault in unveil itself: ZeroDivisionError: a fault (3 times)"]
    assert len(looked_after) == 5, "runs are looked after all the same"


def test_the_same_fault_ten_times_in_a_row_ends_the_watch_whatever_goes_well_in_between(
    watch: Callable[..., Any],
) -> None:
    watcher = watch()
    step_fails(watcher, 1000)
    for _ in range(MOST_FAULTS - 1):
        watcher._guarded(watcher._second, 0)
        watcher._guarded(watcher._housekeeping.second, 0)
    with pytest.raises(ZeroDivisionError):
        watcher._guarded(watcher._second, 0)


@pytest.mark.slow
def test_a_tick_that_fails_does_not_end_the_watch(watch: Callable[..., Any]) -> None:
    watcher = watch()
    tick, failed = watcher.observation.tick, []

    def flaky(now_ns: int) -> None:
        if len(failed) < 4:
            failed.append(now_ns)
            raise OSError(5, "Input/output error")
        tick(now_ns)

    watcher.observation.tick = flaky
    timer = threading.Timer(1.5, watcher.stop)
    timer.start()
    watcher.run()
    timer.join()
    assert watcher.lateness.taken >= 10
    assert "(4 times)" in watcher.status()["problems"][0]


def test_automation_goes_exactly_as_far_as_profile_and_remediation_say(
    watch: Callable[..., Any], seconds: list[Any]
) -> None:
    for profile, expected in (("manual", []), ("auto", ["planned"])):
        watcher = watch(profile=profile)
        begin = time.time() - 10
        for number, blocks in enumerate(seconds[:8]):
            for outcome in watcher.pipeline.push(blocks, wall_s=begin + number, facts=watcher.facts):
                for episode in outcome.changed:
                    watcher._announce(episode)
        assert [str(run.state) for run in watcher.queries.runs()] == expected
        (remediation,) = watcher.knowledge.current.remediations
        assert watcher.mode(remediation) is (Mode.APPROVE if profile == "auto" else Mode.MANUAL)
        watcher.close()
        shutil.rmtree(watcher.config.state_dir)


def test_a_plan_whose_remediation_was_edited_is_not_what_it_was(watch: Callable[..., Any], seconds: list[Any]) -> None:
    watcher = watch()
    for number, blocks in enumerate(seconds[:8]):
        watcher.pipeline.push(blocks, wall_s=time.time() - 10 + number, facts=watcher.facts)
    (episode,) = watcher.pipeline.episodes.open
    watcher.journal.put_episodes((episode,))
    run = watcher._commands.handle("plan", {"episode": episode.id}, "uid:0")
    stored = watcher.queries.run(run["id"])
    assert watcher._situation(stored.plan).still_matching is True
    with pytest.raises(RefusedError, match="is not what it was when the plan was made"):
        watcher._situation(replace(stored.plan, remediation_revision="other"))


# As a process


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


def test_the_host_is_named_and_settings_are_kept(watch: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watcher = watch(rule="2of3")
    assert watcher.host == socket.gethostname()
    assert isinstance(watcher, Watch)
    assert isinstance(watcher.config, Settings)
    assert watcher.status()["rule"] == "2of3"


@pytest.mark.slow
def test_a_disk_that_takes_its_time_delays_no_tick_and_loses_no_window(
    watch: Callable[..., Any], tmp_path: Path
) -> None:
    watcher = watch()
    append = watcher.journal.append_second

    def slowly(window: Any, episodes: Any) -> None:
        time.sleep(1.5)
        append(window, episodes)

    watcher.journal.append_second = slowly
    timer = threading.Timer(9.0, watcher.stop)
    timer.start()
    watcher.run()
    timer.join()
    assert watcher.lateness.taken + watcher.lateness.missed >= 80
    assert watcher.lateness.missed < 10, "a starved machine costs a few; the disk, if it did, fourteen each time"
    indices = windows_of(tmp_path / "watch")
    assert indices == list(range(len(indices)))
    assert len(indices) >= 3
