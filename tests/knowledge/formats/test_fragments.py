"""The shared pieces of the formats admit what they say and nothing else."""

from __future__ import annotations

import uuid

import pytest
from jsonschema import Draft202012Validator

from unveil.knowledge.formats.fragments import closed, duration, identity, names


def admits(schema: dict[str, object], value: object) -> bool:
    return Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize("text", ["6s", "250ms", "15m", "24h", "7d", "0s"])
def test_durations(text: str) -> None:
    assert admits(duration("A while."), text)


@pytest.mark.parametrize("text", ["6", "6 s", "06s", "-6s", "1.5s", "6w", 6, None])
def test_no_durations(text: object) -> None:
    assert not admits(duration("A while."), text)


def test_an_id_is_a_random_uuid() -> None:
    schema = identity("X", named_for="x")["id"]
    assert admits(schema, str(uuid.uuid4()))
    assert not admits(schema, str(uuid.uuid1()))
    assert not admits(schema, str(uuid.uuid4()).upper())


def test_a_closed_mapping_takes_no_other_key() -> None:
    schema = closed(("a",), {"a": {"type": "number"}, "b": {}})
    assert admits(schema, {"a": 1, "b": 2})
    assert not admits(schema, {"b": 2})
    assert not admits(schema, {"a": 1, "c": 2})


def test_names_stand_once() -> None:
    assert admits(names("Names."), ["one", "two_2"])
    assert not admits(names("Names."), ["one", "one"])
    assert not admits(names("Names."), ["One"])
