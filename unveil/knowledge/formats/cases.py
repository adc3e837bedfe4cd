"""The format FingerprintTest: the cases beside a fingerprint."""

from __future__ import annotations

from unveil.knowledge.formats.fingerprint import SUBSYSTEMS
from unveil.knowledge.formats.fragments import NAME, TEXT, VALUE, Schema, closed, described, duration, identity
from unveil.knowledge.recorded_cases import RECORDING_PATTERN

_NUMBER: Schema = {"type": "number"}
_ANSWERS: Schema = {"enum": ["match", "no_match", "unknown"]}
_NAME_WITH_ENTITY = r"^[a-z]+\.[a-z0-9_.]+\[[a-z]+(:.+)?\]$"


def fingerprint_test_schema(feature: Schema, fact: Schema) -> Schema:
    """Return the schema of kind FingerprintTest; *feature* and *fact* say what names are."""
    return closed(
        ("apiVersion", "kind", "fingerprint", "cases"),
        {
            "apiVersion": identity("", named_for="")["apiVersion"],
            "kind": {"const": "FingerprintTest"},
            "fingerprint": described(NAME, "Fingerprint under test; the file is NAME.test.yml beside it."),
            "interval": duration("Time between two windows.", default="1s"),
            "cases": {"type": "array", "minItems": 1, "items": _case(_with_entity(feature), _with_entity(fact))},
        },
    )


def _case(feature: Schema, fact: Schema) -> Schema:
    reference = closed(("expected", "sigma"), {"expected": _NUMBER, "sigma": {"type": "number", "exclusiveMinimum": 0}})
    schema = closed(
        ("name", "expect"),
        {
            "name": described(TEXT, "What the case shows, in words."),
            "expect": described(_ANSWERS, "match: an episode fires at that time; unknown: there is no answer."),
            "at": duration("Time after the first window."),
            "recording": _recording(),
            "entity": described(TEXT, "Entity to judge, e.g. cgroup:/pod1. Default: a made-up one of group_by."),
            "features": {"type": "object", "propertyNames": feature, "additionalProperties": _series()},
            "facts": {"type": "object", "propertyNames": fact, "additionalProperties": _fact_value()},
            "settings": {
                "type": "object", "additionalProperties": {"type": "string"},
                "description": "Content of managed settings before, by address.",
            },
            "site": {
                "type": "object", "propertyNames": {"pattern": r"^[a-z][a-z0-9_]*$"}, "additionalProperties": VALUE,
                "description": "Site values, over those of the inventory.",
            },
            "reference": {"type": "object", "propertyNames": feature, "additionalProperties": reference},
            "shares": {
                "type": "object", "propertyNames": {"enum": list(SUBSYSTEMS)},
                "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
            },
            "clauses": {
                "type": "object", "additionalProperties": _ANSWERS,
                "description": "Answers of single clauses in the last window.",
            },
            "plan": _plan(),
        },
    )  # fmt: skip
    schema["oneOf"] = [{"required": ["at"]}, {"required": ["recording"]}]
    return schema


def _recording() -> Schema:
    seconds = {"type": "number", "minimum": 0}
    return closed(
        ("file", "from", "to"),
        {
            "file": {
                "type": "string", "pattern": RECORDING_PATTERN,
                "description": "Below recordings/ of the knowledge base; demo is the one that is shipped.",
            },
            "from": described(seconds, "Seconds after the recording began."),
            "to": described(seconds, "Seconds after the recording began."),
        },
        "Watched instead of series: what is expected has to be so in this stretch of it.",
    )  # fmt: skip


def _series() -> Schema:
    return {
        "anyOf": [{"type": "string", "minLength": 1}, {"type": "number"}],
        "description": "Values per window: '0.4x10', '0+10x20', '_x3 1'. A lone number holds for ever.",
    }


def _fact_value() -> Schema:
    with_setting = closed(
        ("value",),
        {
            "value": {"anyOf": [*VALUE["anyOf"], {"type": "null"}]},
            "setting": described(TEXT, "Address of the managed setting behind it."),
        },
    )
    return {
        "anyOf": [*VALUE["anyOf"], {"type": "null"}, with_setting],
        "description": "The fact's value; null where the host does not tell.",
    }


def _plan() -> Schema:
    return closed(
        ("remediation",),
        {
            "remediation": described(NAME, "The fix that would be planned."),
            "variables": {"type": "object", "additionalProperties": VALUE, "description": "Values it must get."},
            "settings": {
                "type": "object", "additionalProperties": {"type": ["string", "null"]},
                "description": "Every setting that would change, with its wanted content; no others may.",
            },
        },
        "What would be planned for the episode.",
    )  # fmt: skip


def _with_entity(names: Schema) -> Schema:
    """Return the schema of names that may carry an entity: cpu.idle.rate[host], cpu.governor[cpu:3]."""
    bare = {key: value for key, value in names.items() if key != "description"}
    return {"anyOf": [bare, {"type": "string", "pattern": _NAME_WITH_ENTITY}]}
