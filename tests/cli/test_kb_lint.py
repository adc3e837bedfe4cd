"""`unveil kb lint` for other programs: forms, what makes it fail, what can be left out."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from unveil.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FINGERPRINT = "fingerprints/cpu/cgroup_cpu_quota_throttling.yml"


@pytest.fixture
def lint(kb: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(*flags: str) -> tuple[int, str]:
        code = main(["kb", "lint", "--kb", str(kb), *flags])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def orphan(kb: Path) -> None:
    """Bring about one warning, K704."""
    (kb / FINGERPRINT.replace(".yml", ".test.yml")).unlink()


def test_each_form_tells_the_same_finding(kb: Path, lint: Callable[..., tuple[int, str]]) -> None:
    orphan(kb)
    assert [each["check"] for each in json.loads(lint("--format", "json")[1])] == ["K704"]
    assert json.loads(lint("--json")[1]) == json.loads(lint("--format", "json")[1])
    log = json.loads(lint("--format", "sarif")[1])
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["K704"]
    assert len(ET.fromstring(lint("--format", "junit")[1])) == 1
    assert lint("--format", "github")[1].startswith("::warning file=")
    assert ": warning K704: " in lint()[1]


def test_the_fail_level_says_what_counts(kb: Path, lint: Callable[..., tuple[int, str]]) -> None:
    orphan(kb)
    assert [lint("--fail-level", level)[0] for level in ("error", "warning", "info")] == [0, 1, 1]


def test_a_check_that_is_disabled_is_left_out_and_that_is_said(kb: Path, lint: Callable[..., tuple[int, str]]) -> None:
    orphan(kb)
    assert lint("--disable", "k704") == (0, "no findings (1 of disabled checks left out)\n")


@pytest.mark.parametrize(("check", "says"), [("K507", "K507 cannot be disabled"), ("K999", "no check 'K999'")])
def test_what_keeps_a_host_safe_cannot_be_disabled(lint: Callable[..., tuple[int, str]], check: str, says: str) -> None:
    code, said = lint("--disable", check)
    assert code == 2
    assert says in said


def test_the_checks_are_data_too(lint: Callable[..., tuple[int, str]]) -> None:
    code, said = lint("--list-checks", "--json")
    assert code == 0
    assert {"id", "title", "explanation", "gravity", "silenceable"} == set(json.loads(said)[0])


def test_a_form_that_there_is_not_is_a_usage_error(lint: Callable[..., tuple[int, str]]) -> None:
    assert lint("--format", "xml")[0] == 3


def test_what_was_mended_is_said_and_then_it_is_clean(kb: Path, lint: Callable[..., tuple[int, str]]) -> None:
    path = kb / FINGERPRINT
    path.write_text(path.read_text().replace('date: "2026-11-29"', "date: 2026-11-29"))
    code, said = lint("--fix")
    assert code == 0
    assert "fixed K003: 2026-11-29 is written" in said
    assert said.endswith("no findings\n")
    assert lint("--fix") == (0, "no findings\n")


def test_the_way_from_a_revision_is_judged(
    kb: Path, lint: Callable[..., tuple[int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = tmp_path_factory.mktemp("before") / "kb"
    shutil.copytree(kb, before)
    path = kb / FINGERPRINT
    path.write_text(path.read_text().replace("status: stable", "status: experimental"))
    code, said = lint("--against", str(before))
    assert (code, "K108" in said) == (1, True)
    assert lint("--against", "no-such-thing")[0] == 2
