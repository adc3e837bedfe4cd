"""The format Fingerprint."""

from __future__ import annotations

from unveil.knowledge.formats.fragments import (
    LEVELS,
    TEXT,
    Schema,
    choice,
    closed,
    described,
    duration,
    identity,
    names,
    provenance,
)
from unveil.records.entity import EntityKind
from unveil.records.subsystem import Subsystem

ENTITY_KINDS = tuple(str(kind) for kind in EntityKind)
SUBSYSTEMS = tuple(str(subsystem) for subsystem in Subsystem)
NUMERIC = ("lt", "lte", "gt", "gte", "eq", "neq")
FACT_OPERATORS = (*NUMERIC, "in", "not_in")

_NUMBER: Schema = {"type": "number"}
_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
_CLAUSE_NAME = r"^(?!(and|or|not|of|all|any)$)[a-z][a-z0-9_]*$"
_OPTIONAL: Schema = {
    "type": "boolean", "default": False, "description": "When what it asks for is absent: false instead of unknown.",
}  # fmt: skip
_NOTE: Schema = described(TEXT, "Why this clause is here; shown beside it.")
_ENTITY: Schema = choice(
    ENTITY_KINDS, "Whose feature or fact: of group_by, of what belongs to it (node, nic, gpu, cgroup), or of the host."
)
_MEANING = {
    "lt": "Below.", "lte": "At most.", "gt": "Above.", "gte": "At least.", "eq": "Equal.", "neq": "Not equal.",
    "in": "One of these.", "not_in": "None of these.",
}  # fmt: skip


def _feature_clause(feature: Schema) -> Schema:
    operators = {name: described(_NUMBER, _MEANING[name]) for name in NUMERIC}
    measure = {
        "feature": feature,
        "per": described(feature, "Divide by this feature, of the same entity where it has one, else of the host."),
        "slope_over": duration("How much it rises per second, over this time of windows: at least 3s, at most 10m."),
    }
    against = {
        "deviates": choice(("up", "down"), "Which way it leaves what is expected."),
        "by_sigma": {
            "type": "number", "exclusiveMinimum": 0, "maximum": 100,
            "description": "By how many robust standard deviations.",
        },
        "by_ratio": {
            "type": "number", "exclusiveMinimum": 0, "maximum": 100,
            "description": "By what part of what is expected: 0.1 is a tenth.",
        },
        "against": choice(
            ("past", "peers"),
            "What is expected: this host's own recent past (the default), or the median of the others of its kind.",
        ),
    }  # fmt: skip
    schema = closed(
        ("feature",),
        {**measure, **operators, **against, "entity": _ENTITY, "optional": _OPTIONAL, "note": _NOTE},
        "A test on a feature: against a number, against this host's own past, or against the others of its kind.",
    )
    schema["oneOf"] = [
        *({"required": [name]} for name in NUMERIC),
        {"required": ["deviates", "by_sigma"]},
        {"required": ["deviates", "by_ratio"]},
    ]
    return schema


def _fact_clause(fact: Schema) -> Schema:
    operators: dict[str, Schema] = {name: described(_NUMBER, _MEANING[name]) for name in ("lt", "lte", "gt", "gte")}
    operators |= {name: described(_SCALAR, _MEANING[name]) for name in ("eq", "neq")}
    operators |= {
        name: {"type": "array", "minItems": 1, "items": {"type": "string"}, "description": _MEANING[name]}
        for name in ("in", "not_in")
    }
    schema = closed(
        ("fact",),
        {"fact": fact, **operators, "entity": _ENTITY, "optional": _OPTIONAL, "note": _NOTE},
        "A test on a slow state of the host: a setting, the topology.",
    )
    schema["oneOf"] = [{"required": [name]} for name in FACT_OPERATORS]
    return schema


def _share_clause() -> Schema:
    bound: Schema = {"type": "number", "minimum": 0, "maximum": 1}
    schema = closed(
        ("share",),
        {
            "share": choice(SUBSYSTEMS, "Subsystem whose share in the attribution of the window is bounded."),
            **{name: described(bound, _MEANING[name]) for name in ("lt", "lte", "gt", "gte")},
            "optional": _OPTIONAL,
            "note": _NOTE,
        },
        "A bound on a subsystem's share in the attribution.",
    )
    schema["oneOf"] = [{"required": [name]} for name in ("lt", "lte", "gt", "gte")]
    return schema


def fingerprint_schema(feature: Schema, fact: Schema) -> Schema:
    """Return the schema of kind Fingerprint; *feature* and *fact* say what names are."""
    signature = closed(
        ("clauses", "condition", "for"),
        {
            "clauses": {
                "type": "object", "minProperties": 1, "maxProperties": 64, "propertyNames": {"pattern": _CLAUSE_NAME},
                "additionalProperties": {"oneOf": [_feature_clause(feature), _fact_clause(fact), _share_clause()]},
                "description": "Named tests. Each has exactly one of feature, fact or share, and exactly one operator.",
            },
            "condition": described(
                TEXT, "How clauses combine: and, or, not, parentheses, '1 of gpu_*', 'all of gpu_*'."
            ),
            "for": duration("How long it must hold without a break before it fires."),
            "keep_firing_for": duration("How long an episode outlives its last matching window.", default="15s"),
        },
    )  # fmt: skip
    return closed(
        ("apiVersion", "kind", "name", "id", "title", "status", "level", "description", "date", "group_by",
         "signature", "falsepositives"),
        {
            **identity("Fingerprint", named_for="the file's stem"),
            **provenance(),
            "level": choice(LEVELS, "How much it costs when it is there."),
            "group_by": choice(ENTITY_KINDS, "What it is evaluated for: once for the host, or for each GPU, NIC, …"),
            "signature": signature,
            "falsepositives": {
                "type": "array", "items": {"type": "string", "minLength": 5},
                "description": "Benign situations that look the same; at least one.",
            },
            "fields": {
                "type": "array", "uniqueItems": True, "items": feature,
                "description": "Features to show beside an episode.",
            },
            "remediations": names("Fixes, in order of preference."),
            "metadata": {
                "type": "object", "additionalProperties": {"type": "string"},
                "description": "Anything a site wants to keep with it; not evaluated.",
            },
        },
    )  # fmt: skip
