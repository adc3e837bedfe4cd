"""Pages of a knowledge base: one each, with the evidence that was given, and none that was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.mutation import MutationResult
from unveil.knowledge.pages import INDEX, STYLE, Evidence, pages
from unveil.knowledge.scorecard import cards
from unveil.knowledge.testing import read_suite, run_suite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUOTA = "fingerprints/quota_throttling.html"


@pytest.fixture
def made(kb: Path) -> Callable[..., dict[str, str]]:
    def make(*mutated: MutationResult) -> dict[str, str]:
        suite, problems = read_suite(kb)
        assert suite is not None, problems
        report = run_suite(suite)
        evidence = Evidence(
            report=report, mutated=mutated, backtest=None,
            cards=cards(suite.knowledge.fingerprints, report, mutated, (), None),
            sources={"fingerprints/cpu/quota_throttling.yml": "name: <b>quota</b>"},
        )  # fmt: skip
        return pages(suite.knowledge, evidence, version="1.2")

    return make


def test_there_is_a_page_for_each_thing_and_the_same_again(made: Callable[..., dict[str, str]]) -> None:
    first = made()
    assert set(first) == {
        STYLE, INDEX, QUOTA, "fingerprints/power_limit_low.html", "remediations/raise_quota.html",
    }  # fmt: skip
    assert made() == first
    assert first[STYLE].startswith("/* unveil kb docs */")
    assert "written by unveil 1.2" in first[INDEX]


def test_a_page_shows_what_is_asked_and_what_is_known(made: Callable[..., dict[str, str]]) -> None:
    survivor = MutationResult(fingerprint="quota_throttling", mutants=4, survivors=("for: 7s",))
    text = made(survivor)[QUOTA]
    assert "<code>cpu.cgroup_throttled_share.rate gte 0.2</code>" in text
    assert "<code>throttled and host_idle and limited</code>" in text
    assert "<dt>mutants noticed</dt><dd>75 %</dd>" in text
    assert "<li>for: 7s</li>" in text
    assert 'href="../remediations/raise_quota.html"' in text
    assert "name: &lt;b&gt;quota&lt;/b&gt;" in text
    assert "hit rate" not in text  # nothing was watched
    assert "<dt>mutants noticed</dt><dd>–</dd>" in made()[QUOTA]
