"""An episode and a remediation become a plan: every value filled in, every setting named, and a hash over it all.

What is approved is the hash, and what is applied is what was hashed. A plan is drawn for the live host or for a
recorded one alike: the contents of settings come through *read*.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unveil.errors import BadInputError, RefusedError
from unveil.records.codec import encode
from unveil.records.digest import sha256
from unveil.records.feature import FeatureId
from unveil.records.remediation import Mode
from unveil.records.run import Plan, SettingChange
from unveil.remediation import templates
from unveil.remediation.setting import MAX_VALUE, equal, parse_address
from unveil.remediation.setting_kinds import coupled_with, observed
from unveil.remediation.variables import MAX_ELEMENTS, companions, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from unveil.records.entity import Entity
    from unveil.records.fact import FactTable, FactValue
    from unveil.records.match import Episode
    from unveil.records.remediation import Remediation, WantedSetting

_MODES = tuple(Mode)
# What a plan is not judged by: when and for which episode it was drawn, and what the host happened to measure then.
_NOT_HASHED = ("hash", "episode", "created_s", "baseline", "mode", "grounds")


def plan(
    remediation: Remediation,
    episode: Episode,
    *,
    facts: FactTable,
    site: Mapping[str, FactValue],
    read: Callable[[str], str | None],
    baseline: Callable[[str, Entity], float | None],
    now_s: float,
    ceiling: Mode = Mode.AUTO,
) -> Plan:
    """Return what a remediation would do about an episode, exactly.

    Args:
        site: the site's values (inventory/values.yml).
        read: content of a managed setting, None where it cannot be read: `Settings.peek` for the live host,
            `FactTable.settings.get` for a recorded one.
        baseline: value of a feature of an entity before the fix (`FeatureVector.get` of the newest window, or better
            a mean over the last few); None where absent.
        now_s: wall clock, seconds since the epoch.
        ceiling: what the site's profile allows; the plan's mode is the lower of the two.

    Raises:
        BadInputError: the remediation or a value of the site is wrong.
        RefusedError: it cannot be planned on this host: a fact is absent, a value is not what its author foresaw, or a
            setting cannot be read (what cannot be put back is not changed).
    """
    if remediation.remediates and episode.fingerprint not in remediation.remediates:
        raise BadInputError(
            f"{remediation.name} does not remediate {episode.fingerprint}",
            hint=f"it remediates {', '.join(remediation.remediates)}",
        )
    variables = resolve(remediation.variables, episode=episode, facts=facts, site=site)
    drawn = Plan(
        remediation=remediation.name,
        remediation_revision=remediation.revision,
        playbook=remediation.playbook,
        fingerprint=episode.fingerprint,
        episode=episode.id,
        entity=episode.entity,
        variables=variables,
        untrusted=tuple(sorted(variable.name for variable in remediation.variables if variable.untrusted)),
        changes=_changes(remediation, variables, read),
        verification=remediation.verification,
        timeout_s=remediation.timeout_s,
        mode=min(remediation.mode, ceiling, key=_MODES.index),
        impact=remediation.impact,
        reversible=remediation.reversible,
        rollback_triggers=remediation.rollback_triggers,
        baseline=measure(remediation, companions(episode), baseline),
        created_s=now_s,
        hash="",
        risk=" ".join(remediation.risk_notes.split()),
        grounds=f"window={episode.last.window} clauses={digest_of(encode(episode.last.clauses))}",
    )
    return replace(drawn, hash=digest(drawn))


def digest(drawn: Plan) -> str:
    """Return the sha256 over everything of a plan that decides what happens, as canonical JSON.

    Two plans with one hash do the same to the same entity: the time and the measurements are left out.
    """
    body = {name: value for name, value in encode(drawn).items() if name not in _NOT_HASHED}
    return digest_of(body)


def digest_of(value: Any) -> str:
    """Return the sha256 of a plain value as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return sha256(text.encode()).hexdigest()


def needs_change(drawn: Plan, *, dry_run_changes: int | None = None) -> bool:
    """Tell whether there is anything to do.

    Args:
        dry_run_changes: tasks that the dry run would change. It knows more than the settings do (a playbook may also
            move or collapse memory); None before a dry run, when only the settings are compared.
    """
    if dry_run_changes is not None:
        return dry_run_changes > 0
    wanted = [change for change in drawn.changes if change.after is not None]
    if not wanted:
        return True  # only the playbook knows
    return any(
        change.before is None or not equal(change.address, change.before, change.after or "") for change in wanted
    )


def drifted(drawn: Plan, read: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the addresses whose content is no longer what the plan says: a plan with any is stale, draw a new one.

    A state that is only looked at (how memory lies) moves by itself and makes no plan stale.
    """
    return tuple(
        change.address
        for change in drawn.changes
        if not observed(change.address) and not _as_planned(change, read(change.address))
    )


def _as_planned(change: SettingChange, now: str | None) -> bool:
    if now is None or change.before is None:
        return now is change.before
    return equal(change.address, now, change.before)


def measure(
    remediation: Remediation, places: tuple[Entity, ...], value: Callable[[str, Entity], float | None]
) -> dict[str, float]:
    """Return the features that verification compares, as ``str(FeatureId)`` → value; absent ones are left out.

    A feature is taken of the nearest entity that has it: the episode's, one bound to it, the host.
    """
    found: dict[str, float] = {}
    rule = remediation.verification
    for name in dict.fromkeys(each.feature for each in (*rule.improve, *rule.must_not_worsen)):
        for entity in places:
            if (measured := value(name, entity)) is not None:
                found[str(FeatureId(name, entity))] = measured
                break
    return found


def _changes(
    remediation: Remediation, variables: Mapping[str, FactValue], read: Callable[[str], str | None]
) -> tuple[SettingChange, ...]:
    usable = _usable(remediation)
    values = {name: value for name, value in variables.items() if name in usable}
    changes: dict[str, SettingChange] = {}
    coupled: dict[str, SettingChange] = {}
    for wanted in remediation.settings:
        for bound in _elements(remediation, wanted, values):
            change = _change(wanted, bound, read)
            if (other := changes.get(change.address)) is not None and other.after != change.after:
                raise BadInputError(f"{remediation.name} wants two values for {change.address}")
            changes[change.address] = change
            for template in wanted.coupled:
                address = _address(template, bound)
                before = read(address)
                reason = "" if before is not None else "this host does not have it, or does not let it be read"
                coupled[address] = SettingChange(
                    address=address, before=before, after=None, coupled=True, reason=reason
                )
            for address in coupled_with(change.address):  # what its author need not know
                if address not in coupled and (before := read(address)) is not None:
                    coupled[address] = SettingChange(address=address, before=before, after=None, coupled=True)
    if remediation.settings and not changes:
        raise RefusedError(
            f"{remediation.name} has nothing to change here", hint="the list that it goes through is empty"
        )
    return (*changes.values(), *(change for address, change in coupled.items() if address not in changes))


def _usable(remediation: Remediation) -> frozenset[str]:
    """Return the variables that templates may use: none that a tenant wrote, no text without a pattern."""
    return frozenset(
        variable.name
        for variable in remediation.variables
        if not variable.untrusted and (variable.pattern or variable.type not in ("string", "list"))
    )


def _elements(
    remediation: Remediation, wanted: WantedSetting, values: Mapping[str, FactValue]
) -> Iterator[Mapping[str, FactValue]]:
    if not wanted.for_each:
        yield values
        return
    elements = values.get(wanted.for_each)
    if not isinstance(elements, tuple):
        raise BadInputError(
            f"{remediation.name} goes through {wanted.for_each}, which is no list that may be used in an address",
            hint="declare it under variables with type: list and a pattern",
        )
    for index, element in enumerate(elements[:MAX_ELEMENTS]):
        yield {**values, "item": element, "index": index}


def _address(template: str, values: Mapping[str, FactValue]) -> str:
    return str(parse_address(templates.render(template, values)))


def _change(wanted: WantedSetting, values: Mapping[str, FactValue], read: Callable[[str], str | None]) -> SettingChange:
    address = _address(wanted.address, values)
    after = None if wanted.value is None else templates.render(wanted.value, values).strip()
    if after is not None and (len(after) > MAX_VALUE or not after.isprintable()):
        raise BadInputError(f"the value for {address} is too long, or holds characters that cannot be printed")
    before = read(address)
    if observed(address):
        if after is not None:
            raise BadInputError(f"{address} is a state that is looked at, and takes no value", hint="leave value out")
        reason = "" if before is not None else "this host does not tell it"
        return SettingChange(address=address, before=before, after=None, reason=reason)
    if before is None:
        raise RefusedError(
            f"{address} cannot be read on this host", hint="what cannot be put back is not changed; see `unveil doctor`"
        )
    return SettingChange(address=address, before=before, after=after)
