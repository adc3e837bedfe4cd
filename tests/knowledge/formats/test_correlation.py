"""The formats Correlation and CorrelationTest: what they are about, since when, and of how many."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from unveil.knowledge.schema_export import schemas

CORRELATION = Draft202012Validator(schemas()["Correlation"])
TEST = Draft202012Validator(schemas()["CorrelationTest"])
RULE = {"type": "value_count", "fingerprints": ["slow_gpu"], "timespan": "60s", "condition": {"gte": 2}}
FRAME = {
    "apiVersion": "unveil/v1", "kind": "Correlation", "name": "slow_together",
    "id": "4c1f2d3e-5a6b-4c7d-8e9f-0a1b2c3d4e5f", "title": "Several at once", "status": "test", "level": "low",
    "description": "Several of them at once have one cause.", "date": "2026-11-29", "correlation": RULE,
    "falsepositives": ["A planned cap of all of them."],
}  # fmt: skip
CASE = {"name": "two", "expect": "match", "at": "3s", "episodes": [{"fingerprint": "slow_gpu", "entity": "gpu:GPU-1"}]}


def cases(**more: Any) -> dict[str, Any]:
    frame = {"apiVersion": "unveil/v1", "kind": "CorrelationTest", "correlation": "slow_together"}
    return {**frame, "cases": [{**CASE, **more}]}


def test_a_whole_one_and_its_cases_are_admitted() -> None:
    assert CORRELATION.is_valid(FRAME)
    assert CORRELATION.is_valid({**FRAME, "effect": "no_remediation"})
    assert TEST.is_valid(cases())
    assert TEST.is_valid(cases(entity="node:0", episodes=[]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "temporary"}, {"fingerprints": []}, {"fingerprints": ["slow_gpu", "slow_gpu"]}, {"timespan": 60},
        {"condition": {"gte": 1}}, {"condition": {"lte": 2}}, {"field": "rack"}, {"group_by": "rack"}, {"for": "soon"},
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    assert not CORRELATION.is_valid({**FRAME, "correlation": {**RULE, **wrong}})


@pytest.mark.parametrize("lacking", sorted({*FRAME} - {"kind"}))
def test_nothing_that_a_reader_needs_is_left_out(lacking: str) -> None:
    assert not CORRELATION.is_valid({key: value for key, value in FRAME.items() if key != lacking})


@pytest.mark.parametrize(
    "wrong",
    [
        {"expect": "unknown"}, {"at": 3}, {"episodes": [{"entity": "gpu:GPU-1"}]},
        {"episodes": [{"fingerprint": "slow_gpu", "binds": {"rack": "1"}}]}, {"features": {}},
    ],
)  # fmt: skip
def test_a_case_is_about_episodes_and_has_an_answer(wrong: dict[str, Any]) -> None:
    assert not TEST.is_valid(cases(**wrong))
