"""May this plan be carried out, by whom, now? One decision with every reason, not only the first.

Automation is bounded by the remediation, by the site's profile, by budgets and by a breaker; a person's word is bounded
by what makes an action unsafe: a stale plan, a condition that is over, a silence, another run on the same setting.
Budgets (cooldown, attempts, the breaker) guard against automation; a person is told of them, not stopped. Rollbacks
never come here: a tripped breaker must not keep anyone from undoing something.

`limits.max_hosts` counts hosts of a fleet, which one host's watcher cannot see; the fleet's play holds it (`serial`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from unveil.records.remediation import Mode
from unveil.records.reset import ResetKind
from unveil.records.run import RunState
from unveil.remediation.calendar import frozen, within
from unveil.remediation.holds import held
from unveil.remediation.lifecycle import ACTIVE, STEPS, TERMINAL, Cause, entered
from unveil.remediation.planner import digest
from unveil.remediation.setting_kinds import lock_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from unveil.records.remediation import Remediation
    from unveil.records.reset import Reset
    from unveil.records.run import Plan, Run
    from unveil.records.silence import Silence
    from unveil.records.site import Filter, Profiles

_MODES = tuple(Mode)
BREAKER_FAILURES = 3  # runs that failed or had to be rolled back, of any remediation …
BREAKER_WITHIN_S = 3600.0  # … within an hour: automation stops, because something else is wrong with this host
_BAD_ENDS = frozenset({RunState.FAILED_CLEAN, RunState.FAILED_DIRTY, RunState.ROLLED_BACK, RunState.REVERTED_BY_OTHER})
_ASK_A_PERSON = frozenset({RunState.FAILED_DIRTY, RunState.REVERTED_BY_OTHER, RunState.INCONCLUSIVE})
_PRECONDITIONS = frozenset({"still_matching", "no_silence"})


class Intent(StrEnum):
    """What is about to happen with a plan."""

    PROPOSE = "propose"  # put it before a person (or, in auto, on the way)
    APPLY = "apply"  # change the host


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """May it, and why not.

    Attributes:
        mode: how far automation may go with it, after every lowering.
        reasons: all that speak against it; empty exactly when it is allowed.
        notes: what a person should know who says yes all the same.
        joins: id of a run that already does this; nothing new is to be started.
    """

    allowed: bool
    mode: Mode
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    joins: str | None = None


def decide(
    plan: Plan,
    remediation: Remediation,
    profile: Mode,
    history: Sequence[Run],
    silences: Iterable[Silence],
    *,
    still_matching: bool | None,
    now_s: float,
    intent: Intent = Intent.APPLY,
    person: bool = False,
    approved_s: float | None = None,
    run_id: str | None = None,
    filters: Iterable[Filter] = (),
    host: str = "",
    resets: Sequence[Reset] = (),
    calendar: Profiles | None = None,
) -> Decision:
    """Return whether a plan may be proposed or applied now.

    Args:
        profile: `Profiles.mode(remediation, …)` of this host.
        history: runs of this host, oldest first, as far back as `attempts_within_s` and an hour.
        still_matching: what fresh windows say of the episode; None is unknown, which is not yes.
        now_s: wall clock, seconds since the epoch.
        person: a person asks for it, or approved it.
        approved_s: when it was approved; an approval expires.
        run_id: the run that the plan belongs to, so that it is not held against itself.
        filters: the site's declared exceptions, judged for *host*; any that covers the episode keeps it from being
            acted upon.
        resets: what people let go: the breaker, or a setting that was changed by hand.
        calendar: the site's freezes, which bound everybody, and its maintenance windows, which bound automation.
    """
    others = [run for run in history if run.id != run_id]
    mode, lowered = _mode(plan, remediation, profile, others)
    person = person or approved_s is not None
    reasons = _unsafe(plan, remediation, silences, still_matching, now_s)
    reasons += [
        f"the site's filter {each.name} keeps it as it is until {each.expires}: {each.reason.strip()}"
        for each in filters
        if each.covers(plan.fingerprint, str(plan.entity), host, now_s)
    ]
    reasons += _not_allowed(mode, intent, person)
    if approved_s is not None and now_s - approved_s > remediation.approval_expires_s:
        reasons.append(f"the approval is older than {remediation.approval_expires_s:.0f} s: approve again")
    if calendar is not None and intent is Intent.APPLY:
        reasons += _out_of_time(calendar, person, now_s)
    joins, locks = _locks(plan, others, intent)
    reasons += locks
    budgets = _budgets(plan, remediation, others, now_s, resets) + held(plan, others, resets)
    if not person:
        reasons += budgets
    return Decision(
        allowed=not reasons,
        mode=mode,
        reasons=tuple(reasons),
        notes=(*lowered, *(budgets if person else ())),
        joins=joins,
    )


def expired(run: Run, remediation: Remediation, now_s: float) -> bool:
    """Tell whether a run has waited too long for its approval, or since it: an approval that is late is a no."""
    waiting = run.state in (RunState.PLANNED, RunState.APPROVED)
    return waiting and now_s - run.steps[-1].at_s > remediation.approval_expires_s


def undoable(run: Run, remediation: Remediation, now_s: float) -> bool:
    """Tell whether a person may still take a settled run back: `rollback.available_for`, from its last step on."""
    reopens = RunState.ROLLING_BACK in STEPS[run.state]
    return reopens and now_s - run.steps[-1].at_s <= remediation.rollback_available_s


def _mode(plan: Plan, remediation: Remediation, profile: Mode, others: Sequence[Run]) -> tuple[Mode, list[str]]:
    """Return the effective mode and what lowered it."""
    mode = min(remediation.mode, profile, key=_MODES.index)
    if mode is not Mode.AUTO:
        return mode, []
    demands = {
        f"its status is {remediation.status}, not stable": remediation.status != "stable",
        "it cannot be undone": not remediation.reversible,
        "it interrupts the workload": remediation.interrupts_workload,
        "it needs a reboot": remediation.requires_reboot,
        "it has no rollback for a failed verification": "verify_failed" not in remediation.rollback_triggers,
    }
    previous = next((run for run in reversed(others) if _same_work(run.plan, plan) and run.state in TERMINAL), None)
    if previous is not None and previous.state in _ASK_A_PERSON:
        demands[f"the last time it ended {previous.state} (run {previous.id})"] = True
    lowered = [f"a person is asked, because {why}" for why, holds in demands.items() if holds]
    return (Mode.APPROVE if lowered else mode), lowered


def _unsafe(
    plan: Plan, remediation: Remediation, silences: Iterable[Silence], still_matching: bool | None, now_s: float
) -> list[str]:
    """Return what makes it unsafe whoever asks."""
    reasons = []
    if plan.hash != digest(plan):
        reasons.append("the plan is not what was hashed")
    if plan.remediation != remediation.name or plan.remediation_revision != remediation.revision:
        reasons.append("the remediation was changed after the plan was drawn: plan again")
    if unknown := sorted(set(remediation.preconditions) - _PRECONDITIONS):
        reasons.append(f"it demands what cannot be checked here: {', '.join(unknown)}")
    if still_matching is None:
        reasons.append(f"whether {plan.fingerprint} still matches is unknown")
    elif not still_matching:
        reasons.append(f"{plan.fingerprint} no longer matches {plan.entity}")
    return reasons + [
        f"silenced by {silence.actor} for another {max(1, round((silence.until_s - now_s) / 60))} min: {silence.reason}"
        for silence in silences
        if silence.covers(plan.fingerprint, str(plan.entity), now_s)
    ]


def _not_allowed(mode: Mode, intent: Intent, person: bool) -> list[str]:
    if mode is Mode.OBSERVE:
        return ["the profile of this host is to observe only (inventory/profiles.yml)"]
    if person:
        return []
    if intent is Intent.PROPOSE and mode is Mode.MANUAL:
        return ["only a person may plan it"]
    if intent is Intent.APPLY and mode is not Mode.AUTO:
        return ["nobody has approved it"]
    return []


def _out_of_time(calendar: Profiles, person: bool, now_s: float) -> list[str]:
    """Return what the site's calendar has against acting now."""
    reasons = []
    if (freeze := frozen(calendar.freezes, now_s)) is not None:
        reasons.append(f"the site is frozen until the end of {freeze.last} (UTC): {freeze.reason.strip()}")
    if not person and not within(calendar.maintenance, now_s):
        reasons.append(f"automation acts only in maintenance windows (UTC): {', '.join(calendar.maintenance)}")
    return reasons


def _same_work(one: Plan, other: Plan) -> bool:
    return one.remediation == other.remediation and one.entity == other.entity


def _locks(plan: Plan, others: Sequence[Run], intent: Intent) -> tuple[str | None, list[str]]:
    """Return the run that already does this, and why it cannot be done beside what is going on."""
    addresses = {lock_of(change.address) for change in plan.changes}
    for run in others:
        # A plan that waits is joined by another proposal; of two that wait, either may be applied, but then only one.
        busy = run.state in ACTIVE or (intent is Intent.PROPOSE and run.state not in TERMINAL)
        if busy and _same_work(run.plan, plan):
            return run.id, [f"run {run.id} is already at it ({run.state})"]
    reasons = []
    for run in others:
        held = sorted(addresses & {lock_of(each.address) for each in run.plan.changes}) if run.state in ACTIVE else []
        if held:
            more = f" and {len(held) - 1} more" if len(held) > 1 else ""
            reasons.append(f"run {run.id} ({run.plan.remediation}, {run.state}) has {held[0]}{more} in hand")
    return None, reasons


def _budgets(
    plan: Plan, remediation: Remediation, others: Sequence[Run], now_s: float, resets: Iterable[Reset]
) -> list[str]:
    """Return the budgets that are used up: cooldown, attempts, the breaker."""
    reasons = []
    acted = [run for run in others if entered(run, RunState.APPLYING) is not None]
    mine = [run for run in acted if _same_work(run.plan, plan)]
    limits = remediation.limits
    rested_s = min((now_s - run.steps[-1].at_s for run in mine), default=float("inf"))
    if rested_s < limits.cooldown_s:
        reasons.append(f"it acted on {plan.entity} {rested_s:.0f} s ago; the cooldown is {limits.cooldown_s:.0f} s")
    recent = [run for run in mine if now_s - run.steps[0].at_s < limits.attempts_within_s]
    if len(recent) >= limits.max_attempts:
        reasons.append(f"{len(recent)} attempts on {plan.entity} within {limits.attempts_within_s:.0f} s are the most")
    bad = gone_wrong(others, now_s, resets)
    if len(bad) >= BREAKER_FAILURES:
        reasons.append(
            f"the breaker is open: {len(bad)} runs went wrong within {BREAKER_WITHIN_S / 60:.0f} min, "
            f"last {bad[-1].id}; `unveil runs reset --reason …` closes it"
        )
    return reasons


def does_the_same(one: Plan, other: Plan) -> bool:
    """Tell whether two plans write the same values to the same settings with the same remediation."""
    wanted = [
        {change.address: change.after for change in plan.changes if change.after is not None} for plan in (one, other)
    ]
    same = one.remediation_revision == other.remediation_revision and one.remediation == other.remediation
    return same and bool(wanted[0]) and wanted[0] == wanted[1] and one.playbook == other.playbook


def gone_wrong(runs: Iterable[Run], now_s: float, resets: Iterable[Reset] = ()) -> list[Run]:
    """Return the runs that the breaker counts: those that acted and ended badly within its time, in their order.

    A person who resets it vouches for what was before.
    """
    since_s = max((each.at_s for each in resets if each.kind is ResetKind.BREAKER), default=float("-inf"))
    return [
        run
        for run in runs
        if run.state in _BAD_ENDS
        and now_s - run.steps[-1].at_s < BREAKER_WITHIN_S
        and run.steps[-1].at_s > since_s
        and entered(run, RunState.APPLYING) is not None
        and not _undone_by_person(run)
    ]


def _undone_by_person(run: Run) -> bool:
    began = entered(run, RunState.ROLLING_BACK)
    return began is not None and began.cause == Cause.OPERATOR
