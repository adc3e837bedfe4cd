"""`unveil tui --replay`: a recording whose time passes beside the screen."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from typing import Any

import pytest

from unveil.cli.demo import recording
from unveil.cli.main import main
from unveil.cli.tui import PacedReplay
from unveil.errors import RefusedError, UnveilError, WatcherAbsentError
from unveil_tui.rights import RECORDING


def test_its_time_passes_at_the_pace_that_was_asked_for_and_it_answers_meanwhile() -> None:
    began = time.monotonic()
    replay = PacedReplay(recording(), speed=10)
    try:
        while (window := replay.call("status")["window"]) is None or window["index"] < 10:
            assert time.monotonic() - began < 60
            time.sleep(0.02)
        assert time.monotonic() - began > 0.7  # ten windows, one a recorded second
        assert replay.call("status")["replay"] == {"speed": 10, "ended": False}
        assert len(replay.call("windows", limit=5)) == 5
        with pytest.raises(RefusedError, match="keeps the knowledge base"):
            replay.call("reload")
    finally:
        replay.close()
    with pytest.raises(WatcherAbsentError):
        replay.call("status")


def test_what_is_no_recording_is_said_before_the_screen_is_taken(tmp_path: Any) -> None:
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(UnveilError):
        PacedReplay(str(tmp_path / "x.parquet"))


def test_without_a_terminal_it_names_the_text_mode(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tui", "--replay", recording()]) == 3
    assert "unveil status --watch" in capsys.readouterr().err


def test_without_a_watcher_it_says_so_and_ends(tmp_path: Any) -> None:
    parent, child = pty.openpty()
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "unveil", "tui", "--state-dir", str(tmp_path)],
            stdin=child, stdout=child, stderr=child, timeout=90, check=False,
        )  # fmt: skip
        assert ended.returncode == 1
        assert b"no watcher listens" in os.read(parent, 4096)
    finally:
        os.close(parent)
        os.close(child)


async def test_a_recording_is_watched_like_a_host(stage: Any) -> None:
    replay = PacedReplay(recording(), speed=20)
    try:
        async with stage.cockpit(replay, rights=RECORDING) as (app, pilot):
            await stage.until(pilot, lambda: len(app.seen.windows) > 10)
            text = stage.screen_text(app)
            assert "RECORDING" in text
            assert "x20" in text
    finally:
        replay.close()
