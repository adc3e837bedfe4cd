"""Findings and test results in the forms that other programs read: SARIF, JUnit, GitHub's annotations.

Sources: SARIF 2.1.0 (OASIS, docs.oasis-open.org/sarif/sarif/v2.1.0); GitHub, "Workflow commands for GitHub Actions";
JUnit's XML as Jenkins and GitLab read it. What is told may hold text that a tenant chose or a file with odd
characters, so each form escapes in its own way.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, tostring

from unveil.knowledge.checks import CHECKS
from unveil.records.problem import Gravity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from unveil.knowledge.made_up import CaseResult
    from unveil.knowledge.testing import TestReport
    from unveil.records.problem import Problem

_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SARIF_LEVELS = {Gravity.ERROR: "error", Gravity.WARNING: "warning", Gravity.INFO: "note"}
_GITHUB_LEVELS = {Gravity.ERROR: "error", Gravity.WARNING: "warning", Gravity.INFO: "notice"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def sarif(problems: Iterable[Problem], *, version: str) -> dict[str, Any]:
    """Return a SARIF log of findings, with every check as a rule.

    Args:
        version: of unveil.
    """
    rules = list(CHECKS.values())
    position = {check.id: index for index, check in enumerate(rules)}
    driver = {
        "name": "unveil kb lint",
        "version": version,
        "rules": [
            {
                "id": check.id,
                "shortDescription": {"text": check.title},
                "fullDescription": {"text": check.explanation},
                "defaultConfiguration": {"level": _SARIF_LEVELS[check.gravity]},
            }
            for check in rules
        ],
    }
    results = [
        {
            "ruleId": problem.check,
            "ruleIndex": position[problem.check],
            "level": _SARIF_LEVELS[problem.gravity],
            "message": {"text": _sentence(problem)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(problem.file)},
                        "region": {"startLine": problem.line, "startColumn": problem.column},
                    }
                }
            ],
        }
        for problem in problems
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _uri(file: str) -> str:
    """Return a path as SARIF has it: relative ones as they are, for the reader to find in its checkout."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def github(problems: Iterable[Problem]) -> str:
    """Return one workflow command a finding, which GitHub shows at its line of a pull request."""
    return "".join(
        f"::{_GITHUB_LEVELS[problem.gravity]} file={_property(problem.file)},line={problem.line},"
        f"col={problem.column},title={_property(problem.check)}::{_data(_sentence(problem))}\n"
        for problem in problems
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def junit_findings(problems: Sequence[Problem]) -> str:
    """Return JUnit XML of findings: one test case for each, failed; a remark is a case that passed and says so."""
    suite = Element("testsuite", name="unveil kb lint")
    for problem in problems:
        case = SubElement(suite, "testcase", classname=_xml(problem.file), name=_xml(_place(problem)))
        failed = problem.gravity is not Gravity.INFO
        told = SubElement(case, "failure" if failed else "system-out")
        told.text = _xml(str(problem))
        if failed:
            told.set("message", _xml(_sentence(problem)))
            told.set("type", str(problem.gravity))
    if not problems:
        SubElement(suite, "testcase", classname="kb", name="no findings")
    return _written((suite,))


def junit_cases(report: TestReport) -> str:
    """Return JUnit XML of a test run: one suite for each fingerprint. One without a case is a suite that failed."""
    suites: dict[str, Element] = {}
    for case in report.cases:
        if case.fingerprint not in suites:
            suites[case.fingerprint] = Element("testsuite", name=case.fingerprint)
        suite, name = suites[case.fingerprint], _xml(case.name)
        element = SubElement(suite, "testcase", classname=case.fingerprint, name=name, file=_xml(case.file))
        element.set("line", str(case.line))
        if not case.passed:
            failure = SubElement(element, "failure", type="expectation", message=_xml(case.failures[0]))
            failure.text = _xml(_told(case))
    for name in report.untested:
        suites[name] = Element("testsuite", name=name)
        element = SubElement(suites[name], "testcase", classname=name, name="is tested")
        SubElement(element, "failure", type="coverage", message="no case tests it")
    return _written(suites.values())


def _told(case: CaseResult) -> str:
    clauses = [
        f"{each.name}: {each.subject} {each.operator} {each.threshold}; there was {each.value}: {each.answer}"
        for each in case.clauses
    ]
    return "\n".join((f"{case.file}:{case.line}: expected {case.expected}, got {case.got}", *case.failures, *clauses))


def _written(suites: Iterable[Element]) -> str:
    root = Element("testsuites")
    for suite in suites:
        suite.set("tests", str(len(suite.findall("testcase"))))
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        root.append(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _xml(text: str) -> str:
    """Return a text without the characters that no XML document may hold, not even escaped."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _place(problem: Problem) -> str:
    return f"{problem.check} at {problem.line}:{problem.column}"


def _sentence(problem: Problem) -> str:
    return f"{problem.what} ({problem.hint})" if problem.hint else problem.what
