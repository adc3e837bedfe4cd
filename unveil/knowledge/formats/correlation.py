"""The formats Correlation and CorrelationTest."""

from __future__ import annotations

from unveil.knowledge.formats.fingerprint import ENTITY_KINDS
from unveil.knowledge.formats.fragments import (
    LEVELS,
    NAME,
    TEXT,
    Schema,
    choice,
    closed,
    described,
    duration,
    identity,
    provenance,
)

TYPES = ("temporal", "temporal_ordered", "value_count", "event_count")
COUNTED = ("entity", "fingerprint", "host")
EFFECTS = ("report", "no_remediation")


def correlation_schema() -> Schema:
    """Return the schema of kind Correlation."""
    rule = closed(
        ("type", "fingerprints", "timespan"),
        {
            "type": choice(
                TYPES,
                "temporal: all of these fire; temporal_ordered: in this order; value_count: so many different "
                "entities, fingerprints or hosts; event_count: so many fires.",
            ),
            "fingerprints": {
                "type": "array", "minItems": 1, "uniqueItems": True, "items": NAME,
                "description": "Fingerprints whose episodes count.",
            },
            "group_by": {
                **choice(ENTITY_KINDS, "What the episodes have in common: their entity, or what belongs to it."),
                "default": "host",
            },
            "field": {**choice(COUNTED, "Of value_count: what is counted."), "default": "entity"},
            "timespan": duration("How long an episode counts after it last matched; while it fires, it counts."),
            "condition": closed(
                ("gte",), {"gte": {"type": "integer", "minimum": 2, "description": "At least so many."}},
                "Of the counts: how many.",
            ),
            "for": duration("How long it must hold before it fires.", default="0s"),
            "keep_firing_for": duration("How long its episode outlives the last window.", default="15s"),
        },
    )  # fmt: skip
    return closed(
        ("apiVersion", "kind", "name", "id", "title", "status", "level", "description", "date", "correlation",
         "falsepositives"),
        {
            **identity("Correlation", named_for="the file's stem"),
            **provenance(),
            "level": choice(LEVELS, "How much it costs when it is there."),
            "correlation": rule,
            "effect": {
                **choice(EFFECTS, "no_remediation: while it fires, nothing is done about the episodes it is made of."),
                "default": "report",
            },
            "falsepositives": {
                "type": "array", "items": {"type": "string", "minLength": 5},
                "description": "Benign situations that look the same; at least one.",
            },
        },
    )  # fmt: skip


def correlation_test_schema() -> Schema:
    """Return the schema of kind CorrelationTest: the cases beside a correlation."""
    episode = closed(
        ("fingerprint",),
        {
            "fingerprint": described(NAME, "Whose episode it is."),
            "entity": described(TEXT, "Entity it is about, e.g. gpu:GPU-1. Default: host."),
            "binds": {
                "type": "object", "propertyNames": {"enum": list(ENTITY_KINDS)}, "additionalProperties": TEXT,
                "description": "What its match binds, e.g. {node: \"0\"}.",
            },
            "host": described(TEXT, "Host it is on. Default: one and the same."),
            "from": duration("When it fires.", default="0s"),
            "until": duration("When it last matches. Default: it never ends."),
        },
    )  # fmt: skip
    case = closed(
        ("name", "expect", "at", "episodes"),
        {
            "name": described(TEXT, "What the case shows, in words."),
            "expect": choice(("match", "no_match"), "match: its episode fires at that time."),
            "at": duration("Time after the first window."),
            "entity": described(TEXT, "Entity to judge. Default: host, else a made-up one of group_by."),
            "episodes": {"type": "array", "items": episode, "description": "The episodes of fingerprints."},
        },
    )
    return closed(
        ("apiVersion", "kind", "correlation", "cases"),
        {
            "apiVersion": identity("", named_for="")["apiVersion"],
            "kind": {"const": "CorrelationTest"},
            "correlation": described(NAME, "Correlation under test; the file is NAME.test.yml beside it."),
            "cases": {"type": "array", "minItems": 1, "items": case},
        },
    )
