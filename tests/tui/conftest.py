"""The cockpit on a scripted watcher, and ways to look at its screen."""

from __future__ import annotations

import contextlib
import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

os.environ["TEXTUAL_ANIMATIONS"] = "none"  # read when textual is imported
os.environ.pop("NO_COLOR", None)

import pytest
from made_up_records import HOST_NAME, HOSTILE, START_S, episode, planned_run, window
from scripted_watcher import ScriptedWatcher

from unveil_tui.app import Cockpit
from unveil_tui.rights import ACTING, Rights

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from textual.pilot import Pilot


@contextlib.asynccontextmanager
async def cockpit(
    watcher: Any, *, rights: Rights = ACTING, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[Cockpit, Pilot[None]]]:
    """Open the cockpit and wait for what it hears first."""
    app = Cockpit(watcher, rights=rights)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: "asking the watcher" not in screen_text(app) or app.seen.gone_since_s is not None)
        await settle(pilot)
        yield app, pilot


def said(app: Cockpit) -> str:
    """Return the messages that were shown."""
    return "\n".join(note.message for note in app._notifications)


def screen_text(app: Cockpit) -> str:
    """Return what stands on the terminal."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def settle(pilot: Pilot[None], seconds: float = 0.1) -> None:
    """Let messages and timers run."""
    await pilot.pause(seconds)
    await pilot.pause()


async def until(pilot: Pilot[None], condition: Callable[[], Any], *, seconds: float = 60.0) -> None:
    """Wait until a condition holds; fail, with the screen, when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"not within {seconds} s; on the screen:\n{screen_text(pilot.app)}")  # type: ignore[arg-type]
        await pilot.pause(0.05)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the cockpit look more often than it may in earnest, so that tests need not wait."""
    for name, seconds in (("pump.ROUND_S", 0.1), ("pump.CALM_S", 0.5), ("pump.RETRY_S", 0.2)):
        monkeypatch.setattr(f"unveil_tui.{name}", seconds)
    monkeypatch.setattr("unveil_tui.screens.run.EVERY_S", 0.2)
    monkeypatch.setattr("unveil_tui.screens.confirm.ARM_S", 0.05)


@pytest.fixture
def watcher() -> ScriptedWatcher:
    return ScriptedWatcher()


@pytest.fixture
def stage() -> SimpleNamespace:
    """Everything that a test of the cockpit needs: records to put in, and ways to look at the screen."""
    return SimpleNamespace(
        HOSTILE=HOSTILE, HOST_NAME=HOST_NAME, START_S=START_S, cockpit=cockpit, episode=episode,
        planned_run=planned_run, said=said, screen_text=screen_text, settle=settle, until=until, window=window,
    )  # fmt: skip
