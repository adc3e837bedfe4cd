"""Acting: what changes a host happens by `y` alone, on exactly what was shown, or not at all."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.client import Client
from unveil.engine.control import ControlServer
from unveil.records.entity import Entity, EntityKind
from unveil.records.match import EpisodeState
from unveil.records.run import RunState
from unveil_tui.rights import READ_ONLY, RECORDING
from unveil_tui.screens.confirm import ConfirmScreen
from unveil_tui.screens.episode import EpisodeScreen
from unveil_tui.screens.run import RunScreen
from unveil_tui.screens.silence import SilenceScreen

if TYPE_CHECKING:
    from pathlib import Path

HASH = "f00dcafe" * 8
RUN = "r0123456789ab"


async def open_plan(stage: Any, app: Any, pilot: Any) -> None:
    """Go from the live screen to the plan of the first episode, by keys."""
    await pilot.press("tab", "r")
    await stage.until(pilot, lambda: isinstance(app.screen, RunScreen) and "f00dcafef00d" in stage.screen_text(app))


async def question(stage: Any, app: Any, pilot: Any, key: str) -> None:
    """Press a key that asks, and wait until the dialog takes an answer."""
    await pilot.press(key)
    await stage.until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and app.screen._armed)


def orders(watcher: Any) -> list[str]:
    return [method for method, _ in watcher.orders if method != "plan"]


async def test_the_episode_shows_every_clause_with_what_was_asked_and_there(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("tab", "enter")
        await stage.until(pilot, lambda: "thp_off" in stage.screen_text(app))
        text = stage.screen_text(app)
        assert "yes small_pages   memory.cgroup_huge_share.last < 0.1" in text
        assert "fact memory.thp_enabled in never, madvise  madvise" in text
        assert "?   faulting" in text
        assert "no reference" in text
        assert "cgroup:/kubepods/pod1: firing" in text
        assert "memory.page_faults.rate              │█████   70%     9,000       120   +14.2" in text
        assert "nothing was planned or done" in text


async def test_the_plan_shows_each_setting_and_marks_a_tenants_words(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, size=(100, 30)) as (app, pilot):
        await open_plan(stage, app, pilot)
        text = stage.screen_text(app)
        assert "transparent_hugepage/enabled: always [madvise] never → always" in text
        assert "tenant = evil[red]\\x1b[31m  ← a tenant's word: shown only" in text
        assert "improve: memory.cgroup_huge_share.last (now 0.02) up by at least 10 %" in text
        assert orders(watcher) == []


async def test_the_whole_way_by_keys_alone(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, size=(100, 40)) as (app, pilot):
        await open_plan(stage, app, pilot)
        await pilot.press("d")
        await stage.until(pilot, lambda: "dry run under way" in stage.screen_text(app))
        watcher.event(RUN, event="playbook_on_task_start", task="set [b]it[/b]", message="")
        watcher.event(RUN, event="check_finished", ok=True, status="successful", message="1 tasks would change")
        await stage.until(pilot, lambda: "successful 1 tasks would change" in stage.screen_text(app))
        assert "set [b]it[/b]" in stage.screen_text(app)
        assert "under way" not in stage.screen_text(app)

        await question(stage, app, pilot, "a")
        text = stage.screen_text(app)
        assert "Approve this plan?" in text
        await pilot.press("y")
        await stage.until(pilot, lambda: "a applies it" in stage.screen_text(app))
        await question(stage, app, pilot, "a")
        text = stage.screen_text(app)
        for named in ("gpu-node-17", "restore_huge_pages", "cgroup:/kubepods/pod1", "enabled: always [madvise] never"):
            assert named in text
        await pilot.press("y")
        await stage.until(pilot, lambda: "applying" in stage.screen_text(app))
        assert watcher.orders[-2:] == [("approve", {"id": RUN, "hash": HASH}), ("apply", {"id": RUN, "hash": HASH})]

        watcher.step(RUN, RunState.VERIFYING, "applied")
        watcher.event(
            RUN, event="measured", holds=True, message="memory.cgroup_huge_share.last: 0.02 before, 0.9 after"
        )
        watcher.step(RUN, RunState.KEPT, "verified")
        await stage.until(pilot, lambda: "restore_huge_pages: kept" in stage.screen_text(app))
        assert "0.02 before, 0.9 after" in stage.screen_text(app)

        await question(stage, app, pilot, "u")
        assert "transparent_hugepage/enabled: always → madvise" in stage.screen_text(app)
        await pilot.press("y")
        await stage.until(pilot, lambda: "rolled_back" in stage.screen_text(app))
        assert watcher.orders[-1] == ("rollback", {"id": RUN})


async def test_nothing_but_y_confirms(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await open_plan(stage, app, pilot)
        for keys in (("enter",), ("a", "a"), ("enter", "enter", "space"), ("Y",), ("n",), ("ctrl+y", "escape")):
            if not isinstance(app.screen, ConfirmScreen):
                await question(stage, app, pilot, "a")
            await pilot.press(*keys)
            assert orders(watcher) == []
        await stage.settle(pilot)
        assert orders(watcher) == []


@pytest.mark.slow
async def test_the_dialog_says_why_a_key_does_not_confirm(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await open_plan(stage, app, pilot)
        await question(stage, app, pilot, "a")
        await pilot.press("enter")
        await stage.until(pilot, lambda: "Enter does not confirm" in stage.screen_text(app))
        await pilot.press("a")
        await stage.until(pilot, lambda: "a again does not confirm" in stage.screen_text(app))


async def test_keys_typed_ahead_of_the_dialog_confirm_nothing(
    watcher: Any, stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unveil_tui.screens.confirm.ARM_S", 30)
    async with stage.cockpit(watcher) as (app, pilot):
        await open_plan(stage, app, pilot)
        await pilot.press("a", "y", "y")
        await stage.settle(pilot)
        assert isinstance(app.screen, ConfirmScreen)
        await stage.until(pilot, lambda: "too fast" in stage.screen_text(app))
        assert orders(watcher) == []


async def test_a_high_impact_needs_the_hosts_name_and_then_y(watcher: Any, stage: Any) -> None:
    watcher.impact = "high"
    async with stage.cockpit(watcher) as (app, pilot):
        await open_plan(stage, app, pilot)
        await question(stage, app, pilot, "a")
        await pilot.press("y", "enter")
        await stage.settle(pilot)
        await stage.until(pilot, lambda: "type the host's name first" in stage.screen_text(app))
        assert orders(watcher) == []
        assert app.screen.query_one("#word").value == "y"
        await pilot.press("backspace", *"gpu-node-1", "enter")
        await stage.settle(pilot)
        assert orders(watcher) == []
        await pilot.press("7")
        await stage.until(pilot, lambda: app.screen._typed and app.screen._armed)
        await pilot.press("enter")
        await stage.settle(pilot)
        assert orders(watcher) == []
        await pilot.press("y")
        await stage.until(pilot, lambda: orders(watcher) == ["approve"])


@pytest.mark.slow
async def test_a_long_list_of_settings_has_to_be_seen_to_its_end(watcher: Any, stage: Any) -> None:
    watcher.settings = 60
    async with stage.cockpit(watcher) as (app, pilot):
        await open_plan(stage, app, pilot)
        await question(stage, app, pilot, "a")
        await pilot.press("y")
        await stage.until(pilot, lambda: "there is more" in stage.screen_text(app))
        assert orders(watcher) == []
        for _ in range(12):
            await pilot.press("pagedown")
        await stage.until(pilot, lambda: "irq:98/smp_affinity_list: 0 → 58" in stage.screen_text(app))
        await pilot.press("y")
        await stage.until(pilot, lambda: orders(watcher) == ["approve"])


async def test_nothing_is_confirmed_in_a_terminal_that_cannot_show_it(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await open_plan(stage, app, pilot)
        await question(stage, app, pilot, "a")
        await pilot.resize_terminal(20, 5)
        await stage.settle(pilot)
        await pilot.press("y")
        await stage.settle(pilot)
        await stage.until(pilot, lambda: "terminal 20x5" in stage.screen_text(app))
        assert orders(watcher) == []
        await pilot.resize_terminal(80, 24)
        await stage.settle(pilot)
        assert isinstance(app.screen, ConfirmScreen)
        await pilot.press("y")
        await stage.until(pilot, lambda: orders(watcher) == ["approve"])


async def test_read_only_refuses_every_act_and_says_why(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, rights=READ_ONLY, size=(100, 30)) as (app, pilot):
        assert "READ-ONLY" in stage.screen_text(app)
        await pilot.press("tab", "r", "s")
        await stage.until(pilot, lambda: "--read-only" in stage.said(app))
        watcher.runs.append(stage.planned_run(watcher.episodes[0]))
        await pilot.press("2")
        await stage.until(pilot, lambda: "1 run" in stage.screen_text(app))
        await pilot.press("enter")
        await stage.until(pilot, lambda: "f00dcafef00d" in stage.screen_text(app))
        assert "a approve" not in stage.screen_text(app).splitlines()[-1]
        await pilot.press("d", "a", "y", "u", "y", "x", "y")
        await stage.settle(pilot)
        assert watcher.orders == []
        assert isinstance(app.screen, RunScreen)


@pytest.mark.slow
async def test_a_recording_can_be_planned_for_and_not_acted_on(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, rights=RECORDING, size=(100, 30)) as (app, pilot):
        await open_plan(stage, app, pilot)
        await pilot.press("a", "y", "d", "x", "y")
        await stage.settle(pilot)
        await stage.until(pilot, lambda: "there is no host to change" in stage.said(app))
        assert orders(watcher) == []


@pytest.mark.slow
async def test_keys_that_cannot_be_say_why_and_do_nothing(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, size=(100, 30)) as (app, pilot):
        await open_plan(stage, app, pilot)
        await pilot.press("u", "y")
        await stage.until(pilot, lambda: "u: the run is planned" in stage.said(app))
        assert orders(watcher) == []
        watcher.step(RUN, RunState.EXPIRED, "approval expired")
        await stage.until(pilot, lambda: "restore_huge_pages: expired" in stage.screen_text(app))
        await pilot.press("a", "y")
        await stage.settle(pilot)
        assert orders(watcher) == []


@pytest.mark.slow
async def test_an_approval_that_expires_under_the_dialog_is_refused_by_the_watcher(watcher: Any, stage: Any) -> None:
    from unveil.errors import RefusedError

    def refuse(id: str, hash: str) -> Any:  # noqa: A002
        raise RefusedError(f"{id} waited too long [for] its approval", hint="plan again")

    watcher.do_approve = refuse
    async with stage.cockpit(watcher, size=(100, 30)) as (app, pilot):
        await open_plan(stage, app, pilot)
        await question(stage, app, pilot, "a")
        await pilot.press("y")
        await stage.until(pilot, lambda: "waited too long [for] its approval" in stage.said(app))
        assert "plan again" in stage.said(app)


@pytest.mark.slow
async def test_x_asks_and_then_cancels_the_run_that_is_shown(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher) as (app, pilot):
        await open_plan(stage, app, pilot)
        await question(stage, app, pilot, "x")
        await pilot.press("x")
        assert orders(watcher) == []
        await pilot.press("y")
        await stage.until(pilot, lambda: "canceled" in stage.screen_text(app))
        assert watcher.orders[-1] == ("cancel", {"id": RUN})


async def test_the_watcher_may_go_while_a_run_is_shown_and_come_back(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, size=(100, 30)) as (app, pilot):
        await open_plan(stage, app, pilot)
        watcher.absent = True
        await stage.until(pilot, lambda: "watcher gone since" in stage.screen_text(app))
        await pilot.press("a", "y")
        await stage.until(pilot, lambda: "the watcher is gone" in stage.said(app))
        watcher.absent = False
        watcher.step(RUN, RunState.APPROVED)
        await stage.until(pilot, lambda: "restore_huge_pages: approved" in stage.screen_text(app))
        assert orders(watcher) == []


async def test_a_yes_to_a_watcher_that_went_meanwhile_is_told_and_not_kept_for_later(watcher: Any, stage: Any) -> None:
    async with stage.cockpit(watcher, size=(100, 30)) as (app, pilot):
        await open_plan(stage, app, pilot)
        await question(stage, app, pilot, "a")
        watcher.absent = True
        await pilot.press("y")
        await stage.until(pilot, lambda: "no watcher listens" in stage.said(app))
        watcher.absent = False
        await stage.until(pilot, lambda: app.seen.gone_since_s is None and "gone since" not in stage.screen_text(app))
        await stage.settle(pilot)
        assert orders(watcher) == []


@pytest.mark.slow
async def test_a_cleared_episode_has_nothing_to_fix(watcher: Any, stage: Any) -> None:
    watcher.episodes = [stage.episode(state=EpisodeState.CLEARED)]
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("tab", "enter")
        await stage.until(pilot, lambda: isinstance(app.screen, EpisodeScreen) and "cleared" in stage.screen_text(app))
        await stage.settle(pilot)
        await pilot.press("r")
        await stage.until(pilot, lambda: "nothing to fix" in stage.said(app))
        assert watcher.orders == []


@pytest.mark.slow
async def test_a_silence_needs_a_reason_and_covers_only_that_entity(watcher: Any, stage: Any) -> None:
    watcher.episodes = [stage.episode(entity=Entity(EntityKind.CGROUP, "/pods/*"))]
    async with stage.cockpit(watcher) as (app, pilot):
        await pilot.press("tab", "s")
        await stage.until(pilot, lambda: isinstance(app.screen, SilenceScreen))
        await pilot.press("enter")
        await stage.until(pilot, lambda: "needs a reason" in stage.screen_text(app))
        await pilot.press(*"CHG", "enter")
        await stage.until(pilot, lambda: bool(watcher.orders))
        expected = {"fingerprint": "reduced_huge_page_coverage", "seconds": 3600, "reason": "CHG"}
        assert watcher.orders == [("silence", {**expected, "entity": "cgroup:/pods/[*]"})]
        await stage.until(pilot, lambda: "silenced" in stage.screen_text(app))


@pytest.mark.slow
async def test_the_runs_screen_tells_the_story_of_a_run(watcher: Any, stage: Any) -> None:
    watcher.runs.append(stage.planned_run(watcher.episodes[0]))
    watcher.step(RUN, RunState.APPROVED)
    watcher.event(RUN, event="runner_on_ok", task="one", changed=True, message="")
    async with stage.cockpit(watcher, size=(120, 30)) as (app, pilot):
        await pilot.press("2")
        await stage.until(pilot, lambda: RUN in stage.screen_text(app))
        await pilot.press("enter")
        await stage.until(pilot, lambda: "operator, by uid:0 pid:1" in stage.screen_text(app))
        await pilot.press("escape", "escape")
        await stage.until(pilot, lambda: "1 open episode" in stage.screen_text(app))


async def test_it_works_over_a_real_control_socket(watcher: Any, stage: Any, tmp_path: Path) -> None:
    asked: list[str] = []

    def handle(method: str, params: dict[str, Any], actor: str) -> Any:
        asked.append(actor)
        return watcher.call(method, **params)

    server = ControlServer(tmp_path / "control.sock", handle)
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            server.serve_until(time.monotonic_ns() + 20_000_000)

    thread = threading.Thread(target=serve)
    thread.start()
    client = Client(tmp_path / "control.sock", timeout_s=3)
    try:
        async with stage.cockpit(client) as (app, pilot):
            await open_plan(stage, app, pilot)
            await question(stage, app, pilot, "a")
            await pilot.press("y")
            await stage.until(pilot, lambda: orders(watcher) == ["approve"])
            assert asked[0].startswith("uid:")
            stop.set()
            thread.join()
            server.close()
            await stage.until(pilot, lambda: "watcher gone since" in stage.screen_text(app), seconds=5)
    finally:
        stop.set()
        thread.join()
        client.close()
