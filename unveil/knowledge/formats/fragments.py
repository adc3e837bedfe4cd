"""Pieces of JSON Schema that several kinds of document share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]

API_VERSION = "unveil/v1"
NAME_PATTERN = r"^[a-z][a-z0-9_]{2,62}$"
UUID4_PATTERN = r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
DURATION_PATTERN = r"^(0|[1-9][0-9]{0,8})(ms|s|m|h|d)$"
DATE_PATTERN = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
TAG_PATTERN = r"^(subsystem|cause|impact|vendor|platform|site)\.[a-z0-9_-]+$"
STATUSES = ("experimental", "test", "stable", "deprecated")
LEVELS = ("informational", "low", "medium", "high", "critical")

NAME: Schema = {"type": "string", "pattern": NAME_PATTERN}
TEXT: Schema = {"type": "string", "minLength": 1}
VALUE: Schema = {
    "anyOf": [{"type": ["string", "number", "boolean"]}, {"type": "array", "items": {"type": "string"}}],
}
GLOBS: Schema = {"type": "array", "minItems": 1, "items": TEXT}


def closed(required: tuple[str, ...], properties: Mapping[str, Schema], description: str = "") -> Schema:
    """Return the schema of a mapping that has these keys and no others."""
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    if description:
        schema["description"] = description
    return schema


def described(schema: Schema, description: str, **more: Any) -> Schema:
    """Return a schema with a description for the editor, and whatever else it needs."""
    return {**schema, "description": description, **more}


def choice(values: tuple[str, ...], description: str) -> Schema:
    """Return the schema of one of several texts."""
    return {"enum": list(values), "description": description}


def duration(description: str, **more: Any) -> Schema:
    """Return the schema of a duration such as ``6s``."""
    return {"type": "string", "pattern": DURATION_PATTERN, "description": f"{description} As 6s, 15m, 24h, 7d.",
            **more}  # fmt: skip


def names(description: str) -> Schema:
    """Return the schema of a list of names without repeats."""
    return {"type": "array", "uniqueItems": True, "items": NAME, "description": description}


def identity(kind: str, *, named_for: str) -> dict[str, Schema]:
    """Return the properties that every named object has."""
    return {
        "apiVersion": {"const": API_VERSION, "description": "Version of the format."},
        "kind": {"const": kind, "description": "What this file declares."},
        "name": described(NAME, f"Reference name, lower case with underscores. Equals {named_for}."),
        "id": {
            "type": "string", "pattern": UUID4_PATTERN,
            "description": "UUIDv4, for ever: it survives renames and is never used again.",
        },
        "title": {
            "type": "string", "minLength": 10, "maxLength": 110, "description": "One line for a person, no full stop.",
        },
    }  # fmt: skip


def provenance() -> dict[str, Schema]:
    """Return the properties that say where a fingerprint or remediation comes from."""
    return {
        "status": choice(STATUSES, "Maturity. Only stable may act by itself; deprecated still loads."),
        "description": {"type": "string", "minLength": 30, "description": "What is wrong, why it costs, how it shows."},
        "author": described(TEXT, "Who wrote it."),
        "owner": described(TEXT, "Team that answers for false alarms."),
        "date": {
            "type": "string", "pattern": DATE_PATTERN,
            "description": 'Day it was written, quoted: "2026-11-29".',
        },
        "references": {
            "type": "array", "uniqueItems": True, "items": {"type": "string", "pattern": "^https?://"},
            "description": "Where the mechanism is documented.",
        },
        "tags": {
            "type": "array", "uniqueItems": True,
            "items": {"type": "string", "pattern": TAG_PATTERN},
            "description": "Labels such as subsystem.cpu, cause.cfs_quota, impact.throughput.",
        },
    }  # fmt: skip
