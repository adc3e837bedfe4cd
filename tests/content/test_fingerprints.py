"""The fingerprints that are shipped: every case passes, and no mutant does."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.content import shipped_root
from unveil.knowledge.testing import Suite, read_suite, run_document, run_suite
from unveil.knowledge.yaml_positions import read_yaml
from unveil.matching.mutants import mutants

if TYPE_CHECKING:
    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.knowledge.made_up import CaseResult
    from unveil.knowledge.yaml_positions import Document
    from unveil.records.fingerprint import Fingerprint

pytestmark = pytest.mark.xdist_group("content")  # loaded once, by one worker
NAMES = (
    "cgroup_cpu_quota_throttling",
    "dirty_writeback_stall",
    "gpu_power_limit_below_default",
    "nic_irq_away_from_nic",
    "reduced_huge_page_coverage",
    "workload_memory_remote",
)
FILES = {path.name.partition(".")[0]: path for path in sorted(shipped_root().glob("fingerprints/*/*.test.yml"))
         if path.parent.name != "correlations"}  # fmt: skip


@cache
def suite() -> Suite:
    suite, problems = read_suite(shipped_root())
    assert suite is not None, "\n".join(map(str, problems))
    return suite


def knowledge() -> KnowledgeBase:
    return suite().knowledge


@cache
def results() -> tuple[CaseResult, ...]:
    return run_suite(suite()).cases


def fingerprint_of(name: str) -> Fingerprint:
    return next(fingerprint for fingerprint in knowledge().fingerprints if fingerprint.name == name)


def cases_of(name: str) -> Document:
    return read_yaml(FILES[name].name, Path(FILES[name]).read_bytes())


def test_those_of_the_readme_are_there_and_all_have_their_cases() -> None:
    assert {fingerprint.name for fingerprint in knowledge().fingerprints} >= set(NAMES)
    assert set(FILES) == {fingerprint.name for fingerprint in knowledge().fingerprints}


def test_every_case_passes() -> None:
    failed = [
        f"{case.file}:{case.line}: {case.name}: {'; '.join(case.failures)}" for case in results() if not case.passed
    ]
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("name", NAMES)
def test_the_cases_show_a_match_a_look_alike_an_unknown_and_the_hold(name: str) -> None:
    cases = [case for case in results() if case.fingerprint == name]
    assert {case.expected for case in cases} == {"match", "no_match", "unknown"}
    hold_s = fingerprint_of(name).hold_s
    held = [case for case in cases_of(name).data["cases"] if case.get("at") == f"{hold_s - 1:g}s"]
    assert [case["expect"] for case in held] == ["no_match"]


@pytest.mark.longest
@pytest.mark.slow  # `unveil kb test --mutate` asks the same of all that are shipped
@pytest.mark.parametrize("name", NAMES)
def test_no_mutant_passes_the_cases(name: str) -> None:
    fingerprint, document = fingerprint_of(name), cases_of(name)
    survivors = [
        what
        for what, mutant in mutants(fingerprint)
        if all(case.passed for case in run_document(knowledge(), mutant, document))
    ]
    assert survivors == []


@pytest.mark.parametrize("name", NAMES)
def test_a_fingerprint_fires_within_ten_seconds_and_leads_to_a_fix(name: str) -> None:
    fingerprint = fingerprint_of(name)
    assert fingerprint.hold_s <= 6.0  # a window is full after three seconds and comes every second
    assert fingerprint.remediations
    for remediation in fingerprint.remediations:
        assert knowledge().remediation(remediation) is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_fingerprint_says_why_each_clause_is_there_and_what_else_looks_like_it(name: str) -> None:
    fingerprint = fingerprint_of(name)
    assert [clause.name for clause in fingerprint.clauses if not clause.note] == []
    assert len(fingerprint.falsepositives) >= 2
    assert fingerprint.references
    assert fingerprint.owner
    assert f"subsystem.{fingerprint.subsystem}" in fingerprint.tags
