"""The JSON Schemas of all kinds of document: built here, written to `schemas/` by ``unveil kb schema``.

The loader judges by the plain schemas. Those that are written for editors carry more: the names of all features and
facts from the catalogues as enumerations, so that an editor completes them, and the rule about mode auto; the loader
has both as checks of its own, with better words (K203, K216, K501).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from unveil.knowledge.catalogues import catalogues
from unveil.knowledge.formats.backtest import backtest_expectations_schema, recording_labels_schema
from unveil.knowledge.formats.cases import fingerprint_test_schema
from unveil.knowledge.formats.correlation import correlation_schema, correlation_test_schema
from unveil.knowledge.formats.fingerprint import fingerprint_schema
from unveil.knowledge.formats.remediation import automatic_rule, remediation_schema
from unveil.knowledge.formats.site import filter_schema, profiles_schema, site_values_schema

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from unveil.knowledge.formats.fragments import Schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

FILE_NAMES = {
    "Fingerprint": "fingerprint.schema.json",
    "FingerprintTest": "fingerprint_test.schema.json",
    "Correlation": "correlation.schema.json",
    "CorrelationTest": "correlation_test.schema.json",
    "Remediation": "remediation.schema.json",
    "Filter": "filter.schema.json",
    "SiteValues": "site_values.schema.json",
    "Profiles": "profiles.schema.json",
    "RecordingLabels": "recording_labels.schema.json",
    "BacktestExpectations": "backtest_expectations.schema.json",
}
KINDS = tuple(FILE_NAMES)

_FEATURE: Schema = {
    "type": "string",
    "pattern": r"^[a-z]+\.[a-z0-9_]+\.[a-z]+$",
    "description": "A feature: subsystem.metric.statistic.",
}
_FACT: Schema = {"type": "string", "pattern": r"^[a-z]+\.[a-z0-9_]+$", "description": "A fact: subsystem.name."}


def schemas(*, features: Iterable[str] | None = None, facts: Iterable[str] | None = None) -> dict[str, Schema]:
    """Return the schema of every kind.

    Args:
        features, facts: names for an editor to complete; None for the plain schemas that the loader judges by.
    """
    feature = _FEATURE if features is None else {"$ref": "#/$defs/feature"}
    fact = _FACT if facts is None else {"$ref": "#/$defs/fact"}
    built = {
        "Fingerprint": fingerprint_schema(feature, fact),
        "FingerprintTest": fingerprint_test_schema(feature, fact),
        "Correlation": correlation_schema(),
        "CorrelationTest": correlation_test_schema(),
        "Remediation": remediation_schema(feature),
        "Filter": filter_schema(),
        "SiteValues": site_values_schema(),
        "Profiles": profiles_schema(),
        "RecordingLabels": recording_labels_schema(),
        "BacktestExpectations": backtest_expectations_schema(),
    }
    definitions: dict[str, Schema] = {}
    if features is not None:
        definitions["feature"] = {"enum": sorted(features), "description": _FEATURE["description"]}
        built["Remediation"]["allOf"] = [automatic_rule()]
    if facts is not None:
        definitions["fact"] = {"enum": sorted(facts), "description": _FACT["description"]}
    return {kind: _finished(kind, schema, definitions) for kind, schema in built.items()}


def _finished(kind: str, schema: Schema, definitions: dict[str, Schema]) -> Schema:
    used = {name: value for name, value in definitions.items() if _mentions(schema, f"#/$defs/{name}")}
    head: Schema = {"$schema": DIALECT, "$id": f"urn:unveil:schema:v1:{kind}", "title": f"unveil {kind}"}
    return {**head, **schema, **({"$defs": used} if used else {})}


def _mentions(schema: Any, reference: str) -> bool:
    if isinstance(schema, dict):
        return schema.get("$ref") == reference or any(_mentions(value, reference) for value in schema.values())
    return isinstance(schema, list) and any(_mentions(value, reference) for value in schema)


def editor_schemas() -> dict[str, Schema]:
    """Return the schemas that are written for editors, with the names from the catalogues."""
    known = catalogues()
    return schemas(features=known.features, facts=known.facts)


def render(schema: Schema) -> str:
    """Return the text of a schema file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> tuple[Path, ...]:
    """Write every schema for editors into a folder, and return the files that changed."""
    changed = []
    for kind, schema in editor_schemas().items():
        path = folder / FILE_NAMES[kind]
        text = render(schema)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return tuple(changed)
