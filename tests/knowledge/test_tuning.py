"""Thresholds around a clause's own: which are tried, which is suggested, and how one is written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError
from unveil.knowledge.backtest import Score
from unveil.knowledge.labels import Interval
from unveil.knowledge.loading import load
from unveil.knowledge.tuning import candidates, clause_of, relabelled, rewritten, suggest, variants
from unveil.knowledge.yaml_positions import read_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.records.fingerprint import Fingerprint

FILE = "fingerprints/cpu/quota_throttling.yml"


@pytest.fixture
def fingerprint(kb: Path) -> Fingerprint:
    loaded = load(kb).knowledge
    assert loaded is not None
    found = loaded.fingerprint("quota_throttling")
    assert found is not None
    return found


def scores(*told: tuple[int, int]) -> list[Score]:
    """Return scores of (found of 2, false fires)."""
    return [
        Score(
            fingerprint="f", intervals=2, found=found, first_s=(), fires=found, other_fires=0, false_fires=false,
            hit_rate=None, coverage=None, agreement=None, contamination=None, false_per_day=None, false_low=None,
            false_high=None,
        )
        for found, false in told
    ]  # fmt: skip


def test_candidates_lie_around_the_own_threshold_and_a_share_stays_one(fingerprint: Fingerprint) -> None:
    share, quota = clause_of(fingerprint, "throttled"), clause_of(fingerprint, "limited")
    assert {0.04, 0.2, 0.4, 0.7} <= set(candidates(share))
    assert max(candidates(share)) < 1
    assert max(candidates(quota)) == 5000
    with pytest.raises(BadInputError, match="compares with 0"):
        candidates(replace(quota, operand=0))
    with pytest.raises(BadInputError, match="does not compare with a number"):
        clause_of(replace(fingerprint, clauses=(replace(quota, operand="text"),)), "limited")
    with pytest.raises(BadInputError, match="no clause 'absent'"):
        clause_of(fingerprint, "absent")


def test_each_copy_has_one_threshold_and_the_labels_of_the_original(fingerprint: Fingerprint) -> None:
    copies = variants(fingerprint, "limited", (1.0, 2.0))
    assert [each.name for each in copies] == ["quota_throttling@0", "quota_throttling@1"]
    assert [clause_of(each, "limited").operand for each in copies] == [1.0, 2.0]  # type: ignore[union-attr]
    assert {clause_of(each, "throttled") for each in copies} == {clause_of(fingerprint, "throttled")}
    label = Interval(from_s=0, to_s=9, labels=frozenset({"quota_throttling"}))
    other = Interval(from_s=9, to_s=12, labels=frozenset())
    named = relabelled((label, other), "quota_throttling", ["quota_throttling@0"])
    assert [sorted(each.labels) for each in named] == [["quota_throttling", "quota_throttling@0"], []]


VALUES = (1.0, 2.0, 3.0, 4.0, 5.0)


@pytest.mark.parametrize(
    ("told", "own", "value"),
    [
        (((2, 3), (2, 0), (2, 0), (2, 0), (1, 0)), 3.0, 3.0),  # in the middle already
        (((2, 3), (2, 0), (2, 0), (2, 0), (1, 0)), 2.0, 3.0),  # at the edge
        (((2, 3), (2, 3), (2, 1), (1, 0), (0, 0)), 1.0, 4.0),  # false fires weigh more than a miss
        (((2, 0), (2, 0), (2, 0), (2, 0), (2, 0)), 1.0, 1.0),  # the edge of what was tried is no edge
        (((2, 0), (0, 0), (2, 0), (2, 0), (2, 0)), 1.0, 4.0),  # the longest run
    ],
)
def test_the_suggestion_has_room_on_both_sides(told: tuple[tuple[int, int], ...], own: float, value: float) -> None:
    assert suggest(VALUES, scores(*told), own)[0] == value


def test_without_a_recording_of_it_or_a_find_nothing_is_suggested() -> None:
    unlabelled = [replace(each, intervals=0) for each in scores((0, 0), (0, 0))]
    assert suggest((1.0, 2.0), unlabelled, 1.0) == (
        None, "no recording is labelled with it: nothing tells what a threshold would miss",
    )  # fmt: skip
    assert suggest((1.0, 2.0), scores((0, 0), (0, 0)), 1.0)[0] is None


def test_only_the_number_is_written(kb: Path, fingerprint: Fingerprint) -> None:
    text = (kb / FILE).read_text()
    document = read_yaml(FILE, text.encode())
    after = rewritten(document, text, clause_of(fingerprint, "throttled"), 0.35)
    assert after == text.replace("gte: 0.2}", "gte: 0.35}")
    with pytest.raises(BadInputError, match=r"cpu/quota_throttling\.yml:\d+:\d+: no plain number"):
        rewritten(document, text.replace("gte: 0.2}", "gte: x}"), clause_of(fingerprint, "throttled"), 0.35)
