"""What a few screens look like, to the character: `UNVEIL_SNAPSHOTS=1 pytest …` draws them anew after a change."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from unveil_tui.screens.confirm import ConfirmScreen
from unveil_tui.screens.run import RunScreen
from unveil_tui.screens.window import WindowScreen

SNAPSHOTS = Path(__file__).with_name("snapshots")

pytestmark = pytest.mark.slow


def compare(name: str, text: str) -> None:
    drawn = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UNVEIL_SNAPSHOTS"):
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_text(drawn)
    assert drawn == path.read_text()


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "TZ", "UTC")
    time.tzset()


async def test_the_live_screen_over_ssh(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await stage.until(pilot, lambda: "r plans restore_huge_pages; last time" in stage.screen_text(app))
        await stage.settle(pilot, 0.3)
        compare("live-80x24", stage.screen_text(app))


async def test_a_window_on_a_large_terminal(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, size=(180, 50)) as (app, pilot):
        await pilot.press("enter")
        await stage.until(pilot, lambda: isinstance(app.screen, WindowScreen) and "2 of 3" in stage.screen_text(app))
        await stage.until(pilot, lambda: "expected 3 ± 3" in stage.screen_text(app))
        await stage.settle(pilot, 0.3)
        compare("window-180x50", stage.screen_text(app))


async def test_the_question_before_a_host_is_changed(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("tab", "r")
        await stage.until(pilot, lambda: isinstance(app.screen, RunScreen) and "f00dcafef00d" in stage.screen_text(app))
        watcher.do_approve("r0123456789ab", "x")
        await stage.until(pilot, lambda: "a applies it" in stage.screen_text(app))
        await pilot.press("a")
        await stage.until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and app.screen._armed)
        await stage.settle(pilot, 0.3)
        compare("confirm-80x24", stage.screen_text(app))
