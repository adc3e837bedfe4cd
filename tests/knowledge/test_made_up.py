"""Made-up entities stand for real ones: fixes that cases plan take their names."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from unveil.knowledge.made_up import MADE_UP, CaseResult
from unveil.records.entity import EntityKind, parse_entity

ROOT = Path(__file__).parents[2]


def test_there_is_one_of_each_kind_and_it_can_be_written_in_a_case() -> None:
    assert set(MADE_UP) == set(EntityKind)
    for kind, entity in MADE_UP.items():
        assert parse_entity(str(entity)) == entity
        assert entity.kind is kind


def test_every_shipped_fix_takes_the_made_up_name_of_what_it_is_about() -> None:
    taken = 0
    for file in (ROOT / "playbooks").glob("*/remediation.yml"):
        variables = yaml.load(file.read_text(), yaml.CSafeLoader).get("variables", {})
        for variable in variables.values():
            kind = variable["from"].removeprefix("match.")
            if kind in set(EntityKind) and "pattern" in variable:
                assert re.search(variable["pattern"], MADE_UP[EntityKind(kind)].key), (file, variable)
                taken += 1
    assert taken > 5


def test_a_case_passed_when_nothing_failed() -> None:
    told = CaseResult(fingerprint="f", name="n", file="f.test.yml", line=4, expected="match", got="match")
    assert told.passed
    failed = CaseResult(
        fingerprint="f", name="n", file="f.test.yml", line=4, expected="match", got="match", failures=("the plan",)
    )
    assert not failed.passed
