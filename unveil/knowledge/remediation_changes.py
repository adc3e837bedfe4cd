"""What differs between two versions of a remediation: may it do more to a host, or with less care?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.knowledge.change import Effect, bound, listed, opposite
from unveil.knowledge.fingerprint_changes import reworded
from unveil.records.remediation import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.knowledge.change import Told
    from unveil.records.remediation import Improvement, Remediation, Variable

PROSE = ("title", "description", "author", "owner", "date", "references", "tags", "risk_notes")
IMPACTS = ("none", "low", "medium", "high")
_MODES = tuple(Mode)
_UNBOUNDED = float("inf")


def remediation_changes(old: Remediation, new: Remediation) -> Iterator[Told]:
    """Yield the differences of two versions; the text of the playbook is not looked at."""
    for what in ("name", "id"):
        if getattr(old, what) != getattr(new, what):
            yield Effect.CHANGED, f"{what} {getattr(old, what)} → {getattr(new, what)}"
    yield from _risk(old, new)
    yield from _settings(old, new)
    yield from _limits(old, new)
    yield from _verification(old, new)
    yield from _variables(old, new)
    yield from listed("fingerprint", old.remediates, new.remediates, gone=Effect.REMOVED, came=Effect.RISK)
    yield from bound("timeout", old.timeout_s, new.timeout_s, more=Effect.LOOSENED, unit=" s")
    yield from reworded(old, new, PROSE)


def raised(what: str, old: str, new: str, order: tuple[str, ...]) -> Iterator[Told]:
    """Yield how one of ordered words changed; a later one is a risk."""
    if old != new:
        known = old in order and new in order
        higher = known and order.index(new) > order.index(old)
        effect = Effect.RISK if higher else Effect.TIGHTENED if known else Effect.CHANGED
        yield effect, f"{what} {old} → {new}"


def _risk(old: Remediation, new: Remediation) -> Iterator[Told]:
    yield from raised("mode", old.mode, new.mode, _MODES)
    if old.status != new.status:
        effect = Effect.RISK if new.status == "stable" else Effect.CHANGED  # only stable may act by itself
        yield effect, f"status {old.status} → {new.status}"
    yield from raised("impact", old.impact, new.impact, IMPACTS)
    for what, before, after in (
        ("cannot be undone", not old.reversible, not new.reversible),
        ("interrupts the workload", old.interrupts_workload, new.interrupts_workload),
        ("needs a reboot", old.requires_reboot, new.requires_reboot),
    ):
        if before != after:
            yield (Effect.RISK, f"{what} now") if after else (Effect.TIGHTENED, f"no longer {what}")


def _settings(old: Remediation, new: Remediation) -> Iterator[Told]:
    before, after = ({(each.address, each.for_each): each for each in side.settings} for side in (old, new))
    for key, setting in before.items():
        if key not in after:
            yield Effect.TIGHTENED, f"no longer changes {setting.address}"
            continue
        other = after[key]
        if setting.value != other.value:
            yield Effect.CHANGED, f"{setting.address} becomes {other.value!r}, was {setting.value!r}"
        what = f"setting coupled with {setting.address}"
        yield from listed(what, setting.coupled, other.coupled, gone=Effect.LOOSENED, came=Effect.TIGHTENED)
    for key, setting in after.items():
        if key not in before:
            each = f" for each of {setting.for_each}" if setting.for_each else ""
            yield Effect.RISK, f"changes {setting.address}, too{each}"


def _limits(old: Remediation, new: Remediation) -> Iterator[Told]:
    before, after = old.limits, new.limits
    yield from bound("cooldown", before.cooldown_s, after.cooldown_s, more=Effect.TIGHTENED, unit=" s")
    yield from bound("max_attempts", before.max_attempts, after.max_attempts, more=Effect.LOOSENED)
    what = "attempts counted within"
    yield from bound(what, before.attempts_within_s, after.attempts_within_s, more=Effect.TIGHTENED, unit=" s")
    hosts = [_UNBOUNDED if each.max_hosts is None else float(each.max_hosts) for each in (before, after)]
    yield from bound("max_hosts", *hosts, more=Effect.LOOSENED)
    yield from listed("precondition", old.preconditions, new.preconditions, gone=Effect.LOOSENED, came=Effect.TIGHTENED)
    yield from listed(
        "rollback on", old.rollback_triggers, new.rollback_triggers, gone=Effect.RISK, came=Effect.TIGHTENED
    )
    yield from bound(
        "rollback available for", old.rollback_available_s, new.rollback_available_s, more=Effect.TIGHTENED, unit=" s"
    )
    yield from bound(
        "approval expires after", old.approval_expires_s, new.approval_expires_s, more=Effect.LOOSENED, unit=" s"
    )


def _verification(old: Remediation, new: Remediation) -> Iterator[Told]:
    before, after = old.verification, new.verification
    yield from bound("verify.within", before.within_s, after.within_s, more=Effect.CHANGED, unit=" s")
    for what, was, now in (
        ("settings_hold_for", before.settings_hold_s, after.settings_hold_s),
        ("fingerprint_clear_for", before.clear_s, after.clear_s),
    ):
        yield from bound(f"verify.{what}", was, now, more=Effect.TIGHTENED, unit=" s")
    yield from _improvements("improve", before.improve, after.improve, larger=Effect.TIGHTENED)
    yield from _improvements("must_not_worsen", before.must_not_worsen, after.must_not_worsen, larger=Effect.LOOSENED)


def _improvements(
    what: str, old: tuple[Improvement, ...], new: tuple[Improvement, ...], *, larger: Effect
) -> Iterator[Told]:
    before, after = ({(each.feature, each.direction): each for each in side} for side in (old, new))
    for (feature, direction), was in before.items():
        told = f"verify.{what} {feature} {direction}"
        if (now := after.get((feature, direction))) is None:
            yield Effect.LOOSENED, f"{told} is gone"
            continue
        yield from bound(told, was.effect, now.effect, more=larger)
        yield from bound(f"{told} after", was.after_s, now.after_s, more=Effect.CHANGED, unit=" s")
        if was.optional is not now.optional:
            yield (
                (Effect.LOOSENED, f"{told} is optional")
                if now.optional
                else (Effect.TIGHTENED, f"{told} must be measured")
            )
    for feature, direction in after:
        if (feature, direction) not in before:
            yield Effect.TIGHTENED, f"verify.{what} {feature} {direction} is new"


def _variables(old: Remediation, new: Remediation) -> Iterator[Told]:
    before, after = ({each.name: each for each in side.variables} for side in (old, new))
    for name, variable in before.items():
        if name not in after:
            yield Effect.CHANGED, f"variable {name} is gone"
        else:
            yield from _variable(variable, after[name])
    for name, variable in after.items():
        if name not in before:
            yield Effect.CHANGED, f"variable {name} ({variable.type}, from {variable.origin or 'its default'}) is new"


def _variable(old: Variable, new: Variable) -> Iterator[Told]:
    what = f"variable {old.name}"
    for field in ("type", "origin", "default"):
        if getattr(old, field) != getattr(new, field):
            yield Effect.CHANGED, f"{what}: {field} {getattr(old, field)!r} → {getattr(new, field)!r}"
    if old.pattern != new.pattern:
        effect = Effect.CHANGED if new.pattern else Effect.RISK
        yield effect, f"{what}: pattern {old.pattern or 'none'} → {new.pattern or 'none'}"
    if old.untrusted != new.untrusted:
        yield (
            (Effect.TIGHTENED, f"{what} is untrusted now") if new.untrusted else (Effect.RISK, f"{what} is trusted now")
        )
    for field, unbounded, more in (
        ("minimum", -_UNBOUNDED, Effect.TIGHTENED),
        ("maximum", _UNBOUNDED, opposite(Effect.TIGHTENED)),
        ("max_length", _UNBOUNDED, Effect.LOOSENED),
    ):
        was, now = (unbounded if (value := getattr(each, field)) is None else value for each in (old, new))
        yield from bound(f"{what}: {field}", was, now, more=more)
    yield from reworded(old, new, ("description",))
