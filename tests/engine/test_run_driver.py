"""The ways through the lifecycle that need no playbook: a journal on disk, settings of a scratch host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import ConflictError, RefusedError, UnwritableError
from unveil.execution.request import REQUEST
from unveil.records.remediation import Mode
from unveil.records.run import RunState
from unveil.records.silence import Silence

if TYPE_CHECKING:
    from collections.abc import Callable

MADVISE = "always [madvise] never\n"
SILENCE = Silence(id="s", fingerprint="*", entity="*", until_s=9e9, reason="work", actor="uid:0", created_s=0)


def fill_disk(rig: Any) -> None:
    """Let the journal refuse every write from now on, as it does on a full disk or one that went read-only."""
    rig.journal._db.execute("PRAGMA query_only = ON")


def make_room(rig: Any) -> None:
    rig.journal._db.execute("PRAGMA query_only = OFF")


# Before anything is done


def test_a_plan_that_is_asked_for_twice_is_one_run(rig: Callable[..., Any]) -> None:
    here = rig()
    first = here.planned()
    here.now += 5
    assert here.planned().id == first.id
    assert len(here.queries.runs()) == 1
    other = here.driver.propose(here.drawn(episode=2), actor="uid:0")
    assert other.id != first.id, "another episode is another run"


def test_five_identical_matches_at_once_are_one_run(rig: Callable[..., Any]) -> None:
    here = rig()
    runs = {here.driver.propose(here.drawn(episode=number), actor="watcher").id for number in range(1, 6)}
    assert len(runs) == 1
    assert len(here.queries.runs()) == 1


def test_an_hour_of_matches_under_the_default_profile_leaves_every_setting_as_it_was(rig: Callable[..., Any]) -> None:
    here = rig()
    here.profile, here.matching = Mode.OBSERVE, True

    def content() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in here.root.rglob("*") if path.is_file()}

    before = content()
    for second in range(3600):
        if second % 60 == 0:
            with pytest.raises(RefusedError, match="observe only"):
                here.driver.propose(here.drawn(episode=second + 1), actor="watcher")
        assert here.second() == ()
    assert content() == before
    assert here.queries.runs() == ()
    assert here.driver.active == 0


def test_another_hash_than_the_one_shown_is_refused(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.planned()
    with pytest.raises(ConflictError, match="not the plan that was shown"):
        here.driver.approve(run, plan_hash="0" * 64, actor="uid:0")
    run = here.driver.approve(run, plan_hash=run.plan.hash, actor="uid:0")
    with pytest.raises(ConflictError):
        here.driver.apply(run, plan_hash="0" * 64, actor="uid:0")
    assert here.states(run) == ["planned", "approved"]


def test_a_plan_that_nobody_approved_is_not_applied(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.planned()
    with pytest.raises(RefusedError, match="not approved"):
        here.driver.apply(run, plan_hash=run.plan.hash, actor="uid:0")
    assert here.read() == MADVISE


def test_a_plan_whose_setting_moved_since_ends_refused_and_names_it(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved()
    here.write("always madvise [never]\n")
    with pytest.raises(ConflictError, match="changed since"):
        here.driver.apply(run, plan_hash=run.plan.hash, actor="uid:0")
    assert here.states(run)[-1] == "refused"
    assert here.address in here.stored(run).steps[-1].detail
    assert here.read() == "always madvise [never]\n"


@pytest.mark.parametrize(
    ("present", "why"),
    [
        ({"profile": Mode.OBSERVE}, "observe only"),
        ({"still_matching": False}, "no longer matches"),
        ({"still_matching": None}, "unknown"),
        ({"silences": (SILENCE,)}, "silenced"),
    ],
)
def test_what_policy_refuses_keeps_the_run_for_later(
    rig: Callable[..., Any], present: dict[str, Any], why: str
) -> None:
    here = rig()
    run = here.approved()
    for name, value in present.items():
        setattr(here, name, value)
    with pytest.raises(RefusedError, match=why):
        here.driver.apply(run, plan_hash=run.plan.hash, actor="uid:0")
    assert here.states(run) == ["planned", "approved"]
    assert here.driver.active == 0
    assert here.read() == MADVISE


def test_the_watcher_itself_does_not_even_propose_during_a_silence_and_a_person_may(rig: Callable[..., Any]) -> None:
    here = rig()
    here.silences = (
        Silence(id="s", fingerprint="f", entity="*", until_s=9e9, reason="maintenance", actor="uid:0", created_s=0),
    )
    with pytest.raises(RefusedError, match="maintenance"):
        here.planned(actor="watcher")
    assert here.queries.runs() == ()
    assert here.planned(actor="uid:0").state is RunState.PLANNED


def test_a_plan_that_waits_too_long_expires_by_itself_and_cannot_be_approved_late(rig: Callable[..., Any]) -> None:
    here = rig()
    waiting = here.planned()
    late = here.driver.propose(here.drawn(episode=2), actor="uid:0")
    here.now += 601
    with pytest.raises(RefusedError, match="too long"):
        here.driver.approve(late, plan_hash=late.plan.hash, actor="uid:0")
    assert here.states(late) == ["planned", "expired"]
    here.second()
    assert here.states(waiting) == ["planned", "expired"]


def test_a_plan_whose_remediation_left_the_knowledge_base_expires_a_day_later(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.planned()
    here.known = False
    here.now += 3600
    here.second()
    assert here.states(run) == ["planned"]
    here.now += 86400
    here.second()
    assert here.states(run) == ["planned", "expired"]


def test_a_run_that_waits_is_canceled_at_once_and_for_good(rig: Callable[..., Any]) -> None:
    here = rig()
    planned, approved = here.planned(), here.driver.propose(here.drawn(episode=2), actor="uid:0")
    approved = here.driver.approve(approved, plan_hash=approved.plan.hash, actor="uid:0")
    for run in (planned, approved):
        here.driver.cancel(run, actor="uid:7")
        assert here.stored(run).steps[-1].actor == "uid:7"
        with pytest.raises(RefusedError, match="cannot go from canceled"):
            here.driver.cancel(here.stored(run), actor="uid:7")


def test_nothing_is_done_that_was_not_journalled_before(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved()
    fill_disk(here)
    with pytest.raises(UnwritableError, match="cannot be written"):
        here.driver.apply(run, plan_hash=run.plan.hash, actor="uid:0")
    assert here.driver.active == 0
    assert here.states(run) == ["planned", "approved"]
    assert not (here.folder / "runs" / run.id / REQUEST).exists(), "no playbook was started"
    assert here.read() == MADVISE


def test_a_state_directory_that_takes_no_snapshot_stops_an_apply(rig: Callable[..., Any]) -> None:
    here = rig()
    run = here.approved()
    (here.folder / "runs" / run.id).mkdir()
    (here.folder / "runs" / run.id / "snapshot.json").mkdir()  # a file cannot be put in its place
    with pytest.raises(UnwritableError, match="nothing was changed"):
        here.driver.apply(run, plan_hash=run.plan.hash, actor="uid:0")
    assert here.states(run) == ["planned", "approved"]


def test_a_playbook_that_others_may_write_is_never_started(rig: Callable[..., Any]) -> None:
    here = rig()
    (here.folder.parent / "kb/apply.yml").chmod(0o666)
    run = here.approved()
    with pytest.raises(RefusedError, match="written by others"):
        here.driver.apply(run, plan_hash=run.plan.hash, actor="uid:0")
    assert here.states(run) == ["planned", "approved"]
    assert here.driver.active == 0
