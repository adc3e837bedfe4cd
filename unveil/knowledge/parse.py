"""Validated mappings → records. What the schema admitted is taken as it is; nothing is judged here.

A *revision* is the digest of everything that changes evaluation (a fingerprint) or what would be done (a
remediation, its playbook and our Ansible modules included); prose is left out, so that a reworded description closes
no episode and voids no approval.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from unveil.knowledge.catalogues import catalogues
from unveil.records.codec import encode
from unveil.records.correlation import Correlation
from unveil.records.digest import sha256
from unveil.records.entity import EntityKind
from unveil.records.fingerprint import Clause, FactClause, FeatureClause, Fingerprint, ShareClause
from unveil.records.remediation import (
    Improvement,
    Limits,
    Mode,
    Remediation,
    Variable,
    VerificationRule,
    WantedSetting,
)
from unveil.records.site import Filter, Freeze, Profile, Profiles, Role
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unveil.records.fact import FactValue

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_OPERATORS = ("lt", "lte", "gt", "gte", "eq", "neq", "in", "not_in")
_DAY_S = 86400.0

# Fields that are told, not evaluated.
_PROSE = frozenset(
    ("id", "title", "description", "author", "owner", "date", "references", "falsepositives", "fields", "tags", "path",
     "level", "metadata", "revision", "risk_notes", "playbook")
)  # fmt: skip


def duration_s(text: str) -> float:
    """Return the seconds of a duration such as ``6s``, ``250ms``, ``15m``, ``24h`` or ``7d``.

    Raises:
        ValueError: it is none.
    """
    digits = text.rstrip("mshd")
    unit = text[len(digits) :]
    if not digits.isascii() or not digits.isdigit() or unit not in _UNITS_S:
        raise ValueError(f"{text!r} is not a duration")
    return int(digits) * _UNITS_S[unit]


def fact_value(value: Any) -> FactValue:
    """Return a value of YAML as a fact has it: lists become tuples of text."""
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return value  # type: ignore[no-any-return]  # text, number or boolean: the schema says so


def parse_fingerprint(data: Mapping[str, Any], path: str) -> Fingerprint:
    """Return the fingerprint of a validated mapping.

    Args:
        path: where it came from, ``fingerprints/SUBSYSTEM/NAME.yml``: the folder is its subsystem.
    """
    signature = data["signature"]
    group_by = EntityKind(data["group_by"])
    parsed = Fingerprint(
        name=data["name"],
        id=data["id"],
        title=data["title"],
        status=data["status"],
        level=data["level"],
        description=data["description"].strip(),
        group_by=group_by,
        clauses=tuple(parse_clause(name, clause, group_by) for name, clause in signature["clauses"].items()),
        condition=signature["condition"],
        hold_s=duration_s(signature["for"]),
        keep_firing_s=duration_s(signature.get("keep_firing_for", "15s")),
        subsystem=Subsystem(path.split("/")[1]),
        tags=tuple(data.get("tags", ())),
        references=tuple(data.get("references", ())),
        falsepositives=tuple(data["falsepositives"]),
        fields=tuple(data.get("fields", ())),
        remediations=tuple(data.get("remediations", ())),
        owner=data.get("owner", ""),
        author=data.get("author", ""),
        date=data["date"],
        path=path,
        metadata=data.get("metadata"),
    )
    return replace(parsed, revision=revision(parsed))


def parse_clause(name: str, data: Mapping[str, Any], group_by: EntityKind) -> Clause:
    """Return a clause. One that names no entity is about that of *group_by* where it has the feature, else the host."""
    optional, note = data.get("optional", False), data.get("note", "")
    if "share" in data:
        operator = next(key for key in _OPERATORS if key in data)
        return ShareClause(
            name=name, subsystem=Subsystem(data["share"]), operator=operator, threshold=float(data[operator]),
            optional=optional, note=note,
        )  # fmt: skip
    entity = clause_entity(data, group_by)
    if "fact" in data:
        operator = next(key for key in _OPERATORS if key in data)
        return FactClause(
            name=name, fact=data["fact"], entity=entity, operator=operator, operand=fact_value(data[operator]),
            optional=optional, note=note,
        )  # fmt: skip
    unit = "ratio" if "by_ratio" in data else "sigma"
    operator = data["deviates"] if "deviates" in data else next(key for key in _OPERATORS if key in data)
    threshold = data[f"by_{unit}"] if "deviates" in data else data[operator]
    per = data.get("per", "")
    return FeatureClause(
        name=name, feature=data["feature"], entity=entity, operator=operator, threshold=float(threshold),
        optional=optional, note=note, per=per, per_entity=_divisor(per, entity or group_by),
        slope_s=duration_s(data["slope_over"]) if "slope_over" in data else 0.0,
        against=data.get("against", "past"), unit=unit,
    )  # fmt: skip


def _divisor(per: str, kind: EntityKind) -> EntityKind | None:
    """Return whose feature a ratio divides by: None for the clause's own entity where that has it, else the host's."""
    if not per or kind is EntityKind.HOST or catalogues().kind_of("feature", per) is kind:
        return None
    return EntityKind.HOST


def clause_entity(data: Mapping[str, Any], group_by: EntityKind) -> EntityKind | None:
    """Return what a clause is about: None for the entity of *group_by*, else another kind."""
    if "entity" in data:
        written = EntityKind(data["entity"])
        return None if written is group_by else written
    what = "fact" if "fact" in data else "feature"
    has = catalogues().kind_of(what, data[what])
    return None if has is group_by or group_by is EntityKind.HOST else EntityKind.HOST


def parse_correlation(data: Mapping[str, Any], path: str) -> Correlation:
    """Return the correlation of a validated mapping.

    Args:
        path: where it came from, ``fingerprints/correlations/NAME.yml``.
    """
    rule = data["correlation"]
    parsed = Correlation(
        name=data["name"],
        id=data["id"],
        title=data["title"],
        status=data["status"],
        level=data["level"],
        description=data["description"].strip(),
        type=rule["type"],
        fingerprints=tuple(rule["fingerprints"]),
        group_by=EntityKind(rule.get("group_by", "host")),
        timespan_s=duration_s(rule["timespan"]),
        hold_s=duration_s(rule.get("for", "0s")),
        keep_firing_s=duration_s(rule.get("keep_firing_for", "15s")),
        count_of=rule.get("field", "entity"),
        at_least=rule.get("condition", {"gte": 1})["gte"],
        effect=data.get("effect", "report"),
        tags=tuple(data.get("tags", ())),
        references=tuple(data.get("references", ())),
        falsepositives=tuple(data["falsepositives"]),
        owner=data.get("owner", ""),
        author=data.get("author", ""),
        date=data["date"],
        path=path,
    )
    return replace(parsed, revision=revision(parsed))


def parse_remediation(data: Mapping[str, Any], path: str, *, playbook: str, files: Mapping[str, str]) -> Remediation:
    """Return the remediation of a validated mapping.

    Args:
        path: where it came from, ``playbooks/NAME/remediation.yml``.
        playbook: path of its playbook, for whoever runs it.
        files: digests of everything that runs with it, by path: they are part of its revision.
    """
    risk, limits, verify = data["risk"], data["limits"], data["verify"]
    parsed = Remediation(
        name=data["name"],
        id=data["id"],
        title=data["title"],
        status=data["status"],
        description=data["description"].strip(),
        remediates=tuple(data["remediates"]),
        playbook=playbook,
        timeout_s=duration_s(data["ansible"]["timeout"]),
        variables=tuple(_variable(name, each) for name, each in data.get("variables", {}).items()),
        settings=tuple(_setting(each) for each in data["settings"]),
        mode=Mode(data["mode"]),
        impact=risk["impact"],
        reversible=risk["reversible"],
        interrupts_workload=risk["interrupts_workload"],
        requires_reboot=risk["requires_reboot"],
        preconditions=tuple(data.get("preconditions", ("still_matching", "no_silence"))),
        limits=Limits(
            cooldown_s=duration_s(limits["cooldown"]),
            max_attempts=limits["max_attempts"],
            attempts_within_s=duration_s(limits["within"]),
            max_hosts=limits.get("max_hosts"),
        ),
        verification=VerificationRule(
            within_s=duration_s(verify["within"]),
            settings_hold_s=duration_s(verify.get("settings_hold_for", "3s")),
            clear_s=duration_s(verify.get("fingerprint_clear_for", "6s")),
            improve=_improvements(verify.get("improve", ())),
            must_not_worsen=_improvements(verify.get("must_not_worsen", ())),
        ),
        rollback_triggers=tuple(data["rollback"]["triggers"]),
        rollback_available_s=duration_s(data["rollback"].get("available_for", "24h")),
        approval_expires_s=duration_s(data.get("approval", {}).get("expires", "30m")),
        owner=data.get("owner", ""),
        risk_notes=risk.get("notes", ""),
        author=data.get("author", ""),
        date=data["date"],
        tags=tuple(data.get("tags", ())),
        references=tuple(data.get("references", ())),
        path=path,
    )
    return replace(parsed, revision=revision(parsed, files))


def _variable(name: str, data: Mapping[str, Any]) -> Variable:
    return Variable(
        name=name,
        type=data["type"],
        origin=data.get("from", ""),
        default=fact_value(data["default"]) if "default" in data else None,
        pattern=data.get("pattern", ""),
        minimum=float(data["min"]) if "min" in data else None,
        maximum=float(data["max"]) if "max" in data else None,
        max_length=data.get("max_length", 4096),
        untrusted=data.get("untrusted", False),
        description=data.get("description", ""),
    )


def _setting(data: Mapping[str, Any]) -> WantedSetting:
    value = data.get("value")
    return WantedSetting(
        address=data["address"],
        value=None if value is None else str(value),
        for_each=data.get("for_each", ""),
        coupled=tuple(data.get("coupled", ())),
    )


def _improvements(entries: Iterable[Mapping[str, Any]]) -> tuple[Improvement, ...]:
    return tuple(
        Improvement(
            feature=each["feature"],
            direction=each["direction"],
            effect=float(each["effect"]),
            optional=each.get("optional", False),
            after_s=duration_s(each.get("after", "0s")),
        )
        for each in entries
    )


def parse_filter(data: Mapping[str, Any], path: str) -> Filter:
    """Return the filter of a validated mapping. A day that no calendar has (30 February) is a ValueError."""
    where = data.get("match", {})
    return Filter(
        name=data["name"],
        id=data["id"],
        title=data["title"],
        owner=data["owner"],
        reason=data["reason"],
        fingerprints=tuple(data["fingerprints"]),
        expires=data["expires"],
        expires_s=day_s(data["expires"]) + _DAY_S,
        hosts=tuple(where.get("hosts", ("*",))),
        entities=tuple(where.get("entities", ("*",))),
        effect=data.get("effect", "no_remediation"),
        path=path,
    )


def day_s(text: str) -> float:
    """Return the start of a day (``2027-03-31``, UTC) in seconds since the epoch.

    Raises:
        ValueError: there is no such day.
    """
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()


def parse_site_values(data: Mapping[str, Any]) -> dict[str, FactValue]:
    """Return the values of a site by name."""
    return {name: fact_value(value) for name, value in data["values"].items()}


def parse_profiles(data: Mapping[str, Any]) -> Profiles:
    """Return the profiles of a validated mapping. A day that no calendar has is a ValueError."""
    return Profiles(
        default=Mode(data["default"]),
        profiles=tuple(
            Profile(
                name=each["name"],
                mode=Mode(each["mode"]),
                hosts=tuple(each.get("hosts", ())),
                groups=tuple(each.get("groups", ())),
                remediations={name: Mode(mode) for name, mode in each.get("remediations", {}).items()},
            )
            for each in data.get("profiles", ())
        ),
        maintenance=tuple(data.get("maintenance", ())),
        freezes=tuple(
            Freeze(
                first=each["first"],
                last=each["last"],
                from_s=day_s(each["first"]),
                until_s=day_s(each["last"]) + _DAY_S,
                reason=each["reason"],
            )
            for each in data.get("freezes", ())
        ),
        roles=tuple(
            Role(
                name=each["name"],
                users=tuple(str(user) for user in each.get("users", ())),
                groups=tuple(each.get("groups", ())),
            )
            for each in data.get("roles", ())
        ),
        approvals=dict(data.get("approvals", {})),
    )


def revision(record: Fingerprint | Correlation | Remediation, files: Mapping[str, str] | None = None) -> str:
    """Return 16 hex digits over what a record evaluates or does, and over the files that run with it."""
    told = encode(record)
    acted = {name: value for name, value in told.items() if name not in _PROSE}
    text = json.dumps([acted, sorted((files or {}).items())], sort_keys=True, ensure_ascii=True)
    return sha256(text.encode()).hexdigest()[:16]
