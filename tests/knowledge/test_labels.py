"""Labels and expectations: read strictly, wrong ones told at their line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError, UnreadableError
from unveil.knowledge.labels import Expectation, labels_beside, read_expectations, read_labels

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("one_fault", "other_fault")
LABELS = """\
apiVersion: unveil/v1
kind: RecordingLabels
hardware: a host
intervals:
  - {from: 60, label: [one_fault, other_fault]}
  - {from: 0, to: 60, label: healthy, note: seen by eye}
"""
EXPECTATIONS = """\
apiVersion: unveil/v1
kind: BacktestExpectations
expectations:
  - {recording: "run*", fingerprint: one_fault, exactly: 2, first_within: 15s}
  - {fingerprint: other_fault, at_least: 1}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.labels.yml"
    path.write_text(text)
    return path


def test_intervals_are_read_by_time(tmp_path: Path) -> None:
    first, second = read_labels(written(tmp_path, LABELS), NAMES)
    assert (first.from_s, first.to_s, first.labels) == (0.0, 60.0, frozenset())
    assert (second.from_s, second.to_s, second.labels) == (60.0, math.inf, frozenset(NAMES))


def test_a_fault_that_no_fingerprint_answers_is_faulty_time_under_its_own_name(tmp_path: Path) -> None:
    text = LABELS.replace("label: [one_fault, other_fault]", "fault: slow_link")
    assert read_labels(written(tmp_path, text), NAMES)[1].labels == frozenset({"slow_link"})
    both = LABELS.replace("label: [one_fault, other_fault]", "fault: slow_link, label: one_fault")
    assert read_labels(written(tmp_path, both), NAMES)[1].labels == frozenset({"one_fault"})


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("label: healthy", "label: healthy, fault: slow_link", "6:46: healthy and faulty at once"),
        ("label: healthy", "note: 1", "error K0"),
        ("one_fault,", "one_falt,", "5:23: the knowledge base has no fingerprint 'one_falt'"),
        ("one_fault,", "healthy,", "5:23: healthy and faulty at once"),
        ("to: 60", "to: 61", "6:5: healthy and faulty at once with the interval from 60 s"),
        ("to: 60", "to: 0", "6:12: the interval ends at 0 s, before it begins"),
        ("label: healthy", "lable: healthy", "6:23: error K004"),
        ("kind: RecordingLabels", "kind: Filter", "2:7: error K005"),
        ("from: 60", "from: -60", "5:12: error K005"),
        ("intervals:", "intervals: [", "error K001"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read_labels(written(tmp_path, LABELS.replace(old, new)), NAMES)
    assert f"run.labels.yml:{says}" in caught.value.what or says in caught.value.what


def test_json_is_read_as_well_and_found_beside_the_recording(tmp_path: Path) -> None:
    recording = tmp_path / "run.parquet"
    assert labels_beside(recording) is None
    path = tmp_path / "run.labels.json"
    path.write_text(
        '{"apiVersion": "unveil/v1", "kind": "RecordingLabels", "intervals": [{"from": 0, "label": "one_fault"}]}'
    )
    assert labels_beside(recording) == path
    assert read_labels(path, NAMES)[0].labels == {"one_fault"}
    assert labels_beside(tmp_path / "run.labels.parquet") is None


def test_expectations_are_read(tmp_path: Path) -> None:
    assert read_expectations(written(tmp_path, EXPECTATIONS), NAMES) == (
        Expectation(fingerprint="one_fault", recording="run*", at_least=2, at_most=2, first_within_s=15.0),
        Expectation(fingerprint="other_fault", at_least=1),
    )


def test_an_expectation_of_nothing_or_of_nobody_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="5:5: error K005"):
        read_expectations(written(tmp_path, EXPECTATIONS.replace(", at_least: 1", "")), NAMES)
    with pytest.raises(BadInputError, match="no fingerprint 'another_fault'"):
        read_expectations(written(tmp_path, EXPECTATIONS.replace("other_fault", "another_fault")), NAMES)


def test_a_file_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="No such file"):
        read_labels(tmp_path / "absent.labels.yml", NAMES)
