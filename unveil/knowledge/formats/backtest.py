"""The formats beside recordings: RecordingLabels (what was so when) and BacktestExpectations (what has to be found)."""

from __future__ import annotations

from unveil.knowledge.formats.fragments import API_VERSION, NAME, TEXT, Schema, closed, described, duration
from unveil.records.subsystem import Subsystem

_SECONDS: Schema = {"type": "number", "minimum": 0}
_COUNT: Schema = {"type": "integer", "minimum": 0}


def recording_labels_schema() -> Schema:
    """Return the schema of kind RecordingLabels."""
    label: Schema = {
        "anyOf": [NAME, {"type": "array", "minItems": 1, "uniqueItems": True, "items": NAME}],
        "description": "healthy, or the fingerprints that shall fire; several when one fault shows as several.",
    }
    interval = closed(
        ("from",),
        {
            "from": described(_SECONDS, "Seconds after the recording began."),
            "to": described(_SECONDS, "Seconds after the recording began. Default: its end."),
            "label": label,
            "fault": described(NAME, "What was wrong; without a label no fingerprint has to fire."),
            "subsystem": {
                "enum": [subsystem.value for subsystem in Subsystem],
                "description": "Where the fault is. Default: the fingerprint's.",
            },
            "note": described(TEXT, "How that is known."),
        },
    )
    interval["anyOf"] = [{"required": [key]} for key in ("label", "fault")]
    return closed(
        ("apiVersion", "kind", "intervals"),
        {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": "RecordingLabels"},
            "hardware": described(TEXT, "What host it was."),
            "workload": described(TEXT, "What ran on it."),
            "intervals": {
                "type": "array", "minItems": 1, "items": interval,
                "description": "What was so when. Time that none of them covers is not judged.",
            },
        },
    )  # fmt: skip


def backtest_expectations_schema() -> Schema:
    """Return the schema of kind BacktestExpectations."""
    expectation = closed(
        ("fingerprint",),
        {
            "recording": described(TEXT, "Shell-style pattern over the names of recordings. Default: all together."),
            "fingerprint": described(NAME, "Whose fires are counted."),
            "at_least": described(_COUNT, "Least number of fires."),
            "at_most": described(_COUNT, "Most fires."),
            "exactly": described(_COUNT, "Number of fires."),
            "first_within": duration("Longest time from the start of each interval with its label to the first fire."),
        },
    )
    expectation["anyOf"] = [{"required": [key]} for key in ("at_least", "at_most", "exactly", "first_within")]
    return closed(
        ("apiVersion", "kind", "expectations"),
        {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": "BacktestExpectations"},
            "expectations": {
                "type": "array", "minItems": 1, "items": expectation, "description": "Each has to hold.",
            },
        },
    )  # fmt: skip
