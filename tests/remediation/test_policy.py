from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.records.remediation import Mode, Remediation
from unveil.records.run import RunState
from unveil.records.silence import Silence
from unveil.records.site import Filter, Freeze, Profiles
from unveil.remediation.lifecycle import Cause, advance, new_run
from unveil.remediation.policy import BREAKER_FAILURES, Decision, Intent, decide, expired, undoable

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.run import Plan, Run

NOW = 100_000.0
TO_APPLYING = [(RunState.APPROVED, Cause.OPERATOR), (RunState.APPLYING, Cause.STARTED)]
TO_VERIFYING = [*TO_APPLYING, (RunState.VERIFYING, Cause.APPLIED)]
TO_KEPT = [*TO_VERIFYING, (RunState.KEPT, Cause.VERIFIED)]
TO_ROLLED_BACK = [*TO_VERIFYING, (RunState.ROLLING_BACK, Cause.NOT_VERIFIED), (RunState.ROLLED_BACK, Cause.RESTORED)]
TO_UNDONE = [*TO_KEPT, (RunState.ROLLING_BACK, Cause.OPERATOR), (RunState.ROLLED_BACK, Cause.RESTORED)]


@pytest.fixture
def ask(drawn: Callable[..., Plan], remediation: Remediation) -> Callable[..., Decision]:
    def ask(**given: Any) -> Decision:
        declared = given.pop("remediation", remediation)
        given = {"profile": Mode.AUTO, "history": (), "silences": (), "still_matching": True, "now_s": NOW, **given}
        plan = given.pop("plan", None) or drawn()
        return decide(plan, declared, given.pop("profile"), given.pop("history"), given.pop("silences"), **given)

    return ask


def past(plan: Plan, steps: list[tuple[RunState, Cause]], *, ago_s: float, number: int = 1) -> Run:
    run = new_run(f"r{number:012x}", plan, "watcher", NOW - ago_s)
    for state, cause in steps:
        run = advance(run, state, cause, "uid:0", NOW - ago_s)
    return run


def test_with_everything_in_order_it_may(ask: Callable[..., Decision]) -> None:
    assert ask() == Decision(allowed=True, mode=Mode.AUTO)


@pytest.mark.parametrize(
    ("profile", "intent", "person", "allowed"),
    [
        (Mode.OBSERVE, Intent.PROPOSE, False, False),
        (Mode.OBSERVE, Intent.APPLY, True, False),
        (Mode.MANUAL, Intent.PROPOSE, False, False),
        (Mode.MANUAL, Intent.PROPOSE, True, True),
        (Mode.MANUAL, Intent.APPLY, True, True),
        (Mode.APPROVE, Intent.PROPOSE, False, True),
        (Mode.APPROVE, Intent.APPLY, False, False),
        (Mode.APPROVE, Intent.APPLY, True, True),
        (Mode.AUTO, Intent.APPLY, False, True),
    ],
)
def test_how_far_it_goes_by_itself(
    ask: Callable[..., Decision], profile: Mode, intent: Intent, person: bool, allowed: bool
) -> None:
    assert ask(profile=profile, intent=intent, person=person).allowed is allowed


@pytest.mark.parametrize(
    "change",
    [
        {"status": "test"},
        {"reversible": False},
        {"interrupts_workload": True},
        {"requires_reboot": True},
        {"rollback_triggers": ("operator",)},
    ],
)
def test_auto_is_for_what_is_stable_and_can_be_undone(
    ask: Callable[..., Decision], remediation: Remediation, change: dict[str, Any]
) -> None:
    decision = ask(remediation=replace(remediation, **change))
    assert not decision.allowed
    assert decision.mode is Mode.APPROVE
    assert decision.notes


@pytest.mark.parametrize(
    "steps",
    [
        [*TO_VERIFYING, (RunState.REVERTED_BY_OTHER, Cause.CHANGED_BY_OTHER)],
        [*TO_VERIFYING, (RunState.INCONCLUSIVE, Cause.NO_ANSWER)],
        [*TO_APPLYING, (RunState.FAILED_DIRTY, Cause.NO_ROLLBACK)],
    ],
)
def test_after_an_ambiguous_end_a_person_is_asked(
    ask: Callable[..., Decision], drawn: Callable[..., Plan], steps: list[tuple[RunState, Cause]]
) -> None:
    history = (past(drawn(), steps, ago_s=50_000),)
    assert not ask(history=history).allowed
    assert ask(history=history, intent=Intent.PROPOSE).allowed, "to propose it is to ask"
    assert ask(history=history, person=True).allowed


def test_what_is_unsafe_binds_a_person_too(
    ask: Callable[..., Decision], drawn: Callable[..., Plan], remediation: Remediation
) -> None:
    silence = Silence(
        id="s1",
        fingerprint="nic_*",
        entity="*",
        until_s=NOW + 60,
        reason="migration",
        actor="uid:7",
        created_s=NOW - 60,
    )
    for given, word in [
        ({"still_matching": False}, "no longer matches"),
        ({"still_matching": None}, "unknown"),
        ({"silences": (silence,)}, "migration"),
        ({"plan": replace(drawn(), timeout_s=1.0)}, "hashed"),
        ({"remediation": replace(remediation, revision="new")}, "plan again"),
        ({"remediation": replace(remediation, preconditions=("full_moon",))}, "full_moon"),
        ({"approved_s": NOW - 1801}, "approve again"),
    ]:
        decision = ask(person=True, **given)
        assert not decision.allowed
        assert any(word in reason for reason in decision.reasons), decision.reasons
    assert ask(silences=(replace(silence, until_s=NOW - 1),)).allowed
    assert ask(profile=Mode.APPROVE, approved_s=NOW - 1700).allowed


def test_every_reason_is_told_not_only_the_first(ask: Callable[..., Decision]) -> None:
    assert len(ask(profile=Mode.OBSERVE, still_matching=False).reasons) == 2


def test_cooldown_and_attempts_bind_automation_and_warn_a_person(
    ask: Callable[..., Decision], drawn: Callable[..., Plan]
) -> None:
    recent = (past(drawn(), TO_KEPT, ago_s=300),)
    assert any("cooldown" in reason for reason in ask(history=recent).reasons)
    person = ask(history=recent, person=True)
    assert person.allowed
    assert any("cooldown" in note for note in person.notes)
    twice = tuple(past(drawn(), TO_KEPT, ago_s=5000 + number, number=number) for number in (1, 2))
    assert any("2 attempts" in reason for reason in ask(history=twice).reasons)
    refused = (past(drawn(), [(RunState.REFUSED, Cause.POLICY)], ago_s=10),)
    assert ask(history=refused).allowed, "one that never acted used up nothing"


def test_one_run_has_a_setting_in_hand_at_a_time_and_the_same_deed_is_joined(
    ask: Callable[..., Decision], drawn: Callable[..., Plan]
) -> None:
    running = past(drawn(), TO_APPLYING, ago_s=5)
    joined = ask(history=(running,), person=True)
    assert (joined.allowed, joined.joins) == (False, running.id)
    other = past(replace(drawn(), remediation="other"), TO_VERIFYING, ago_s=5)
    locked = ask(history=(other,), person=True)
    assert (locked.allowed, locked.joins) == (False, None)
    assert any("irq:24/smp_affinity_list and 3 more in hand" in reason for reason in locked.reasons)
    waiting = past(replace(drawn(), remediation="other"), [], ago_s=5)
    assert ask(history=(waiting,)).allowed, "a plan that only waits holds nothing"
    assert ask(history=(running,), run_id=running.id).allowed, "a run is not held against itself"


def test_a_plan_that_waits_is_joined_by_a_proposal_and_does_not_block_its_twin(
    ask: Callable[..., Decision], drawn: Callable[..., Plan]
) -> None:
    waiting = past(drawn(), [], ago_s=5)
    assert ask(history=(waiting,), intent=Intent.PROPOSE).joins == waiting.id
    assert ask(history=(waiting,), intent=Intent.APPLY, person=True, run_id="r00000000000b").allowed


def test_what_the_site_declared_to_be_on_purpose_is_left(ask: Callable[..., Decision]) -> None:
    known = Filter(
        name="night_cap",
        id="x",
        title="",
        owner="",
        reason="rack budget",
        fingerprints=("nic_far",),
        expires="2027-03-31",
        expires_s=NOW + 60,
        hosts=("gpu-*",),
    )
    decision = ask(filters=(known,), host="gpu-7", person=True)
    assert not decision.allowed
    assert "rack budget" in decision.reasons[0]
    assert ask(filters=(known,), host="cpu-7").allowed


def test_the_breaker_opens_on_failures_and_not_on_what_a_person_undid(
    ask: Callable[..., Decision], drawn: Callable[..., Plan]
) -> None:
    other = replace(drawn(), remediation="other", changes=())
    bad = tuple(past(other, TO_ROLLED_BACK, ago_s=600, number=number) for number in range(BREAKER_FAILURES))
    assert any("breaker is open" in reason for reason in ask(history=bad).reasons)
    assert ask(history=bad, person=True).allowed
    assert ask(history=bad[:-1]).allowed
    undone = tuple(past(other, TO_UNDONE, ago_s=600, number=number) for number in range(BREAKER_FAILURES))
    assert ask(history=undone).allowed


def test_a_settled_run_can_be_taken_back_for_as_long_as_it_says(
    drawn: Callable[..., Plan], remediation: Remediation
) -> None:
    assert undoable(past(drawn(), TO_KEPT, ago_s=86_300), remediation, NOW)
    assert not undoable(past(drawn(), TO_KEPT, ago_s=86_500), remediation, NOW)
    assert not undoable(past(drawn(), TO_ROLLED_BACK, ago_s=1), remediation, NOW)


def test_waiting_ends(drawn: Callable[..., Plan], remediation: Remediation) -> None:
    waiting = past(drawn(), [], ago_s=1801)
    assert expired(waiting, remediation, NOW)
    assert not expired(past(drawn(), [], ago_s=1799), remediation, NOW)
    assert not expired(past(drawn(), TO_APPLYING, ago_s=9999), remediation, NOW)


def test_a_freeze_bounds_everybody_a_window_automation_and_neither_a_proposal(ask: Callable[..., Decision]) -> None:
    freeze = Freeze(first="1970-01-02", last="1970-01-02", from_s=86400.0, until_s=172800.0, reason="year end")
    frozen = Profiles(freezes=(freeze,))
    for person in (False, True):
        (reason,) = ask(calendar=frozen, person=person).reasons
        assert "frozen until the end of 1970-01-02" in reason
    assert ask(calendar=frozen, intent=Intent.PROPOSE).allowed
    closed = Profiles(maintenance=("00:00-01:00",))  # NOW is a quarter to four in the morning
    (reason,) = ask(calendar=closed).reasons
    assert "only in maintenance windows" in reason
    assert ask(calendar=closed, person=True).allowed
    assert ask(calendar=Profiles(maintenance=("03:00-04:00",))).allowed
