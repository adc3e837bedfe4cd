"""A correlation, and its cases, that cannot be right are told so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.loading import load
from unveil.knowledge.mutation import mutate
from unveil.knowledge.testing import read_suite, run_suite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE = "fingerprints/correlations/capped_and_throttled.yml"
TEST = "fingerprints/correlations/capped_and_throttled.test.yml"

TEXT = """\
apiVersion: unveil/v1
kind: Correlation
name: capped_and_throttled
id: 4c1f2d3e-5a6b-4c7d-8e9f-0a1b2c3d4e5f
title: A quota and a power cap at once
status: test
level: low
description: Somebody bounds this host from two sides at once.
owner: platform
date: "2026-11-29"
correlation:
  type: temporal
  fingerprints: [quota_throttling, power_limit_low]
  timespan: 10s
  for: 2s
falsepositives: [A planned throttling of the whole host.]
"""

CASES = """\
apiVersion: unveil/v1
kind: CorrelationTest
correlation: capped_and_throttled
cases:
  - name: both
    expect: match
    at: 7s
    episodes: [{fingerprint: quota_throttling, from: 5s}, {fingerprint: power_limit_low, from: 5s}]
  - name: in the other order, and the hold is not over
    expect: no_match
    at: 6s
    episodes: [{fingerprint: quota_throttling, from: 5s}, {fingerprint: power_limit_low, from: 4s}]
  - name: in the other order, just in time
    expect: match
    at: 13s
    episodes: [{fingerprint: quota_throttling, from: 11s}, {fingerprint: power_limit_low, from: 1s, until: 3s}]
  - name: too far apart
    expect: no_match
    at: 15s
    episodes: [{fingerprint: quota_throttling, from: 12s}, {fingerprint: power_limit_low, from: 1s, until: 3s}]
  - name: one alone
    expect: no_match
    at: 9s
    episodes: [{fingerprint: quota_throttling}]
  - name: the other alone
    expect: no_match
    at: 9s
    episodes: [{fingerprint: power_limit_low}]
"""

MISTAKES = [
    (FILE, "type: temporal", "type: value_count", [
        "12:3: error K221: value_count needs a condition (condition: {gte: 3})",
    ]),
    (FILE, "timespan: 10s", "timespan: 10s\n  condition: {gte: 2}", [
        "15:3: error K221: temporal has no condition: all of its fingerprints must fire",
    ]),
    (FILE, "[quota_throttling, power_limit_low]", "[quota_throttling]", [
        "13:17: error K221: temporal is about at least two fingerprints (for one, count: event_count)",
    ]),
    (FILE, "timespan: 10s", "timespan: 10s\n  field: host", ["15:3: error K221: only value_count has a field"]),
    (FILE, "timespan: 10s", "timespan: 0s", ["14:13: error K221: in no time nothing comes together"]),
    (FILE, "power_limit_low]", "power_limit_lwo]", [
        "13:36: error K401: there is no fingerprint 'power_limit_lwo' (did you mean power_limit_low?)",
    ]),
    (FILE, "name: capped_and_throttled", "name: capped", [
        "3:7: error K103: name 'capped' differs from the file's stem 'capped_and_throttled'",
    ]),
    (FILE, "type: temporal", "type: temporary", [
        "12:9: error K005: 'temporary' is not known here (did you mean temporal?)",
    ]),
    (FILE, "falsepositives: [A planned throttling of the whole host.]", "falsepositives: [None.]", [
        "16:1: error K301: no false positives are named",
    ]),
    (TEST, "{fingerprint: power_limit_low}]", "{fingerprint: power_limit_low, entity: gpu}]", [
        "28:55: error K005: 'gpu' is no entity (e.g. gpu:GPU-1)",
    ]),
    (TEST, "correlation: capped_and_throttled", "correlation: capped_and", [
        "3:14: error K103: correlation 'capped_and' differs from the file's 'capped_and_throttled'",
        "3:14: error K401: there is no correlation 'capped_and' (did you mean capped_and_throttled?)",
    ]),
]  # fmt: skip


@pytest.fixture
def kb_of_three(kb: Path) -> Path:
    (kb / FILE).parent.mkdir()
    (kb / FILE).write_text(TEXT)
    (kb / TEST).write_text(CASES)
    return kb


def test_a_sound_one_is_loaded_tested_and_its_mutants_are_noticed(kb_of_three: Path) -> None:
    loaded = load(kb_of_three)
    assert loaded.knowledge is not None
    assert [each.name for each in loaded.knowledge.correlations] == ["capped_and_throttled"]
    suite, _ = read_suite(kb_of_three)
    assert suite is not None
    report = run_suite(suite, {"capped_and_throttled"})
    assert [case.passed for case in report.cases] == [True] * 6
    assert mutate(suite, suite.knowledge.correlations[0]).survivors == ()


@pytest.mark.parametrize(("file", "old", "new", "expected"), MISTAKES)
def test_a_correlation_that_cannot_be_meant_is_told(
    kb_of_three: Path,  # it is there for told
    told: Callable[[str, str, str], list[str]],
    file: str,
    old: str,
    new: str,
    expected: list[str],
) -> None:
    found = [line for line in told(file, old, new) if "K704" not in line and not line.startswith(TEST)]
    assert found == expected


def test_a_name_is_of_a_fingerprint_or_of_a_correlation(kb_of_three: Path) -> None:
    (kb_of_three / "fingerprints/correlations/quota_throttling.yml").write_text(
        TEXT.replace("capped_and_throttled", "quota_throttling").replace("0a1b2c3d4e5f", "0a1b2c3d4e5a")
    )
    assert "K102" in {problem.check for problem in load(kb_of_three).problems}
