"""The format Fingerprint: each clause one subject and one operator."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from unveil.knowledge.schema_export import schemas

CLAUSES = schemas()["Fingerprint"]["properties"]["signature"]["properties"]["clauses"]
JUDGE = Draft202012Validator({"properties": {"clauses": CLAUSES}})


def admits(clause: Any, name: str = "x") -> bool:
    return JUDGE.is_valid({"clauses": {name: clause}})


@pytest.mark.parametrize(
    "clause",
    [
        {"feature": "cpu.busy.rate", "gte": 0.5},
        {"feature": "cpu.busy.rate", "deviates": "up", "by_sigma": 2},
        {"feature": "cpu.busy.rate", "lt": 1, "entity": "host", "optional": True, "note": "why"},
        {"fact": "memory.thp_enabled", "in": ["never"]},
        {"fact": "cpu.count", "neq": 4},
        {"share": "gpu", "lte": 0.4},
    ],
)
def test_clauses(clause: Any) -> None:
    assert admits(clause)


@pytest.mark.parametrize(
    "clause",
    [
        {"feature": "cpu.busy.rate"},
        {"feature": "cpu.busy.rate", "gte": 0.5, "lt": 1},
        {"feature": "cpu.busy.rate", "gte": 0.5, "deviates": "up", "by_sigma": 2},
        {"feature": "cpu.busy.rate", "deviates": "up"},
        {"feature": "cpu.busy.rate", "deviates": "either", "by_sigma": 2},
        {"feature": "cpu.busy.rate", "deviates": "up", "by_sigma": 0},
        {"feature": "cpu.busy.rate", "in": ["x"]},
        {"feature": "cpu.busy.rate", "fact": "cpu.count", "gte": 1},
        {"fact": "cpu.count", "in": []},
        {"share": "gpu", "lte": 40},
        {"share": "gpu", "eq": 0.5},
        {"gte": 1},
        {},
        [],
        None,
    ],
)
def test_no_clauses(clause: Any) -> None:
    assert not admits(clause)


@pytest.mark.parametrize("name", ["and", "or", "not", "of", "all", "any", "Busy", "1x", "a-b", ""])
def test_what_a_condition_could_not_name_is_no_name_of_a_clause(name: str) -> None:
    assert not admits({"share": "gpu", "gte": 0.5}, name)
