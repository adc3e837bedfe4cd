"""What in a knowledge base is dead weight: each finding on a knowledge base that has just that."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.backtest import SeenWindow, Trace
from unveil.knowledge.hygiene import Finding, Kind, Seen, look_through, seen_of
from unveil.knowledge.loading import load
from unveil.records.site import Filter

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.records.fingerprint import Fingerprint

TODAY = date(2026, 11, 30)
QUOTA = "quota_throttling"
POWER = "power_limit_low"


@pytest.fixture
def knowledge(kb: Path) -> KnowledgeBase:
    loaded = load(kb, now_s=1.7e9).knowledge
    assert loaded is not None
    fingerprints = tuple(replace(each, date="2026-11-29", owner="team") for each in loaded.fingerprints)
    return replace(loaded, fingerprints=fingerprints, filters=())


def found(knowledge: KnowledgeBase, *others: Fingerprint, seen: tuple[Seen, ...] = ()) -> list[tuple[Kind, str, str]]:
    knowledge = replace(knowledge, fingerprints=(*knowledge.fingerprints, *others))
    findings = look_through(knowledge, today=TODAY, max_age_days=365, seen=seen)
    return [(each.kind, each.fingerprint, each.what) for each in findings]


def one(knowledge: KnowledgeBase, name: str = QUOTA) -> Fingerprint:
    fingerprint = knowledge.fingerprint(name)
    assert fingerprint is not None
    return fingerprint


def test_a_clean_knowledge_base_has_no_findings(knowledge: KnowledgeBase) -> None:
    assert found(knowledge) == []


def test_an_old_date_no_owner_and_what_is_deprecated_are_told(knowledge: KnowledgeBase) -> None:
    old = replace(one(knowledge), name="old", clauses=one(knowledge).clauses[:2], condition="throttled or host_idle",
                  date="2025-01-01", owner=" ", status="deprecated", group_by="host")  # fmt: skip
    assert [(kind, name) for kind, name, _ in found(knowledge, old)] == [
        (Kind.STALE, "old"), (Kind.UNOWNED, "old"), (Kind.DEPRECATED, "old"),
    ]  # fmt: skip
    assert "698 days ago" in found(knowledge, old)[0][2]


def test_the_same_question_in_other_words_is_a_duplicate(knowledge: KnowledgeBase) -> None:
    quota = one(knowledge)
    names = {"throttled": "a", "host_idle": "b", "limited": "c"}
    again = replace(
        quota, name="zz_again", clauses=tuple(replace(each, name=names[each.name]) for each in reversed(quota.clauses)),
        condition="not (not c or not a) and b",
    )  # fmt: skip
    assert found(knowledge, again) == [(Kind.DUPLICATE, QUOTA, "zz_again asks the same")]
    other = replace(again, condition="a and (b or c)")
    assert [kind for kind, *_ in found(knowledge, other)] == [Kind.SHADOWED]


def test_what_fires_only_when_another_one_does_is_shadowed(knowledge: KnowledgeBase) -> None:
    wide = replace(one(knowledge), name="wide", clauses=one(knowledge).clauses[:1], condition="throttled", hold_s=3.0)
    assert found(knowledge, wide) == [(Kind.SHADOWED, QUOTA, "whenever it fires, wide does, too")]
    assert found(knowledge, replace(wide, hold_s=60.0)) == []
    assert found(knowledge, replace(wide, condition="not throttled")) == []


@pytest.mark.parametrize(
    ("watched_s", "kind", "what"),
    [
        (None, Kind.NEVER, "never in a place (100 windows)"),
        (600.0, Kind.EARLY, "not yet in a place (10 min 00 s watched)"),
        (13.9 * 86400, Kind.EARLY, "not yet in a place (13 days watched)"),
        (14 * 86400.0, Kind.NEVER, "never in a place (14 days watched)"),
    ],
)
def test_one_that_never_fired_is_silent_only_after_a_long_time(
    knowledge: KnowledgeBase, watched_s: float | None, kind: Kind, what: str
) -> None:
    seen = Seen(place="a place", windows=100, matched={POWER: 5}, fired={POWER}, watched_s=watched_s)
    assert found(knowledge, seen=(seen,)) == [(kind, QUOTA, what)]


def test_what_a_filter_hides_is_told_while_it_holds(knowledge: KnowledgeBase) -> None:
    hiding = Filter(
        name="quiet", id="i", title="t", owner="o", reason="CHG-1", fingerprints=(QUOTA,), expires="2026-12-31",
        expires_s=2e9, effect="suppress",
    )  # fmt: skip
    (finding,) = found(replace(knowledge, filters=(hiding,)))
    assert finding == (Kind.DISABLED, QUOTA, "the filter quiet hides it everywhere until 2026-12-31: CHG-1")
    for other in (replace(hiding, effect="no_remediation"), replace(hiding, expires="2026-11-01")):
        assert found(replace(knowledge, filters=(other,))) == []


def test_never_and_always_are_told_of_enough_windows_only(knowledge: KnowledgeBase) -> None:
    seen = Seen(place="a day", windows=100, matched={POWER: 95}, fired={POWER})
    assert found(knowledge, seen=(seen,)) == [
        (Kind.NEVER, QUOTA, "never in a day (100 windows)"),
        (Kind.ALWAYS, POWER, "in 95 of 100 windows of a day"),
    ]
    assert found(knowledge, seen=(replace(seen, windows=10),)) == []
    assert found(knowledge, seen=(replace(seen, matched={QUOTA: 1, POWER: 89}),)) == []


def test_what_only_ever_matches_beside_another_one_is_shadowed(knowledge: KnowledgeBase) -> None:
    both, power = frozenset({QUOTA, POWER}), frozenset({POWER})
    windows = tuple(
        SeenWindow(
            start_s=at, end_s=at + 3, anomalous=False, matched=both if at < 25 else power if at < 40 else frozenset()
        )
        for at in range(100)
    )
    trace = Trace(recording="r", seconds=103, windows=windows, fires=(), actions=(), intervals=())
    assert found(knowledge, seen=(seen_of([trace]),)) == [
        (Kind.SHADOWED, QUOTA, f"in each of its 25 windows of 1 recording {POWER} matched, too"),
    ]


def test_what_this_host_lacks_makes_a_fingerprint_blind(knowledge: KnowledgeBase) -> None:
    (finding,) = look_through(knowledge, today=TODAY, max_age_days=365, missing={POWER: ("gpu.power",)})
    assert finding == Finding(kind=Kind.BLIND, fingerprint=POWER, what="this host has no gpu.power")
