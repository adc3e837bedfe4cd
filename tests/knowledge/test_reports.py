"""Findings and results for other programs: well formed whatever the text is, and at the right place."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from unveil.knowledge.checks import CHECKS
from unveil.knowledge.linting import lint
from unveil.knowledge.reports import github, junit_cases, junit_findings, sarif
from unveil.knowledge.testing import run_tests
from unveil.records.problem import Gravity, Problem

if TYPE_CHECKING:
    from pathlib import Path

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"
ODD = Problem(
    file="fingerprints/a, b:c%.yml",
    line=3,
    column=7,
    check="K203",
    what="100 % of\nlines\r",
    hint="a \x1b[31m \x00 <b>",
)


def found(kb: Path) -> tuple[Problem, ...]:
    path = kb / FINGERPRINT
    path.write_text(path.read_text().replace("cpu.idle.rate, gte", "cpu.idel.rate, gte"))
    problems = lint(kb)
    assert [problem.check for problem in problems] == ["K203"]
    return problems


def test_sarif_has_every_check_as_a_rule_and_each_finding_at_its_place(kb: Path) -> None:
    (problem,) = found(kb)
    log = sarif((problem,), version="1.2.3")
    assert (log["version"], log["$schema"].rpartition("/")[2]) == ("2.1.0", "sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert [rule["id"] for rule in driver["rules"]] == list(CHECKS)
    (result,) = run["results"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "K203"
    assert result["level"] == "error"
    assert "did you mean cpu.idle.rate?" in result["message"]["text"]
    place = result["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": problem.line, "startColumn": problem.column}
    assert place["artifactLocation"]["uri"] == (kb / FINGERPRINT).as_uri()


def test_a_relative_path_stays_relative_in_sarif_and_is_a_valid_reference() -> None:
    result = sarif((ODD,), version="1")["runs"][0]["results"][0]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "fingerprints/a%2C%20b%3Ac%25.yml"


def test_a_finding_for_github_is_one_line_that_its_text_cannot_break_out_of() -> None:
    (line,) = github((ODD,)).splitlines()
    head, _, message = line.removeprefix("::").partition("::")
    assert head == "error file=fingerprints/a%2C b%3Ac%25.yml,line=3,col=7,title=K203"
    assert message.startswith("100 %25 of%0Alines%0D (a ")


def test_junit_counts_errors_and_warnings_as_failures_and_remarks_as_passed() -> None:
    remark = Problem(file="f.yml", line=1, column=1, check="K013", what="nothing to silence", gravity=Gravity.INFO)
    (suite,) = ET.fromstring(junit_findings((ODD, remark)))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "<b>" in str(failure.get("message"))
    (suite,) = ET.fromstring(junit_findings(()))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")


@given(st.text(), st.text())
def test_every_text_is_well_formed_xml(what: str, hint: str) -> None:
    problem = Problem(file=what, line=1, column=1, check="K001", what=what, hint=hint)
    ET.fromstring(junit_findings((problem,)).encode())


def test_junit_of_cases_has_a_suite_for_each_fingerprint_and_fails_the_untested(kb: Path) -> None:
    (kb / "fingerprints/gpu/power_limit_low.test.yml").unlink()
    tests = kb / "fingerprints/cpu/quota_throttling.test.yml"
    tests.write_text(tests.read_text().replace("expect: unknown", "expect: match"))
    one, other = ET.fromstring(junit_cases(run_tests(kb)))
    assert (one.get("name"), one.get("tests"), one.get("failures")) == ("quota_throttling", "3", "1")
    failed = one.find("testcase/failure/..")
    assert failed is not None
    assert (failed.get("file"), failed.get("line")) == (str(tests), "23")
    assert "throttled: feature cpu.cgroup_throttled_share.rate gte 0.2; there was None: unknown" in str(failed[0].text)
    assert (other.get("name"), other.get("failures")) == ("power_limit_low", "1")
