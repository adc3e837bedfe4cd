"""The watch loop in this process: a few seconds of real life, and faults. As a process: test_watch_process.py."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.client import Client
from unveil.engine.settings import Settings
from unveil.engine.watch import MOST_FAULTS, Watch
from unveil.errors import BadInputError, RefusedError, WatcherAbsentError
from unveil.records.match import EpisodeState
from unveil.records.remediation import Mode
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable


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
    timer = threading.Timer(90, watcher.stop)
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
    assert watcher.lateness.taken + watcher.lateness.missed >= 55
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
        for _ in range(300):
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
    timer = threading.Timer(3.0, watcher.stop)
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
    append = watcher.journal.append_seconds

    def slowly(seconds: Any) -> None:
        time.sleep(1.5)
        append(seconds)

    watcher.journal.append_seconds = slowly
    timer = threading.Timer(9.0, watcher.stop)
    timer.start()
    watcher.run()
    timer.join()
    assert watcher.lateness.taken + watcher.lateness.missed >= 80
    assert watcher.lateness.missed < 10, "a starved machine costs a few; the disk, if it did, fourteen each time"
    indices = windows_of(tmp_path / "watch")
    assert indices == list(range(len(indices)))
    assert len(indices) >= 3
