"""How far a change reaches: what gets another answer, and which fixes could newly run, with which bound."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.backtest import SeenWindow, Trace
from unveil.knowledge.behaviour import differing
from unveil.knowledge.blast_radius import BlastRadius, blast_radius
from unveil.knowledge.loading import load
from unveil.records.remediation import Mode

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.knowledge.knowledge_base import KnowledgeBase

QUOTA = "quota_throttling"


@pytest.fixture
def knowledge(kb: Path) -> KnowledgeBase:
    found = load(kb, now_s=1.7e9).knowledge
    assert found is not None
    return found


def trace(recording: str, host: str, *matched: int) -> Trace:
    windows = tuple(
        SeenWindow(start_s=at, end_s=at + 3, anomalous=False, matched=frozenset({QUOTA} if at in matched else ()))
        for at in range(10)
    )
    return Trace(recording=recording, seconds=13, windows=windows, fires=(), actions=(), intervals=(), host=host)


def radius(old: KnowledgeBase, new: KnowledgeBase, before: list[Trace], after: list[Trace]) -> BlastRadius:
    return blast_radius(old, new, list(differing(before, after)), after)


def with_mode(knowledge: KnowledgeBase, mode: Mode) -> KnowledgeBase:
    return replace(knowledge, remediations=tuple(replace(each, mode=mode) for each in knowledge.remediations))


def test_what_gets_another_answer_is_counted_and_the_fixes_of_what_matches_more_are_named(
    knowledge: KnowledgeBase,
) -> None:
    manual = with_mode(knowledge, Mode.MANUAL)
    before = [trace("a", "one", 1, 2), trace("b", "one"), trace("c", "two")]
    after = [trace("a", "one", 2, 3), trace("b", "one"), trace("c", "two")]
    assert radius(manual, manual, before, after).lines == (
        "another answer in 1 of 3 recordings, 2 of 30 windows, on 1 of 2 hosts",
        f"raise_quota could newly run (manual) for {QUOTA}",
    )
    assert radius(manual, manual, after, [trace("a", "one", 2), *after[1:]]).fixes == (), "fewer matches, no fix more"
    assert radius(manual, manual, before, before).lines == ()


def test_a_fix_whose_bound_rises_or_that_is_newly_led_to_could_run_although_nothing_was_watched(
    knowledge: KnowledgeBase,
) -> None:
    manual, approve = with_mode(knowledge, Mode.MANUAL), with_mode(knowledge, Mode.APPROVE)
    assert radius(manual, approve, [], []).lines == (f"raise_quota could newly run (approve) for {QUOTA}",)
    assert radius(approve, manual, [], []).lines == ()
    assert radius(manual, with_mode(knowledge, Mode.OBSERVE), [], []).lines == ()
    alone = replace(manual, fingerprints=tuple(replace(each, remediations=()) for each in manual.fingerprints))
    assert radius(alone, manual, [], []).lines == (f"raise_quota could newly run (manual) for {QUOTA}",)
