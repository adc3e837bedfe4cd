"""The child loads, the watcher stays light: same records, only what changed crosses the pipe, any death is survived."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from unveil.knowledge.load_child import LoadChild, LoadFailedError
from unveil.knowledge.loading import load


def test_a_generation_crosses_the_pipe_unchanged(kb: Path, child: LoadChild) -> None:
    assert child.load(kb, generation=3) == load(kb, generation=3)


def test_problems_cross_the_pipe_with_their_places(kb: Path, child: LoadChild) -> None:
    path = kb / "fingerprints/gpu/power_limit_low.yml"
    path.write_text(path.read_text().replace("level: low", "level: lo"))
    loaded = child.load(kb, generation=1)
    assert loaded.knowledge is None
    assert loaded == load(kb)


def test_what_did_not_change_is_the_same_object_and_does_not_cross_again(kb: Path, child: LoadChild) -> None:
    first = child.load(kb, generation=1).knowledge
    path = kb / "fingerprints/gpu/power_limit_low.yml"
    path.write_text(path.read_text().replace("gte: 0.6", "gte: 0.7"))
    second = child.load(kb, generation=2).knowledge
    assert first is not None
    assert second is not None
    assert second.fingerprint("quota_throttling") is first.fingerprint("quota_throttling")
    assert second.remediations[0] is first.remediations[0]
    assert second.fingerprint("power_limit_low") != first.fingerprint("power_limit_low")


def test_a_folder_that_was_broken_for_a_while_comes_back_with_the_same_objects(kb: Path, child: LoadChild) -> None:
    first = child.load(kb, generation=1).knowledge
    path = kb / "fingerprints/gpu/power_limit_low.yml"
    good = path.read_text()
    for broken in ("level: lo", "level: l"):
        path.write_text(good.replace("level: low", broken))
        assert child.load(kb, generation=2).knowledge is None
    path.write_text(good)
    again = child.load(kb, generation=2).knowledge
    assert first is not None
    assert again is not None
    assert all(one is other for one, other in zip(first.fingerprints, again.fingerprints, strict=True))


def test_a_child_that_died_is_replaced(kb: Path, child: LoadChild) -> None:
    first = child.load(kb, generation=1)
    assert child._process is not None
    child._process.kill()
    child._process.wait()
    assert child.load(kb, generation=1) == first


def test_a_child_that_takes_too_long_is_ended_and_told_of(kb: Path) -> None:
    child = LoadChild(deadline_s=0.0)
    with pytest.raises(LoadFailedError, match="took longer"):
        child.load(kb, generation=1)
    assert child._process is None


def rested(child: LoadChild) -> int:
    """Wait until the child rests, and return what it holds then."""
    until_s = time.monotonic() + 60
    while (held := child.resting_bytes()) is None:
        assert time.monotonic() < until_s, "it does not rest"
        time.sleep(0.02)
    return held


def woken(child: LoadChild) -> list[str]:
    """Return how often the child was given a CPU."""
    assert child._process is not None
    lines = Path(f"/proc/{child._process.pid}/status").read_text().splitlines()
    return [line for line in lines if "ctxt_switches" in line]


def test_a_child_rests_when_nobody_asks_and_knows_afterwards_what_it_knew(kb: Path) -> None:
    child = LoadChild(deadline_s=60, rest_s=0.05)
    try:
        first = child.load(kb, generation=1).knowledge
        for generation in (2, 3):
            assert 0 < rested(child) < 100_000_000
            assert child.ready
            process = child._process
            again = child.load(kb, generation=generation)
            assert child._process is process
            assert again == load(kb, generation=generation)
            assert first is not None
            assert again.knowledge is not None
            for kind in ("fingerprints", "remediations"):
                before, after = getattr(first, kind), getattr(again.knowledge, kind)
                assert all(one is other for one, other in zip(before, after, strict=True))
        rested(child)
        until_s = time.monotonic() + 30
        before = woken(child)  # it may still be on its way into the system call in which it waits
        while time.sleep(0.2) or (now := woken(child)) != before:
            assert time.monotonic() < until_s, "it wakes up though nobody asks"
            before = now
    finally:
        child.close()


def test_a_child_that_is_lost_when_it_is_asked_is_replaced_at_once(kb: Path, child: LoadChild) -> None:
    first = child.load(kb, generation=1)
    lost = child._process
    assert lost is not None
    os.kill(lost.pid, signal.SIGSTOP)  # it is there when it is asked, and does not answer any more
    threading.Timer(0.2, lost.kill).start()
    assert child.load(kb, generation=1) == first
    assert child._process is not lost


def stopped(**more: float) -> LoadChild:
    """Return a child that is there and does nothing."""
    child = LoadChild(**more)
    child.warm()
    assert child._process is not None
    os.kill(child._process.pid, signal.SIGSTOP)
    return child


def test_a_request_that_is_longer_than_a_pipe_does_not_wait_beyond_the_deadline(kb: Path) -> None:
    child = stopped(deadline_s=0.2)
    child._records = {str(number): None for number in range(20_000)}
    with pytest.raises(LoadFailedError, match="took longer"):
        child.load(kb, generation=1)


def test_a_stop_from_another_thread_ends_a_load_and_no_other_one_starts(kb: Path) -> None:
    child = stopped()
    threading.Timer(0.2, child.stop).start()
    for _ in range(2):
        with pytest.raises(LoadFailedError):
            child.load(kb, generation=2)
        assert child._process is None


def test_the_watcher_s_end_brings_neither_yaml_nor_json_schema() -> None:
    heavy = ["yaml", "jsonschema", "jinja2", "numpy"]
    program = f"import sys, unveil.knowledge.reload; print([name for name in {heavy} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[]"


def test_it_is_heard_above_the_descriptors_that_select_knows(kb: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("no more than 1024 descriptors may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    child = LoadChild(deadline_s=30)
    try:
        assert child.load(kb, generation=1).knowledge is not None
    finally:
        child.close()
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
