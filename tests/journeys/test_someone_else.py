"""Someone else at the same setting, and five people at the same plan, through the control socket of a real watcher."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.client import Client
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.ansible, pytest.mark.timeout(200)]
KEY = "/pod1"
QUOTA = "50000 100000\n"


class Throttled:
    """A scratch host with one cgroup that is throttled for as long as it has a quota."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "sys/fs/cgroup/pod1"
        self.folder.mkdir(parents=True)
        self.quota = self.folder / "cpu.max"
        self.quota.write_text(QUOTA)
        for name in ("proc/1", "proc/self"):
            (root / name).mkdir(parents=True)
            (root / name / "mountinfo").write_text("30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        (root / "sys/fs/cgroup/cgroup.controllers").write_text("cpu memory\n")
        self._number = self._held = 0
        self._stop = threading.Event()
        self._tick()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _tick(self) -> None:
        self._number += 1
        self._held += "max " not in self.quota.read_text() and self.quota.read_text() != "max\n"
        number, held = self._number, self._held
        times = f"{number * 5} 0 {number} {number * 14} 0 0 0 0 0 0\n"
        (self.root / "proc/stat").write_text(
            f"cpu  {times}cpu0 {times}intr 0\nctxt {number * 100}\nbtime 1\nprocesses {number}\nprocs_running 1\n"
        )
        (self.folder / "cpu.stat").write_text(
            f"usage_usec {number * 50000}\nuser_usec {number * 40000}\nsystem_usec {number * 10000}\n"
            f"nr_periods {number * 2}\nnr_throttled {held}\nthrottled_usec {held * 40000}\n"
        )

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            self._tick()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def throttled(tmp_path: Path) -> Iterator[Throttled]:
    made = Throttled(tmp_path / "host")
    yield made
    made.close()


@pytest.fixture
def watcher(host: Callable[..., Any], throttled: Throttled) -> Any:
    return host("--no-gpu", "--host-root", str(throttled.root), "--profile", "manual")


def planned(watcher: Any) -> dict[str, Any]:
    episode = watcher.episode("cgroup_cpu_quota_throttling", f"cgroup:{KEY}", seconds=90)
    run: dict[str, Any] = watcher.client.call("plan", episode=episode["id"])
    return run


def verifying(watcher: Any) -> dict[str, Any]:
    """Plan, approve and apply a fix, and return its run once it is verified."""
    run = planned(watcher)
    for order in ("approve", "apply"):
        watcher.client.call(order, id=run["id"], hash=run["plan"]["hash"])
    watcher.wait(
        "it is verified",
        lambda: watcher.run(run["id"])["steps"][-1]["state"] not in ("approved", "applying"),
        seconds=60,
    )
    return run


def test_five_people_at_once_get_one_run_and_one_apply(watcher: Any, throttled: Throttled) -> None:
    first = planned(watcher)
    episode = first["plan"]["episode"]

    def order(_number: int) -> tuple[str, list[str]]:
        client, refused = Client(watcher.folder / "control.sock"), []
        run = client.call("plan", episode=episode)
        for word in ("approve", "apply"):
            try:
                client.call(word, id=run["id"], hash=run["plan"]["hash"])
            except UnveilError as error:
                refused.append(f"{word}: {error.what}")
        client.close()
        return run["id"], refused

    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(order, range(5)))
    assert {identity for identity, _ in answers} == {first["id"]}
    applied = [refused for _, refused in answers if not any(word.startswith("apply") for word in refused)]
    assert len(applied) == 1, answers
    assert watcher.ended(first["id"], seconds=90) == "kept", watcher.log()
    assert [step["state"] for step in watcher.run(first["id"])["steps"]].count("applying") == 1
    assert throttled.quota.read_text().startswith("max")
    assert watcher.unveil("runs", "rollback", first["id"], "--yes").returncode == 0
    assert throttled.quota.read_text() == QUOTA
    story = watcher.unveil("runs", "show", first["id"]).stdout
    for words in (
        "Planned",
        "Applying: the values were saved",
        "Kept: it helped",
        "Rolled back",
        "it stands on window",
    ):
        assert words in story
    assert "runner_on" not in story, "in words, not by Ansible's names"


def test_someone_who_changes_it_back_while_it_is_verified_is_named_and_not_fought(
    watcher: Any, throttled: Throttled
) -> None:
    run = verifying(watcher)
    throttled.quota.write_text("60000 100000\n")
    assert watcher.ended(run["id"], seconds=90) == "reverted_by_other", watcher.log()
    last = watcher.run(run["id"])["steps"][-1]
    assert "cpu.max reads '60000 100000'" in last["detail"]
    time.sleep(2)
    assert throttled.quota.read_text() == "60000 100000\n", "no fight"


def test_what_someone_changed_before_a_rollback_is_left_alone_and_said_so(watcher: Any, throttled: Throttled) -> None:
    run = verifying(watcher)
    assert watcher.ended(run["id"], seconds=90) == "kept", watcher.log()
    throttled.quota.write_text("70000 100000\n")
    told = watcher.unveil("runs", "rollback", run["id"], "--yes")
    assert told.returncode == 1
    assert "which we did not write" in told.stdout
    assert watcher.run(run["id"])["steps"][-1]["state"] == "reverted_by_other"
    assert throttled.quota.read_text() == "70000 100000\n"
