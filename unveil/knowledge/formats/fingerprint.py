"""The formats Fingerprint and FingerprintTest."""

from __future__ import annotations

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
_FACT_VALUE: Schema = {
    "anyOf": [{"type": ["string", "number", "boolean"]}, {"type": "array", "items": {"type": "string"}}],
}
_CLAUSE_NAME = r"^(?!(and|or|not|of|all|any)$)[a-z][a-z0-9_]*$"
_OPTIONAL: Schema = {
    "type": "boolean", "default": False, "description": "When what it asks for is absent: false instead of unknown.",
}  # fmt: skip
_NOTE: Schema = described(TEXT, "Why this clause is here; shown beside it.")
_ENTITY: Schema = choice(
    ENTITY_KINDS, "Whose feature or fact: the kind of group_by, or host. Default: that of group_by where it has one."
)
_MEANING = {
    "lt": "Below.", "lte": "At most.", "gt": "Above.", "gte": "At least.", "eq": "Equal.", "neq": "Not equal.",
    "in": "One of these.", "not_in": "None of these.",
}  # fmt: skip
_NAME_WITH_ENTITY = r"^[a-z]+\.[a-z0-9_.]+\[[a-z]+(:.+)?\]$"


def _feature_clause(feature: Schema) -> Schema:
    operators = {name: described(_NUMBER, _MEANING[name]) for name in NUMERIC}
    against = {
        "deviates": choice(("up", "down"), "Which way it leaves what this host's own recent past makes expected."),
        "by_sigma": {
            "type": "number", "exclusiveMinimum": 0, "maximum": 100,
            "description": "By how many robust standard deviations.",
        },
    }  # fmt: skip
    schema = closed(
        ("feature",),
        {"feature": feature, **operators, **against, "entity": _ENTITY, "optional": _OPTIONAL, "note": _NOTE},
        "A test on a feature: against a number, or against this host's own reference.",
    )
    schema["oneOf"] = [*({"required": [name]} for name in NUMERIC), {"required": ["deviates", "by_sigma"]}]
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


def fingerprint_test_schema(feature: Schema, fact: Schema) -> Schema:
    """Return the schema of kind FingerprintTest."""
    # Names may carry an entity: network.rx_bytes.rate[host], cpu.governor[cpu:3].
    feature_key = _with_entity(feature)
    fact_key = _with_entity(fact)
    series: Schema = {
        "anyOf": [{"type": "string", "minLength": 1}, {"type": "number"}],
        "description": "Values per window: '0.4x10', '0+10x20', '_x3 1'. A lone number holds for ever.",
    }
    fact_value: Schema = {
        "anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"type": "string"}},
            closed(
                ("value",),
                {
                    "value": {"anyOf": [*_FACT_VALUE["anyOf"], {"type": "null"}]},
                    "setting": described(TEXT, "Address of the managed setting behind it."),
                },
            ),
        ],
        "description": "The fact's value; null where the host does not tell.",
    }
    reference = closed(("expected", "sigma"), {"expected": _NUMBER, "sigma": {"type": "number", "exclusiveMinimum": 0}})
    answers: Schema = {"enum": ["match", "no_match", "unknown"]}
    plan = closed(
        ("remediation",),
        {
            "remediation": described(NAME, "The fix that would be planned."),
            "variables": {"type": "object", "additionalProperties": _FACT_VALUE, "description": "Values it must get."},
            "settings": {
                "type": "object", "additionalProperties": {"type": ["string", "null"]},
                "description": "Every setting that would change, with its wanted content; no others may.",
            },
        },
        "What would be planned for the episode.",
    )  # fmt: skip
    case = closed(
        ("name", "expect", "at"),
        {
            "name": described(TEXT, "What the case shows, in words."),
            "expect": described(answers, "match: an episode fires at that time; unknown: there is no answer."),
            "at": duration("Time after the first window."),
            "entity": described(TEXT, "Entity to judge, e.g. cgroup:/pod1. Default: a made-up one of group_by."),
            "features": {"type": "object", "propertyNames": feature_key, "additionalProperties": series},
            "facts": {"type": "object", "propertyNames": fact_key, "additionalProperties": fact_value},
            "settings": {
                "type": "object", "additionalProperties": {"type": "string"},
                "description": "Content of managed settings before, by address.",
            },
            "site": {"type": "object", "propertyNames": {"pattern": r"^[a-z][a-z0-9_]*$"},
                     "additionalProperties": _FACT_VALUE, "description": "Site values, over those of the inventory."},
            "reference": {"type": "object", "propertyNames": feature_key, "additionalProperties": reference},
            "shares": {
                "type": "object", "propertyNames": {"enum": list(SUBSYSTEMS)},
                "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
            },
            "clauses": {
                "type": "object", "additionalProperties": answers,
                "description": "Answers of single clauses in the last window.",
            },
            "plan": plan,
        },
    )  # fmt: skip
    return closed(
        ("apiVersion", "kind", "fingerprint", "cases"),
        {
            "apiVersion": identity("", named_for="")["apiVersion"],
            "kind": {"const": "FingerprintTest"},
            "fingerprint": described(NAME, "Fingerprint under test; the file is NAME.test.yml beside it."),
            "interval": duration("Time between two windows.", default="1s"),
            "cases": {"type": "array", "minItems": 1, "items": case},
        },
    )


def _with_entity(names: Schema) -> Schema:
    """Return the schema of names that may carry an entity in brackets."""
    bare = {key: value for key, value in names.items() if key != "description"}
    return {"anyOf": [bare, {"type": "string", "pattern": _NAME_WITH_ENTITY}]}
