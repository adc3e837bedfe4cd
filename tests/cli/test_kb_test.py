"""`unveil kb test` beyond pass and fail: JUnit, coverage, mutants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from unveil.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NAME = "cgroup_cpu_quota_throttling"


def test_cases_that_notice_every_mutant_are_said_to(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "test", "--kb", str(few), NAME, "power_limit_on_several_gpus", "--mutate"]) == 0
    said = capsys.readouterr().out
    assert f"100.0 %  {NAME}: 23 of 23 mutants noticed" in said
    assert "100.0 %  of 28 mutants of 2 fingerprints" in said


def test_cases_that_notice_too_little_are_a_finding_and_what_survives_is_shown(
    kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = kb / f"fingerprints/cpu/{NAME}.test.yml"
    text = tests.read_text()
    tests.write_text(text[: text.index("  - name:", text.index("  - name:") + 1)])
    command = ["kb", "test", "--kb", str(kb), NAME, "--mutate"]
    assert main(command) == 1
    assert "survives: " in capsys.readouterr().out
    assert main([*command, "--min-score", "5"]) == 0
    capsys.readouterr()
    assert main([*command, "--json", "--coverage"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert 5 <= told["mutation"][0]["score"] < 95
    assert "no case expects unknown" in told["coverage"][0]["gaps"]


def test_no_mutants_are_made_of_what_fails_anyway(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = kb / f"fingerprints/cpu/{NAME}.yml"
    file.write_text(file.read_text().replace("condition: ", "condition: not "))
    assert main(["kb", "test", "--kb", str(kb), NAME, "--mutate"]) == 1
    assert "no mutants were made" in capsys.readouterr().out


def test_coverage_says_what_no_case_has_seen(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "test", "--kb", str(few), NAME, "--coverage"]) == 0
    assert "clauses were true in one case and false in another" in capsys.readouterr().out


def test_results_are_written_as_junit(few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "results.xml"
    command = ["kb", "test", "--kb", str(few), NAME, "--junit"]
    assert main([*command, str(file)]) == 0
    (suite,) = ET.parse(file).getroot()
    assert (suite.get("name"), suite.get("failures")) == (NAME, "0")
    assert main([*command, str(tmp_path / "absent/results.xml")]) == 1
    assert "cannot be written: No such file" in capsys.readouterr().err


def test_a_score_is_a_percentage() -> None:
    assert main(["kb", "test", "--mutate", "--min-score", "101"]) == 3
    assert main(["kb", "test", "--mutate", "--min-score", "most"]) == 3
