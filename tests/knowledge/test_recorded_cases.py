"""What the windows of a recording say to a case: it fires in the stretch, it was answered, or nothing was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.recorded_cases import Moment, RecordedCase, judge, recorded_cases
from unveil.knowledge.testing import read_suite
from unveil.records.match import Answer

if TYPE_CHECKING:
    from pathlib import Path

TEST = "fingerprints/cpu/quota_throttling.test.yml"
ADDED = "  - {name: a, expect: EXPECT, recording: {file: lab/a.parquet, from: 10, to: 20}}\n"


def case_of(kb: Path, expect: str) -> RecordedCase:
    with (kb / TEST).open("a") as file:
        file.write(ADDED.replace("EXPECT", expect))
    suite, problems = read_suite(kb)
    assert suite is not None, problems
    fingerprint = next(each for each in suite.fingerprints() if each.name == "quota_throttling")
    (case,) = recorded_cases(fingerprint, suite.documents["quota_throttling"], kb)
    return case


def moments(answers: dict[int, Answer], fires: frozenset[int] = frozenset()) -> list[Moment]:
    return [
        Moment(start_s=end - 3.0, end_s=float(end), answer=answers.get(end, Answer.UNKNOWN), fires=end in fires)
        for end in range(3, 40)
    ]


def test_it_is_read_with_its_place_and_its_path_below_recordings(kb: Path) -> None:
    case = case_of(kb, "match")
    assert (case.recording, case.from_s, case.to_s, case.entity) == (str(kb / "recordings/lab/a.parquet"), 10, 20, None)
    assert case.place.startswith(f"{kb / TEST}:")
    assert case.line > 1


@pytest.mark.parametrize(
    ("answers", "fires", "got"),
    [
        ({15: Answer.MATCH}, frozenset({15}), "match"),
        ({15: Answer.MATCH}, frozenset(), "no_match"),
        ({15: Answer.NO_MATCH}, frozenset(), "no_match"),
        ({}, frozenset(), "unknown"),
        ({12: Answer.MATCH, 21: Answer.MATCH}, frozenset({12, 21}), "unknown"),  # each is partly outside
    ],
)
def test_only_windows_within_the_stretch_count(
    kb: Path, answers: dict[int, Answer], fires: frozenset[int], got: str
) -> None:
    case = case_of(kb, "match")
    result = judge(case, moments(answers, fires), ended_s=39.0)
    assert result.got == got
    assert result.passed is (got == "match")


def test_a_failure_says_how_many_windows_matched(kb: Path) -> None:
    result = judge(case_of(kb, "no_match"), moments({15: Answer.MATCH}, frozenset({15})), ended_s=39.0)
    assert result.failures == ("expected no_match, got match (1 of 8 windows match)",)
