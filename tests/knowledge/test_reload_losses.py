"""What following a knowledge base survives: a loader that is lost or breaks, a look that does, no watches left."""

from __future__ import annotations

import errno
import os
import signal
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from watchdog.observers.api import BaseObserver

from unveil.knowledge.load_child import LoadFailedError
from unveil.knowledge.reload import Reloader, ReloadOutcome

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.knowledge.knowledge_base import KnowledgeBase, Loaded
    from unveil.knowledge.load_child import LoadChild
    from unveil.knowledge.pack import Pack


def outcome(reloader: Reloader, *, within_s: float = 30.0) -> ReloadOutcome | None:
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        if (found := reloader.poll(200.0)) is not None:
            return found
        time.sleep(0.02)
    return None


def usable(reloader: Reloader) -> KnowledgeBase:
    while (found := outcome(reloader)) is not None:
        if found.knowledge is not None:
            return found.knowledge
    pytest.fail("no generation came that can be used")


def edit(kb: Path, level: str) -> None:
    path = kb / "fingerprints/gpu/power_limit_low.yml"
    path.write_text(path.read_text().replace("level: low", f"level: {level}"))


def level(base: KnowledgeBase) -> str:
    found = base.fingerprint("power_limit_low")
    assert found is not None
    return found.level


def test_a_host_that_has_no_watch_left_is_asked_again(
    kb: Path, child: LoadChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    with monkeypatch.context() as patch:
        patch.setattr(BaseObserver, "schedule", none_left)
        reloader = Reloader(kb, rescan_s=0.1, child=child)
        reloader.start(100.0)
    try:
        until_s = time.monotonic() + 30
        while not reloader._watches:
            assert time.monotonic() < until_s, "it is not asked again"
            time.sleep(0.02)
        edit(kb, "high")
        assert level(usable(reloader)) == "high"
    finally:
        reloader.close()


def test_a_loader_that_was_lost_is_there_again_before_the_next_edit(kb: Path, child: LoadChild) -> None:
    reloader = Reloader(kb, rescan_s=0.2, child=child)
    try:
        first = reloader.start(100.0).knowledge
        assert child._process is not None
        child._process.kill()
        child._process.wait()
        until_s = time.monotonic() + 60
        while not child.ready:
            assert time.monotonic() < until_s, "it is not there again"
            time.sleep(0.02)
        assert reloader.poll(200.0) is None, "that is no news"
        edit(kb, "high")
        second = usable(reloader)
        assert (second.generation, level(second)) == (2, "high")
        assert first is not None
        assert second.fingerprint("quota_throttling") is first.fingerprint("quota_throttling")
    finally:
        reloader.close()


def test_a_loader_that_breaks_is_told_once_and_tried_again_after_growing_pauses(
    kb: Path, child: LoadChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[float] = []

    def breaks(root: Path, *, generation: int) -> Loaded:
        tried.append(time.monotonic())
        raise LoadFailedError("out of order")

    reloader = Reloader(kb, rescan_s=0.02, child=child)
    try:
        reloader.start(100.0)
        with monkeypatch.context() as patch:
            patch.setattr(child, "load", breaks)
            edit(kb, "high")
            found = outcome(reloader)
            assert found is not None
            assert found.knowledge is None
            assert "out of order" in found.state.problems[0]
            until_s = time.monotonic() + 60
            while max((after - before for before, after in pairwise(tried)), default=0.0) < 0.3:
                assert reloader.poll(200.0) is None, "it is told again"
                assert time.monotonic() < until_s, "pauses do not grow"
                time.sleep(0.02)
        assert level(usable(reloader)) == "high"
    finally:
        reloader.close()


def test_a_look_that_breaks_is_told_and_not_the_last_one(
    kb: Path, child: LoadChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(root: Path) -> Pack:
        raise RuntimeError("not today")

    reloader = Reloader(kb, rescan_s=0.05, child=child)
    try:
        reloader.start(100.0)
        with monkeypatch.context() as patch:
            patch.setattr("unveil.knowledge.reload.read_pack", breaks)
            found = outcome(reloader)
            assert found is not None
            assert "not today" in found.state.problems[0]
        assert usable(reloader).generation == 2
        assert reloader.state is not None
        assert reloader.state.stale_since_s is None
    finally:
        reloader.close()


@pytest.mark.slow
def test_closing_does_not_wait_for_a_loader_that_stands_still(kb: Path) -> None:
    reloader = Reloader(kb)
    reloader.start(100.0)
    process = reloader._child._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    edit(kb, "high")
    time.sleep(0.6)  # it is asked
    reloader.close()
    assert process.poll() is not None
