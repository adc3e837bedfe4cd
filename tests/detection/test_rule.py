"""How votes become an answer."""

from __future__ import annotations

import pytest

from unveil.detection.catalogue import DETECTORS
from unveil.detection.rule import parse_rule
from unveil.errors import BadInputError
from unveil.records.verdict import State, Vote

KNOWN = tuple(kind.name for kind in DETECTORS)
OR_RULES = ["zscore", "mahalanobis", "isolation_forest", "zscore|mahalanobis", "zscore|isolation_forest",
            "isolation_forest|mahalanobis", "zscore|mahalanobis|isolation_forest"]  # fmt: skip


def votes(**cast):
    return [
        Vote(detector=name, score=1.0, threshold=0.5, p_value=0.1, anomalous=anomalous)
        for name, anomalous in cast.items()
    ]


@pytest.mark.parametrize("text", OR_RULES)
def test_any_member_suffices_for_an_or(text):
    rule = parse_rule(text, KNOWN)
    for member in rule.members:
        cast = dict.fromkeys(KNOWN, False) | {member: True}
        assert rule.decide(votes(**cast)) is State.ANOMALOUS
    assert rule.decide(votes(**dict.fromkeys(KNOWN, False))) is State.NORMAL


def test_a_detector_that_is_no_member_does_not_decide():
    assert parse_rule("zscore", KNOWN).decide(votes(zscore=False, mahalanobis=True)) is State.NORMAL


def test_two_of_three_need_two():
    rule = parse_rule("2of3", KNOWN)
    assert rule.decide(votes(zscore=True, mahalanobis=False, isolation_forest=False)) is State.NORMAL
    assert rule.decide(votes(zscore=True, mahalanobis=False, isolation_forest=True)) is State.ANOMALOUS


def test_of_n_counts_the_first_n_detectors():
    assert parse_rule("2of3", KNOWN).members == KNOWN[:3]
    assert parse_rule(f"1of{len(KNOWN)}", KNOWN).members == KNOWN


def test_too_few_votes_are_unknown_and_one_of_an_or_is_enough():
    assert parse_rule("2of3", KNOWN).decide(votes(zscore=True)) is State.UNKNOWN
    assert parse_rule("mahalanobis", KNOWN).decide(votes(zscore=True)) is State.UNKNOWN
    assert parse_rule("zscore|mahalanobis", KNOWN).decide(votes(zscore=False)) is State.NORMAL


def test_members_share_the_rate_of_false_alarms():
    assert parse_rule("zscore|mahalanobis", KNOWN).rate(1.0) == 0.5
    assert parse_rule("2of3", KNOWN).rate(3.0) == 2.0


@pytest.mark.parametrize("text", ["", "zscore|", "zscores", "0of3", "4of3", "2of9", "zscore&mahalanobis"])
def test_a_rule_that_is_none_is_refused_with_the_names_that_exist(text):
    with pytest.raises(BadInputError) as error:
        parse_rule(text, KNOWN)
    assert "mahalanobis" in (error.value.hint or "")
