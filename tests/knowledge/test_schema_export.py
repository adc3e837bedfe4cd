"""The schemas for editors are up to date, valid, and agree with the loader."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from unveil.features.catalogue import FEATURES
from unveil.knowledge.content import SCHEMAS, shipped_root
from unveil.knowledge.schema_export import FILE_NAMES, KINDS, editor_schemas, render, schemas, write_schemas
from unveil.knowledge.yaml_positions import read_yaml
from unveil.records.fact_catalogue import FACTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.parametrize("kind", KINDS)
def test_the_committed_schema_is_what_the_code_makes(kind: str) -> None:
    committed = (shipped_root() / SCHEMAS / FILE_NAMES[kind]).read_text(encoding="utf-8")
    assert committed == render(editor_schemas()[kind]), "run `unveil kb schema`"


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_one(kind: str) -> None:
    Draft202012Validator.check_schema(editor_schemas()[kind])
    Draft202012Validator.check_schema(schemas()[kind])


def test_an_editor_completes_every_feature_and_fact() -> None:
    definitions = editor_schemas()["Fingerprint"]["$defs"]
    assert definitions["feature"]["enum"] == sorted(FEATURES)
    assert definitions["fact"]["enum"] == sorted(FACTS)


def _properties(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, dict):
        for name, each in schema.get("properties", {}).items():
            yield name, each
        for each in schema.values():
            yield from _properties(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _properties(each)


def test_every_mapping_is_closed() -> None:
    def open_ones(schema: Any) -> Iterator[Any]:
        if isinstance(schema, dict):
            if "properties" in schema and schema.get("type") == "object" and "additionalProperties" not in schema:
                yield schema
            for each in schema.values():
                yield from open_ones(each)
        elif isinstance(schema, list):
            for each in schema:
                yield from open_ones(each)

    assert not list(open_ones(schemas()))


@pytest.mark.parametrize("kind", KINDS)
def test_top_level_keys_explain_themselves_in_an_editor(kind: str) -> None:
    silent = [
        name for name, each in schemas()[kind]["properties"].items()
        if not each.get("description") and each.get("type") != "object" and "const" not in each
        and each.get("type") != "array"
    ]  # fmt: skip
    assert not silent


def test_no_key_is_named_as_yaml_1_1_names_true_and_false() -> None:
    names = {name.lower() for schema in schemas().values() for name, _ in _properties(schema)}
    assert not names & {"on", "off", "yes", "no", "y", "n"}


def test_what_the_loader_takes_the_editor_s_schema_takes_too(kb: Path) -> None:
    judges = {kind: Draft202012Validator(schema) for kind, schema in editor_schemas().items()}
    for path in [*kb.rglob("*.yml")]:
        if path.name != "apply.yml":
            data = read_yaml(str(path), path.read_bytes()).data
            assert not list(judges[data["kind"]].iter_errors(data)), path


def test_an_editor_is_told_that_auto_needs_safeguards(kb: Path) -> None:
    path = kb / "playbooks/raise_quota/remediation.yml"
    data = read_yaml("x", path.read_bytes()).data
    data["risk"]["interrupts_workload"] = True
    assert list(Draft202012Validator(editor_schemas()["Remediation"]).iter_errors(data))


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    assert len(write_schemas(tmp_path)) == len(KINDS)
    assert write_schemas(tmp_path) == ()
    assert json.loads((tmp_path / "filter.schema.json").read_text())["title"] == "unveil Filter"
