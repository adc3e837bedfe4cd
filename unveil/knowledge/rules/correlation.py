"""Checks of one correlation, and of one file of its cases, that have the right form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.knowledge.checks import finding
from unveil.knowledge.parse import duration_s
from unveil.knowledge.rules.metadata import check_metadata
from unveil.records.entity import is_entity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.knowledge.yaml_positions import Document
    from unveil.records.problem import Problem

FOLDER = "correlations"


def check_correlation(document: Document, relative: str) -> Iterator[Problem]:
    """Yield what is wrong with a correlation that the schema admits."""
    data, rule = document.data, document.data["correlation"]
    stem = relative.rpartition("/")[2].removesuffix(".yml")
    if data["name"] != stem:
        yield finding("K103", document, ("name",), f"name {data['name']!r} differs from the file's stem {stem!r}")
    counts = rule["type"] in ("value_count", "event_count")
    if counts and "condition" not in rule:
        yield finding("K221", document, ("correlation",), f"{rule['type']} needs a condition", "condition: {gte: 3}")
    if not counts and "condition" in rule:
        what = f"{rule['type']} has no condition: all of its fingerprints must fire"
        yield finding("K221", document, ("correlation", "condition"), what, on_key=True)
    if not counts and len(rule["fingerprints"]) < 2:
        what = f"{rule['type']} is about at least two fingerprints"
        yield finding("K221", document, ("correlation", "fingerprints"), what, "for one, count: event_count")
    if rule["type"] != "value_count" and "field" in rule:
        yield finding("K221", document, ("correlation", "field"), "only value_count has a field", on_key=True)
    if rule.get("field") == "fingerprint" and rule["condition"]["gte"] > len(rule["fingerprints"]):
        what = f"there are only {len(rule['fingerprints'])} fingerprints here"
        yield finding("K221", document, ("correlation", "condition", "gte"), what)
    if duration_s(rule["timespan"]) <= 0:
        yield finding("K221", document, ("correlation", "timespan"), "in no time nothing comes together")
    yield from check_metadata(document)


def check_correlation_tests(document: Document, relative: str) -> Iterator[Problem]:
    """Yield what is wrong with the cases of a correlation that the schema admits."""
    stem = relative.rpartition("/")[2].removesuffix(".test.yml")
    name = document.data["correlation"]
    if name != stem:
        yield finding("K103", document, ("correlation",), f"correlation {name!r} differs from the file's {stem!r}")
    for index, case in enumerate(document.data["cases"]):
        if "entity" in case and not is_entity(case["entity"]):
            yield finding("K005", document, ("cases", index, "entity"), f"{case['entity']!r} is no entity")
        for number, episode in enumerate(case["episodes"]):
            if "entity" in episode and not is_entity(episode["entity"]):
                path = ("cases", index, "episodes", number, "entity")
                yield finding("K005", document, path, f"{episode['entity']!r} is no entity", "e.g. gpu:GPU-1")
