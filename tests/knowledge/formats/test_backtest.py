"""What the formats beside recordings admit."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from unveil.knowledge.schema_export import schemas

HEAD: dict[str, Any] = {"apiVersion": "unveil/v1"}


def admits(kind: str, **body: Any) -> bool:
    return bool(Draft202012Validator(schemas()[kind]).is_valid({**HEAD, "kind": kind, **body}))


@pytest.mark.parametrize(
    ("interval", "admitted"),
    [
        ({"from": 0, "label": "healthy"}, True),
        ({"from": 1.5, "to": 3, "label": ["some_fault", "other_fault"], "note": "seen"}, True),
        ({"from": 0}, False),
        ({"from": "0s", "label": "healthy"}, False),
        ({"from": 0, "label": []}, False),
        ({"from": 0, "label": "healthy", "until": 3}, False),
    ],
)
def test_an_interval_has_a_start_and_a_label(interval: dict[str, Any], admitted: bool) -> None:
    assert admits("RecordingLabels", intervals=[interval]) is admitted


@pytest.mark.parametrize(
    ("expectation", "admitted"),
    [
        ({"fingerprint": "some_fault", "exactly": 0}, True),
        ({"fingerprint": "some_fault", "first_within": "15s", "recording": "*"}, True),
        ({"fingerprint": "some_fault"}, False),
        ({"at_least": 1}, False),
        ({"fingerprint": "some_fault", "at_least": 0.5}, False),
    ],
)
def test_an_expectation_is_about_a_fingerprint_and_expects_something(
    expectation: dict[str, Any], admitted: bool
) -> None:
    assert admits("BacktestExpectations", expectations=[expectation]) is admitted
