"""Situation: the present, as far as it decides whether a plan may be proposed or applied; and that decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.errors import RefusedError
from unveil.records.remediation import Mode
from unveil.remediation import policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unveil.records.remediation import Remediation
    from unveil.records.reset import Reset
    from unveil.records.run import Plan, Run
    from unveil.records.silence import Silence
    from unveil.records.site import Filter, Profiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What must be known of the present to decide about a plan.

    Attributes:
        profile: how far automation may go with the remediation on this host.
        still_matching: what the newest window says; None is unknown, which is not yes.
        baseline: the features that verification compares, measured now.
        host: name of this host, for the filters.
        resets: what people let go.
        calendar: the site's freezes and maintenance windows.
    """

    remediation: Remediation
    profile: Mode
    silences: tuple[Silence, ...]
    still_matching: bool | None
    baseline: Mapping[str, float]
    filters: tuple[Filter, ...] = ()
    host: str = ""
    resets: tuple[Reset, ...] = ()
    calendar: Profiles | None = None


def permit(
    plan: Plan,
    situation: Situation,
    history: Sequence[Run],
    *,
    intent: policy.Intent,
    person: bool,
    now_s: float,
    run_id: str | None = None,
    approved_s: float | None = None,
) -> None:
    """Return when a plan may be proposed or applied now.

    Args:
        history: runs of this host, newest first.
        run_id, approved_s: the run that the plan belongs to, and when it was approved.

    Raises:
        RefusedError: it may not; every reason, and what can be done about it.
    """
    decision = policy.decide(
        plan,
        situation.remediation,
        situation.profile,
        tuple(reversed(history)),
        situation.silences,
        still_matching=situation.still_matching,
        now_s=now_s,
        intent=intent,
        person=person,
        approved_s=approved_s,
        run_id=run_id,
        filters=situation.filters,
        host=situation.host,
        resets=situation.resets,
        calendar=situation.calendar,
    )
    if not decision.allowed:
        named = plan.remediation if run_id is None else run_id
        verb = "be proposed" if intent is policy.Intent.PROPOSE else "run"
        said = "; ".join(decision.reasons)
        raise RefusedError(f"{named} may not {verb} now: {said}", hint=cure(decision.mode, said))


# What a reason says → what can be done about it; the first that fits is told.
_CURES = (
    ("is unknown", "`unveil explain` shows what the newest window says; the next one is a second away"),
    ("silenced by", "`unveil silence` lists silences, `unveil silence --end ID` ends one"),
    ("the site's filter", "filters are in inventory/filters, with their owners"),
    ("the site is frozen", "freezes are in inventory/profiles.yml; a rollback is not held back"),
    ("in hand", "`unveil runs list --active` shows it: wait for its end, or cancel it"),
    ("already at it", "`unveil runs list` shows it: there is nothing more to start"),
    ("approve again", "approve it again, if it is still right"),
    ("plan again", "`unveil runs plan EPISODE` draws it from the present"),
    ("not what was hashed", "`unveil runs plan EPISODE` draws it from the present"),
    ("no longer matches", "it cleared by itself; `unveil runs cancel` ends what waits"),
    ("maintenance windows", "a person may apply it at any time"),
)


def cure(mode: Mode, said: str = "") -> str:
    """Return what a person can do about a refusal.

    Args:
        said: the reasons, as they are told.
    """
    if mode is Mode.OBSERVE:
        how = "start the watcher with --profile manual, or set it in inventory/profiles.yml"
        return f"this host only observes; {how} (`unveil status` says when that file is not believed)"
    return next(
        (told for needle, told in _CURES if needle in said), "`unveil explain` shows what the newest window says"
    )
