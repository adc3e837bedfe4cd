"""Every way through the lifecycle but those that play a playbook: a journal on disk, settings of a scratch host."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import RefusedError
from unveil.execution.request import REQUEST
from unveil.records.run import RunState
from unveil.records.silence import Silence

if TYPE_CHECKING:
    from collections.abc import Callable

MADVISE = "always [madvise] never\n"
ALWAYS = "[always] madvise never\n"
RATIO_FILE = "proc/sys/vm/dirty_ratio"
SILENCE = Silence(id="s", fingerprint="*", entity="*", until_s=9e9, reason="work", actor="uid:0", created_s=0)


def fill_disk(rig: Any) -> None:
    """Let the journal refuse every write from now on, as it does on a full disk or one that went read-only."""
    rig.journal._db.execute("PRAGMA query_only = ON")


def make_room(rig: Any) -> None:
    rig.journal._db.execute("PRAGMA query_only = OFF")


# Verification and rollback


def test_a_failed_verification_is_rolled_back_byte_for_byte(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    assert (here.read(), here.read(RATIO_FILE)) == (ALWAYS, "30\n")
    here.share = 0.11
    ended = here.until(run, RunState.ROLLED_BACK, RunState.KEPT)
    assert ended.state is RunState.ROLLED_BACK
    assert "the effect is missing" in ended.steps[-2].detail
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")
    assert here.resets == 1


def test_what_cannot_be_measured_is_inconclusive_and_stays_until_a_person_says(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    here.share = None
    ended = here.until(run, RunState.INCONCLUSIVE)
    assert here.read() == ALWAYS
    here.driver.roll_back(ended, actor="uid:0")
    assert here.read() == MADVISE


def test_a_plan_without_a_trigger_for_it_stays_and_is_called_dirty(rig: Callable[..., Any]) -> None:
    here = rig(rollback_triggers=("operator",))
    run = here.verifying()
    here.share = 0.11
    assert here.until(run, RunState.FAILED_DIRTY).steps[-1].cause == "rollback was not asked for"
    assert here.read() == ALWAYS
    here.driver.roll_back(here.stored(run), actor="uid:0")
    assert here.states(run)[-1] == "rolled_back"


def test_a_setting_that_someone_else_changes_meanwhile_has_the_last_word(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    here.second()
    here.write("always madvise [never]\n")
    ended = here.until(run, RunState.REVERTED_BY_OTHER)
    assert here.address in ended.steps[-1].detail
    assert here.read() == "always madvise [never]\n"
    assert here.read(RATIO_FILE) == "30\n", "nothing is undone merely because of that"


def test_a_rollback_leaves_alone_what_is_no_longer_ours_and_says_so(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    here.write("always madvise [never]\n")
    here.driver.roll_back(here.stored(run), actor="uid:0")
    ended = here.stored(run)
    assert ended.state is RunState.REVERTED_BY_OTHER
    assert "which we did not write" in ended.steps[-1].detail
    assert here.read() == "always madvise [never]\n"
    assert here.read(RATIO_FILE) == "20\n", "the other one is put back"
    outcomes = {e["address"]: e["outcome"] for _, _, e in here.queries.run_events(run.id) if e["event"] == "restore"}
    assert outcomes == {here.address: "left_alone", here.ratio: "restored"}


def test_a_run_canceled_during_verification_is_undone(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    assert here.driver.cancel(run, actor="uid:7").state is RunState.CANCELED
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")


def test_a_setting_that_is_gone_is_no_failure_and_one_that_cannot_be_written_is(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    (here.root / RATIO_FILE).unlink()
    place = here.root / "sys/kernel/mm/transparent_hugepage"
    shutil.rmtree(place)
    place.mkdir()
    (place / "enabled").mkdir()
    ended = here.driver.roll_back(here.stored(run), actor="uid:0")
    assert ended.state is RunState.FAILED_DIRTY
    assert ended.steps[-1].cause == "could not be restored"


def test_a_settled_run_can_be_undone_for_as_long_as_its_author_says(rig: Callable[..., Any]) -> None:
    here = rig()
    kept = here.until(here.verifying(), RunState.KEPT)
    here.now += 7201
    with pytest.raises(RefusedError, match="no longer be rolled back"):
        here.driver.roll_back(kept, actor="uid:0")
    here.now -= 10
    assert here.driver.roll_back(kept, actor="uid:0").state is RunState.ROLLED_BACK


def test_nobody_undoes_a_run_while_another_has_its_settings_in_hand(rig: Callable[..., Any]) -> None:
    here = rig()
    kept = here.until(here.verifying(), RunState.KEPT)
    here.write(MADVISE)
    other = here.verifying()
    assert here.driver.active == 1
    with pytest.raises(RefusedError, match=f"{other.id} has"):
        here.driver.roll_back(here.stored(kept), actor="uid:0")


# After a death


def test_a_run_left_between_the_step_and_the_start_was_never_started(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved()
    saved = {here.address: MADVISE.strip(), here.ratio: "20"}
    here.stepped(replace(run, saved=saved), "applying", "started")
    here.write(ALWAYS)  # whoever that was, it was not us
    assert here.die() == (f"{run.id} was applying: adopt",)
    assert here.states(run)[-1] == "failed_clean"
    assert here.read() == ALWAYS


def test_a_run_left_with_a_request_that_cannot_be_read_is_lost_and_undone(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved()
    here.stepped(replace(run, saved={here.address: MADVISE.strip(), here.ratio: "20"}), "applying", "started")
    (here.supervisor.directory_of(run.id) / REQUEST).write_text("{")
    here.settings.write(here.address, "always")
    here.die()
    assert here.states(run)[-2:] == ["rolling_back", "failed_clean"]
    assert here.read() == MADVISE


def test_a_run_left_in_verification_is_verified_from_the_beginning(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    here.second()
    here.now += 100  # nobody looked
    assert here.die() == (f"{run.id} was verifying: verify",)
    here.second()
    assert here.states(run)[-1] == "verifying"
    assert here.until(run, RunState.KEPT).steps[-1].detail.startswith("verified")


def test_a_run_left_in_its_rollback_is_put_back_again(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    here.stepped(here.stored(run), "rolling_back", "verification failed")
    here.settings.write(here.ratio, "20")  # half of it had been done
    assert here.die() == (f"{run.id} was rolling_back: restore",)
    assert here.states(run)[-1] == "rolled_back"
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")


def test_runs_that_wait_survive_a_death_and_are_not_taken_up(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved()
    assert here.die() == ()
    assert here.states(run) == ["planned", "approved"]
    assert here.read() == MADVISE


def test_what_the_profile_approved_is_decided_anew_and_applied_or_refused(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved(actor="watcher")
    here.still_matching = None
    assert here.die() == (f"{run.id} was approved: decide",)
    here.second()
    assert here.states(run)[-1] == "approved", "unknown is not yes: it waits"
    here.still_matching = False
    here.now += 10
    here.second()
    assert here.states(run)[-1] == "refused"
    assert here.stored(run).steps[-1].cause == "no longer matching"
    assert here.read() == MADVISE


# Without a disk


def test_a_rollback_whose_end_cannot_be_journalled_is_done_and_told_when_there_is_room(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    put_run, calls = here.journal.put_run, []

    def only_once(stepped: Any) -> None:
        calls.append(stepped.state)
        if len(calls) > 1:
            fill_disk(here)
        put_run(stepped)

    here.journal.put_run = only_once
    assert here.driver.roll_back(here.stored(run), actor="uid:0").state is RunState.ROLLED_BACK
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")
    assert here.states(run)[-1] == "rolling_back"
    assert here.driver.newest(here.stored(run)).state is RunState.ROLLED_BACK, "who asks is told"
    here.journal.put_run = put_run
    (trouble,) = here.second()
    assert "not in the journal yet" in trouble
    here.write(ALWAYS)  # someone likes it so, after it was put back
    make_room(here)
    assert here.second() == ()
    assert here.states(run)[-1] == "rolled_back"
    assert here.read() == ALWAYS, "what was put back once is not put back twice"


def test_a_rollback_is_done_on_a_disk_that_takes_nothing_and_written_down_when_there_is_room(
    rig: Callable[..., Any],
) -> None:
    here = rig()
    run = here.verifying()
    fill_disk(here)
    assert here.driver.roll_back(here.stored(run), actor="uid:7").state is RunState.ROLLED_BACK
    assert (here.read(), here.read(RATIO_FILE)) == (MADVISE, "20\n")
    assert here.states(run)[-1] == "verifying"
    make_room(here)
    assert here.second() == ()
    assert here.states(run)[-2:] == ["rolling_back", "rolled_back"]
    assert here.queries.broken_link() is None


def test_a_verification_that_cannot_be_journalled_goes_on_and_does_not_keep_others_from_being_looked_after(
    rig: Callable[..., Any],
) -> None:
    here = rig()
    run = here.verifying()
    fill_disk(here)
    for _ in range(8):
        troubles = here.second()
    assert [run.id in trouble for trouble in troubles if "not in the journal yet" in trouble] == [True]
    assert here.states(run)[-1] == "verifying"
    make_room(here)
    assert here.second() == ()
    assert here.states(run)[-1] == "kept"
    assert any(event["event"] == "measured" for _, _, event in here.queries.run_events(run.id))


def test_the_chain_of_steps_is_whole_after_all_that(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.verifying()
    here.driver.cancel(run, actor="uid:0")
    assert here.queries.broken_link() is None
    with sqlite3.connect(here.folder / "journal.db") as other:
        other.execute("UPDATE run_steps SET detail = 'nothing happened' WHERE state = 'rolling_back'")
    other.close()
    assert here.queries.broken_link() is not None


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_neither_prolongs_nor_cuts_short_a_verification(
    rig: Callable[..., Any], hours: int
) -> None:
    here = rig()
    run = here.verifying()
    here.second()
    here.now += 3600 * hours
    since: list[float] = []
    here.driver._peek = lambda address, seconds: (since.append(seconds), here.settings.peek(address))[1]
    for _ in range(12):
        here.second()
        if here.stored(run).state is not RunState.VERIFYING:
            break
    assert here.stored(run).state is RunState.KEPT, here.stored(run).steps[-1]
    assert all(0 <= seconds < 15 for seconds in since[2:]), "but for the one look in between, of two settings"


def test_plans_that_wait_expire_although_the_clock_was_set_back(rig: Callable[..., Any]) -> None:
    here = rig()
    here.now = 100_000.0
    here.second()
    here.now -= 3600
    run = here.planned()
    here.now += 601
    here.second()
    assert here.states(run) == ["planned", "expired"]
