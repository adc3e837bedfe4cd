"""`unveil kb` on a knowledge base without mistakes, and on one with the mistakes that people make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unveil.cli.main import main

FINGERPRINT = "fingerprints/cpu/cgroup_cpu_quota_throttling.yml"


def test_one_without_mistakes_lints_clean_and_passes_its_tests(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "lint", "--kb", str(few)]) == 0
    assert capsys.readouterr().out == "no findings\n"
    assert main(["kb", "test", "--kb", str(few)]) == 0
    assert "fingerprints passed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "place", "says"),
    [
        ("feature: cpu.idle.rate", "feature: cpu.idel.rate", ":K203:", "cpu.idle.rate"),
        ("status: stable", "status: stable\nstatus: stable", ":K002:", "status"),
        ("  clauses:", "\t clauses:", ":K006:", "tab"),
        ("  for: ", "  for: [1] #", ":K005:", "a list where text belongs"),
    ],
)
def test_each_mistake_is_one_line_with_its_place_and_a_suggestion(
    kb: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, place: str, says: str
) -> None:
    file = kb / FINGERPRINT
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    assert main(["kb", "lint", "--kb", str(kb)]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if place.strip(":") in line]
    assert len(lines) == 1, lines
    where, line, column, rest = lines[0].split(":", 3)
    assert where.endswith(FINGERPRINT)
    wanted = file.read_text().splitlines()[int(line) - 1]
    assert int(column) >= 1
    assert says in rest
    assert new.splitlines()[-1].strip() in wanted or new.splitlines()[0].strip() in wanted


def test_findings_are_data_too(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (kb / FINGERPRINT).write_text("apiVersion: [")
    assert main(["kb", "lint", "--kb", str(kb), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {"file", "line", "column", "check", "what", "hint", "gravity"} <= set(found[0])


def test_a_case_that_fails_says_what_was_there(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = kb / FINGERPRINT
    file.write_text(file.read_text().replace("condition: ", "condition: not "))
    assert main(["kb", "test", "--kb", str(kb), "cgroup_cpu_quota_throttling"]) == 1
    said = capsys.readouterr().out
    assert "FAIL cgroup_cpu_quota_throttling" in said
    assert "what was there" in said


def test_a_knowledge_base_that_cannot_be_loaded_is_bad_input(kb: Path) -> None:
    (kb / FINGERPRINT).write_text("kind: [")
    assert main(["kb", "test", "--kb", str(kb)]) == 2


def test_every_check_can_be_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "lint", "--list-checks"]) == 0
    checks = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip().startswith("K")]
    assert len(checks) >= 25
    for check in checks:
        assert main(["kb", "lint", "--explain", check]) == 0
        assert check in capsys.readouterr().out


def test_schemas_are_written_where_they_are_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "schema", str(tmp_path)]) == 0
    for line in capsys.readouterr().out.split():
        assert json.loads(Path(line).read_text())["$schema"].endswith("2020-12/schema")
    assert main(["kb", "schema", str(tmp_path / "absent")]) == 2
