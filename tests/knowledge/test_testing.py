"""``kb test`` asks the watcher's own matcher, tracker and planner, and says what was otherwise than expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.testing import run_tests
from unveil.records.match import Answer

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.knowledge.made_up import CaseResult

TEST = "fingerprints/cpu/quota_throttling.test.yml"
POWER_TEST = "fingerprints/gpu/power_limit_low.test.yml"


def edit(kb: Path, file: str, old: str, new: str) -> None:
    text = (kb / file).read_text()
    assert old in text
    (kb / file).write_text(text.replace(old, new, 1))


def failed(kb: Path) -> list[tuple[str, tuple[str, ...]]]:
    report = run_tests(kb)
    assert report.problems == ()
    return [(case.name, case.failures) for case in report.failed]


def test_sound_cases_pass(kb: Path) -> None:
    report = run_tests(kb)
    assert [case.got for case in report.cases] == ["match", "match", "no_match", "match", "no_match", "unknown"]
    assert report.failed == ()
    assert report.untested == ()


def test_a_failure_shows_every_clause_with_what_was_there(kb: Path) -> None:
    edit(kb, TEST, "0.4x10, cpu.idle.rate: 0.5x10", "0.4x10, cpu.idle.rate: 0.1x10")
    case: CaseResult = run_tests(kb).failed[0]
    assert case.failures[0] == "expected match, got no_match"
    assert case.file == str(kb / TEST)
    assert case.line == 7
    idle = next(clause for clause in case.clauses if clause.name == "host_idle")
    assert (idle.answer, idle.value, idle.operator, idle.threshold) == (Answer.NO_MATCH, 0.1, "gte", "0.3")


def test_a_failure_says_how_long_it_was_pending(kb: Path) -> None:
    edit(kb, TEST, "at: 6s", "at: 4s")
    assert failed(kb)[0][1][0] == "expected match, got no_match (pending for 4 s of 6 s)"


def test_a_failure_says_which_clauses_are_unknown(kb: Path) -> None:
    edit(kb, TEST, "facts: {cpu.cgroup_quota: 0.5}\n  - name: a host", "facts: {}\n  - name: a host")
    assert failed(kb)[0][1] == ("expected no_match, got unknown (unknown: limited)",)


def test_a_series_that_ends_is_missing(kb: Path) -> None:
    edit(kb, TEST, "cpu.cgroup_throttled_share.rate: 0.4x10", "cpu.cgroup_throttled_share.rate: 0.4x3")
    assert failed(kb)[0][1][0].startswith("expected match, got unknown")


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ("clauses: {throttled: match}", "clauses: {throttled: unknown}",
         "clause throttled: expected unknown, got match"),
        ("clauses: {throttled: match}", "clauses: {throtled: match}",
         "clause throtled: expected match, got no such clause"),
        ("variables: {cgroup: /pod1}", "variables: {cgroup: /pod2}",
         "plan: variable cgroup is '/pod1', expected '/pod2'"),
        ('"-1"}', '"50000"}',
         "plan: cgroup:/pod1/cpu.cfs_quota_us would become '-1', expected '50000'"),
        ('settings: {"cgroup:/pod1/cpu.cfs_quota_us": "-1"}', "settings: {}",
         "plan: cgroup:/pod1/cpu.cfs_quota_us would change, too, to '-1'"),
        ('{"cgroup:/pod1/cpu.cfs_quota_us": "-1"}', '{"cgroup:/pod1/cpu.cfs_quota_us": "-1", "sysctl:vm.x": "1"}',
         "plan: sysctl:vm.x would not change"),
        ("remediation: raise_quota", "remediation: raise_cota",
         "plan: quota_throttling has no remediation 'raise_cota'"),
        ("clauses: {throttled: match}", "clauses: {throttled: match}\n    site: {quota_share: 0.5}",
         "plan: cgroup:/pod1/cpu.cfs_quota_us would become '50000', expected '-1'"),
        ("clauses: {throttled: match}", "clauses: {throttled: match}\n    settings: {}",
         ("plan: cgroup:/pod1/cpu.cfs_quota_us cannot be read on this host "
          "(what cannot be put back is not changed; see `unveil doctor`)")),
    ],
)  # fmt: skip
def test_a_plan_that_is_otherwise_is_told(kb: Path, old: str, new: str, failure: str) -> None:
    edit(kb, TEST, old, new)
    assert failed(kb) == [("throttled in four of ten periods", (failure,))]


def test_an_entity_may_be_named_in_brackets(kb: Path) -> None:
    edit(kb, POWER_TEST, "{gpu.util.mean: 0.9, gpu.sm_clock.mean: 1600}",
         "{'gpu.util.mean[gpu:GPU-00000000-0000-4000-8000-000000000000]': 0.9, gpu.sm_clock.mean: 1600}")  # fmt: skip
    assert failed(kb) == []


def test_a_knowledge_base_that_cannot_be_loaded_says_why_and_runs_nothing(kb: Path) -> None:
    edit(kb, TEST, "expect: match", "expect: mach")
    report = run_tests(kb)
    assert report.cases == ()
    assert [each.check for each in report.problems] == ["K005"]


def test_only_the_named_fingerprints_are_tested_and_the_untested_are_listed(kb: Path) -> None:
    (kb / TEST).unlink()
    report = run_tests(kb, {"quota_throttling"})
    assert (report.cases, report.untested) == ((), ("quota_throttling",))
    assert {case.fingerprint for case in run_tests(kb).cases} == {"power_limit_low"}
