"""What a schema admits, a record holds: no key is dropped, no field is never filled."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.knowledge.loading import load
from unveil.knowledge.parse import day_s, duration_s, parse_clause
from unveil.knowledge.schema_export import schemas
from unveil.records.entity import EntityKind
from unveil.records.fingerprint import FactClause, FeatureClause, Fingerprint, ShareClause
from unveil.records.remediation import Improvement, Limits, Remediation, Variable, VerificationRule, WantedSetting
from unveil.records.site import Filter, Profile, Profiles

if TYPE_CHECKING:
    from pathlib import Path

# Fields that are not written by a person, or whose key has another name. Everything else has the same name in both.
COMPUTED = {"revision", "path", "subsystem", "expires_s"}
RENAMED = {
    "hold_s": "for", "keep_firing_s": "keep_firing_for", "playbook": "apply", "timeout_s": "timeout",
    "risk_notes": "notes", "verification": "verify", "rollback_triggers": "triggers",
    "rollback_available_s": "available_for", "approval_expires_s": "expires", "origin": "from", "minimum": "min",
    "maximum": "max", "within_s": "within", "settings_hold_s": "settings_hold_for", "clear_s": "fingerprint_clear_for",
    "cooldown_s": "cooldown", "attempts_within_s": "within", "after_s": "after",
}  # fmt: skip
FRAME = {"apiVersion", "kind"}


def leaves(schema: dict[str, Any], *, into: tuple[str, ...]) -> set[str]:
    """Return the keys of a schema; those that only hold other keys are replaced by them."""
    found: set[str] = set()
    for name, each in schema["properties"].items():
        found |= leaves(each, into=into) if name in into else {name}
    return found - FRAME


def fields(record: type[Any]) -> set[str]:
    names = {field.name for field in dataclasses.fields(record)} - COMPUTED
    return {RENAMED.get(name, name) for name in names}


def test_a_fingerprint_has_a_field_for_every_key() -> None:
    assert leaves(schemas()["Fingerprint"], into=("signature",)) == fields(Fingerprint)


def test_a_clause_has_a_field_for_every_key() -> None:
    clauses = schemas()["Fingerprint"]["properties"]["signature"]["properties"]["clauses"]
    operators = {"lt", "lte", "gt", "gte", "eq", "neq", "in", "not_in", "deviates", "by_sigma", "by_ratio"}
    for schema, record, bound in zip(
        clauses["additionalProperties"]["oneOf"], (FeatureClause, FactClause, ShareClause),
        ({"operator", "threshold", "unit", "per_entity"}, {"operator", "operand"}, {"operator", "threshold"}),
        strict=True,
    ):  # fmt: skip
        names = fields(record) - bound - {"name"}
        names = fields(record) - bound - {"name"} | ({"share"} if record is ShareClause else set())
        assert set(schema["properties"]) - operators == {"slope_over" if name == "slope_s" else name for name in names}


def test_a_remediation_has_a_field_for_every_key() -> None:
    schema = schemas()["Remediation"]
    assert leaves(schema, into=("ansible", "risk", "rollback", "approval")) == fields(Remediation)
    assert leaves(schema["properties"]["limits"], into=()) == fields(Limits)
    assert leaves(schema["properties"]["verify"], into=()) == fields(VerificationRule)
    assert set(schema["properties"]["settings"]["items"]["properties"]) == fields(WantedSetting)
    assert set(schema["properties"]["variables"]["additionalProperties"]["properties"]) == fields(Variable) - {"name"}
    improve = schema["properties"]["verify"]["properties"]["improve"]["items"]
    assert set(improve["properties"]) == fields(Improvement)


def test_what_a_site_owns_has_a_field_for_every_key() -> None:
    assert leaves(schemas()["Filter"], into=("match",)) == fields(Filter)
    assert leaves(schemas()["Profiles"], into=()) == fields(Profiles)
    assert set(schemas()["Profiles"]["properties"]["profiles"]["items"]["properties"]) == fields(Profile)


@pytest.mark.parametrize(
    ("text", "seconds"), [("250ms", 0.25), ("6s", 6), ("15m", 900), ("24h", 86_400), ("7d", 604_800), ("0s", 0)]
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "6", "s", "-1s", "1.5s", "6 s", "6S", "1h30m", "٣s", "5sm"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        duration_s(text)


@given(st.text(alphabet="0123456789mshd .-", max_size=8))
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert duration_s(text) >= 0


def test_a_day_begins_at_midnight_utc() -> None:
    assert day_s("1970-01-02") == 86_400
    with pytest.raises(ValueError, match="day is out of range"):
        day_s("2027-02-30")


def test_a_clause_without_an_entity_is_about_the_one_that_has_it() -> None:
    busy = parse_clause("busy", {"feature": "cpu.busy.rate", "gte": 0.5}, EntityKind.CGROUP)
    own = parse_clause("own", {"feature": "cpu.cgroup_usage.rate", "gte": 0.5}, EntityKind.CGROUP)
    written = parse_clause(
        "written", {"feature": "cpu.cgroup_usage.rate", "gte": 0.5, "entity": "cgroup"}, EntityKind.CGROUP
    )
    thp = parse_clause("thp", {"fact": "memory.thp_enabled", "in": ["never"]}, EntityKind.CGROUP)
    assert isinstance(busy, FeatureClause)
    assert isinstance(own, FeatureClause)
    assert isinstance(written, FeatureClause)
    assert isinstance(thp, FactClause)
    assert (busy.entity, own.entity, written.entity, thp.entity) == (EntityKind.HOST, None, None, EntityKind.HOST)
    assert thp.operand == ("never",)


def test_the_files_that_run_with_a_remediation_are_part_of_its_revision(kb: Path) -> None:
    def revision() -> str:
        base = load(kb).knowledge
        assert base is not None
        return base.remediations[0].revision

    first = revision()
    module = kb / "playbooks/modules/unveil_setting.py"
    module.write_text("# another\n")
    assert revision() != first
