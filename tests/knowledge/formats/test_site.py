"""The formats of what a site owns."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from unveil.knowledge.schema_export import schemas

FRAME = {"apiVersion": "unveil/v1"}
FILTER = {
    **FRAME, "kind": "Filter", "name": "night_cap", "id": "3f0e7a8b-1c2d-4e5f-8a9b-0c1d2e3f4a5b",
    "title": "Planned power cap at night", "owner": "datacentre", "reason": "See change 4711.",
    "fingerprints": ["power_limit_low"], "expires": "2999-03-31",
}  # fmt: skip


def admits(kind: str, value: Any) -> bool:
    return Draft202012Validator(schemas()[kind]).is_valid(value)


def test_a_filter_says_who_why_and_until_when() -> None:
    assert admits("Filter", FILTER)
    for key in ("owner", "reason", "expires", "fingerprints"):
        assert not admits("Filter", {name: value for name, value in FILTER.items() if name != key})


@pytest.mark.parametrize(
    "change", [{"expires": "soon"}, {"reason": "ok"}, {"effect": "hide"}, {"match": {"host": "x"}}]
)
def test_what_a_filter_is_not(change: dict[str, Any]) -> None:
    assert not admits("Filter", FILTER | change)


def test_site_values_are_scalars_and_lists_of_text() -> None:
    assert admits("SiteValues", {**FRAME, "kind": "SiteValues", "values": {"a": 1, "b": "x", "c": ["x"], "d": True}})
    assert not admits("SiteValues", {**FRAME, "kind": "SiteValues", "values": {"a": {"b": 1}}})
    assert not admits("SiteValues", {**FRAME, "kind": "SiteValues", "values": {"A": 1}})


def test_a_profile_names_hosts_or_groups() -> None:
    frame = {**FRAME, "kind": "Profiles", "default": "observe"}
    assert admits("Profiles", {**frame, "profiles": [{"name": "abc", "mode": "auto", "groups": ["gpu"]}]})
    assert not admits("Profiles", {**frame, "profiles": [{"name": "abc", "mode": "auto"}]})
    assert not admits("Profiles", {**FRAME, "kind": "Profiles"})
