"""The ways through the lifecycle that play a playbook: it ends well, breaks, is canceled, is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import RefusedError
from unveil.execution.request import CHILD, RESULT
from unveil.records.run import RunState

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.ansible
MADVISE = "always [madvise] never\n"
ALWAYS = "[always] madvise never\n"
RATIO_FILE = "proc/sys/vm/dirty_ratio"
SLEEPY = """
- unveil_setting:
    settings: "{{ unveil_settings }}"
    root: "{{ unveil_host_root }}"
- ansible.builtin.wait_for:
    timeout: 50
"""
FAILING = """
- unveil_setting:
    settings: "{{ unveil_settings }}"
    root: "{{ unveil_host_root }}"
- ansible.builtin.fail:
    msg: it broke half way
"""
IDLE = """
- ansible.builtin.debug:
    msg: nothing is done
"""


def test_applied_verified_kept_and_taken_back_byte_for_byte(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.applied()
    assert run.saved == {here.address: MADVISE.strip(), here.ratio: "20"}
    assert run.plan.baseline == {"memory.huge_share.last": 0.1}
    kept = here.until(run, RunState.KEPT)
    assert here.states(run) == ["planned", "approved", "applying", "verifying", "kept"]
    assert (here.read(), here.read(RATIO_FILE)) == (ALWAYS, "30\n")
    assert here.resets == 1, "the detectors begin anew"
    assert here.driver.active == 0
    events = [event for _, _, event in here.queries.run_events(run.id)]
    assert {"runner_on_ok", "measured"} <= {event["event"] for event in events}
    assert [path.name for path in (here.folder / "runs" / run.id).iterdir()] == ["snapshot.json"]
    here.remediation = replace(here.remediation, revision="2")  # an edit is no reason to keep what it did
    here.driver.roll_back(kept, actor="uid:0")
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")
    assert here.states(run)[-2:] == ["rolling_back", "rolled_back"]
    assert here.queries.broken_link() is None
    with pytest.raises(RefusedError, match="cannot go from rolled_back"):
        here.driver.roll_back(here.stored(run), actor="uid:0")


@pytest.mark.slow
def test_a_playbook_that_breaks_half_way_is_undone(rig: Callable[..., Any]) -> None:
    here = rig(FAILING)
    run = here.until(here.applied(), RunState.FAILED_CLEAN)
    assert here.states(run) == ["planned", "approved", "applying", "rolling_back", "failed_clean"]
    assert "it broke half way" in run.steps[-2].detail
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")


@pytest.mark.slow
def test_a_playbook_that_says_it_succeeded_and_changed_nothing_failed(rig: Callable[..., Any]) -> None:
    here = rig(IDLE)
    run = here.until(here.applied(), RunState.FAILED_CLEAN, RunState.NO_CHANGE)
    assert run.state is RunState.FAILED_CLEAN
    assert "did not change" in run.steps[-1].detail


@pytest.mark.slow
def test_a_run_canceled_under_way_is_undone_and_says_who(rig: Callable[..., Any]) -> None:
    here = rig(SLEEPY)
    run = here.applied()
    deadline = time.monotonic() + 30
    while here.read() != ALWAYS and time.monotonic() < deadline:
        here.second()
        time.sleep(0.1)
    assert here.read() == ALWAYS
    assert here.driver.cancel(run, actor="uid:7").state is RunState.APPLYING
    here.driver.cancel(run, actor="uid:8")
    ended = here.until(run, RunState.CANCELED)
    assert [step.actor for step in ended.steps[-2:]] == ["uid:7", "uid:7"]
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")


@pytest.mark.slow
def test_a_run_canceled_when_its_playbook_has_just_ended_is_undone_all_the_same(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.applied()
    deadline = time.monotonic() + 40
    while not (here.folder / "runs" / run.id / RESULT).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    here.driver.cancel(run, actor="uid:7")
    assert here.until(run, RunState.CANCELED, RunState.VERIFYING).state is RunState.CANCELED
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")


@pytest.mark.slow
@pytest.mark.parametrize("adopted", [False, True])
def test_a_child_that_is_killed_is_lost_and_what_it_did_is_undone(rig: Callable[..., Any], adopted: bool) -> None:
    here = rig(SLEEPY)
    run = here.applied()
    place = here.folder / "runs" / run.id / CHILD
    deadline = time.monotonic() + 30
    while not (place.exists() and here.read(RATIO_FILE) == "30\n") and time.monotonic() < deadline:
        time.sleep(0.05)
    if adopted:
        assert here.die() == (f"{run.id} was applying: adopt",)
        here.second()
        assert here.states(run)[-1] == "applying", "it lives: it is only followed"
    os.kill(json.loads(place.read_text())["pid"], signal.SIGKILL)
    ended = here.until(run, RunState.FAILED_CLEAN)
    assert ended.steps[-2].cause == "run was lost"
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")


@pytest.mark.slow
def test_a_dry_run_changes_nothing_and_tells_what_it_would(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.planned()
    here.driver.dry_run(run)
    here.driver.dry_run(run)
    deadline = time.monotonic() + 40
    told: list[Any] = []
    while time.monotonic() < deadline and not any(event["event"] == "check_finished" for event in told):
        assert here.second() == ()
        time.sleep(0.1)
        told = [event for _, _, event in here.queries.run_events(run.id)]
    (end,) = (event for event in told if event["event"] == "check_finished")
    assert end["ok"], end
    assert {each["name"] for each in end["differences"]} == {here.address, here.ratio}
    assert here.read() == MADVISE
    assert not list((here.folder / "runs").glob("dry-*"))


@pytest.mark.slow
def test_what_the_profile_approved_and_a_death_kept_from_beginning_is_begun(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved(actor="watcher")
    here.die()
    here.second()
    assert here.states(run)[-1] == "applying"
    here.until(run, RunState.KEPT)
