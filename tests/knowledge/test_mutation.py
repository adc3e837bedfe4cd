"""Mutation: cases that would not notice a small mistake are told which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.knowledge.mutation import mutate, mutate_all
from unveil.knowledge.testing import read_suite

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.knowledge.mutation import MutationResult


def results(kb: Path) -> dict[str, MutationResult]:
    suite, problems = read_suite(kb)
    assert suite is not None, problems
    return {each.name: mutate(suite, each) for each in suite.fingerprints()}


def test_a_threshold_that_no_case_comes_near_survives_and_lowers_the_score(kb: Path) -> None:
    result = results(kb)["quota_throttling"]
    assert "clause throttled: 0.18 for 0.2" in result.survivors
    assert "clause throttled: lt for gte" not in result.survivors
    assert 0 < result.score < 100
    assert (result.mutants, len(result.survivors), round(result.score, 1)) == (19, 8, 57.9)
    tests = kb / "fingerprints/cpu/quota_throttling.test.yml"
    near = """\
  - name: just below
    expect: no_match
    at: 6s
    features: {cpu.cgroup_throttled_share.rate: 0.19, cpu.idle.rate: 0.5}
    facts: {cpu.cgroup_quota: 0.5}
"""
    tests.write_text(tests.read_text() + near)
    again = results(kb)["quota_throttling"]
    assert "clause throttled: 0.18 for 0.2" not in again.survivors
    assert again.score > result.score


def test_without_cases_every_mutant_survives(kb: Path) -> None:
    (kb / "fingerprints/gpu/power_limit_low.test.yml").unlink()
    result = results(kb)["power_limit_low"]
    assert len(result.survivors) == result.mutants > 10
    assert result.score == 0


def test_several_processes_find_what_one_finds(kb: Path) -> None:
    suite, _ = read_suite(kb)
    assert suite is not None
    subjects = suite.subjects() * 4  # so many that it is worth while
    told: list[int] = []
    together = mutate_all(kb, suite, subjects, jobs=2, advance=told.append)
    assert together == mutate_all(kb, suite, subjects, jobs=1, advance=lambda _: None)
    assert told[-1] == len(set(subjects))
