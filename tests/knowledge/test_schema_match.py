"""The quick question whether a value has a form, against the validator that says why."""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from unveil.knowledge.content import shipped_root
from unveil.knowledge.schema_export import KINDS, editor_schemas, schemas
from unveil.knowledge.schema_match import compile_schema
from unveil.knowledge.yaml_positions import read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLES = {
    "Fingerprint": "fingerprints/memory/reduced_huge_page_coverage.yml",
    "FingerprintTest": "fingerprints/memory/reduced_huge_page_coverage.test.yml",
    "Correlation": "fingerprints/correlations/power_limit_on_several_gpus.yml",
    "CorrelationTest": "fingerprints/correlations/power_limit_on_several_gpus.test.yml",
    "Remediation": "playbooks/pin_nic_irqs_local/remediation.yml",
    "SiteValues": "inventory/values.yml",
    "Profiles": "inventory/profiles.yml",
}

scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 200), st.sampled_from([0.0, 1.0, 0.5, -1.0, 1e300]),
    st.sampled_from(["", "x", "6s", "host", "gpu", "up", "up down", "2026-11-29", "memory.dirty.mean", "unveil/v1"]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["gte", "fact", "x"]), inner)),
    max_leaves=4,
)


@cache
def example(kind: str) -> Any:
    path = shipped_root() / EXAMPLES[kind]
    return read_yaml(path.name, path.read_bytes()).data


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield from places(each, (*path, key))


def changed(draw: st.DrawFn, value: Any) -> Any:
    """Return a document with one thing replaced, removed, renamed or added."""
    value = copy.deepcopy(value)
    path = draw(st.sampled_from([each for each in places(value) if each]))
    inside = value
    for key in path[:-1]:
        inside = inside[key]
    match draw(st.sampled_from(["replace", "remove", "rename", "add"])):
        case "replace":
            inside[path[-1]] = draw(values)
        case "remove":
            del inside[path[-1]]
        case "rename" if isinstance(inside, dict):
            inside[draw(st.sampled_from(["gte", "feature", "fact", "per", "for", "zz"]))] = inside.pop(path[-1])
        case _ if isinstance(inside, list):
            inside.append(inside[path[-1]])
        case _:
            inside[draw(st.sampled_from(["gte", "feature", "optional", "by_ratio", "zz"]))] = draw(values)
    return value


@cache
def both(kind: str) -> tuple[Callable[[Any], bool], Callable[[Any], bool]]:
    """Return the quick question and the validator's."""
    schema = schemas()[kind]
    return compile_schema(schema), Draft202012Validator(schema).is_valid


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_both_agree_on_what_is_right_and_what_is_not(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(EXAMPLES)))
    document = data.draw(st.composite(changed)(example(kind)))
    quick, thorough = both(kind)
    assert quick(document) is thorough(document)


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_what_is_shipped_is_right(kind: str) -> None:
    assert compile_schema(schemas()[kind])(example(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_every_keyword_of_our_formats_is_known(kind: str) -> None:
    compile_schema(schemas()[kind])


def test_what_is_only_half_known_is_refused() -> None:
    with pytest.raises(ValueError, match="'if' is not known"):
        compile_schema(editor_schemas()["Remediation"])
    with pytest.raises(ValueError, match="'format' is not known"):
        compile_schema({"type": "string", "format": "uri"})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 1}, True), ({"enum": [0]}, False), ({"type": "integer"}, 2.0), ({"type": "integer"}, True),
        ({"type": "number"}, False), ({"minimum": 1}, True), ({"uniqueItems": True}, [1, True]),
        ({"uniqueItems": True}, [[1], [1]]), ({"uniqueItems": False}, [1, 1]), ({"minLength": 1}, []),
        ({"properties": {"a": {"type": "string"}}}, []), ({"propertyNames": {"pattern": "^a"}}, {"b": 1}),
        ({"additionalProperties": {"type": "null"}}, {"a": None}), ({"required": ["a"]}, "a"),
    ],
)  # fmt: skip
def test_corners_of_the_standard(schema: dict[str, Any], value: Any) -> None:
    assert compile_schema(schema)(value) is Draft202012Validator(schema).is_valid(value)
