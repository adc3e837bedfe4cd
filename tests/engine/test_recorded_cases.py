"""A case that names a recording is held against it by the code of a live watch, and says where it is wrong."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from unveil.engine.recorded_cases import watch_cases
from unveil.knowledge.testing import read_suite, run_suite

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.knowledge.made_up import CaseResult

TEST = "fingerprints/memory/some_dirt.test.yml"


def results(kb: Path, *cases: str) -> list[CaseResult]:
    with (kb / TEST).open("a") as file:
        file.writelines(f"  - {case}\n" for case in cases)
    suite, problems = read_suite(kb)
    assert suite is not None, problems
    return list(run_suite(suite, {"some_dirt"}, watch_cases).cases[2:])


def test_what_fires_in_the_stretch_matches_and_what_is_expected_otherwise_is_told(recording: Path, kb: Path) -> None:
    (kb / "recordings/lab").mkdir(parents=True)
    shutil.copy(recording, kb / "recordings/lab/host.parquet")
    fired, otherwise, late = results(
        kb,
        "{name: fires, expect: match, recording: {file: lab/host.parquet, from: 0, to: 6}}",
        "{name: does not, expect: no_match, recording: {file: lab/host.parquet, from: 0, to: 6}}",
        "{name: late, expect: match, recording: {file: lab/host.parquet, from: 100, to: 110}}",
    )
    assert fired.passed
    assert fired.clauses[0].name == "dirty"
    assert otherwise.failures[0].startswith("expected no_match, got match (")
    assert late.failures[0].startswith(f"{kb / TEST}:10:51: no window lies between 100 and 110 s; it ends at ")


@pytest.mark.parametrize("content", [None, b"no Parquet"])
def test_a_recording_that_cannot_be_watched_fails_its_case_at_its_place(kb: Path, content: bytes | None) -> None:
    if content is not None:
        (kb / "recordings").mkdir()
        (kb / "recordings/host.parquet").write_bytes(content)
    (case,) = results(kb, "{name: absent, expect: match, recording: {file: host.parquet, from: 0, to: 6}}")
    assert case.got == "nothing"
    assert case.failures[0].startswith(f"{kb / TEST}:8:53: ")


def test_without_a_watch_such_cases_are_left_out(kb: Path) -> None:
    results(kb, "{name: absent, expect: match, recording: {file: host.parquet, from: 0, to: 6}}")
    suite, _ = read_suite(kb)
    assert suite is not None
    report = run_suite(suite, {"some_dirt"})
    assert len(report.cases) == 2
    assert report.failed == ()
