"""The cases beside a correlation: episodes of several hosts and entities, over time, through the correlator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.correlation_testing import run_correlation_document
from unveil.knowledge.yaml_positions import read_yaml
from unveil.records.correlation import Correlation
from unveil.records.entity import EntityKind

if TYPE_CHECKING:
    from unveil.knowledge.made_up import CaseResult

HEAD = "apiVersion: unveil/v1\nkind: CorrelationTest\ncorrelation: together\ncases:\n"


def run(text: str, **more: object) -> list[CaseResult]:
    """Run cases, given as lines below ``cases``, beside a correlation of slow and hot."""
    told: dict[str, object] = {
        "type": "temporal", "fingerprints": ("slow", "hot"), "group_by": EntityKind.HOST, "timespan_s": 5.0,
        "hold_s": 0.0, "keep_firing_s": 2.0, **more,
    }  # fmt: skip
    words = dict.fromkeys(("id", "title", "status", "level", "description"), "")
    document = read_yaml("together.test.yml", (HEAD + text).encode())
    assert document.problems == ()
    correlation = Correlation(name="together", **words, **told)  # type: ignore[arg-type]  # of the kinds above
    return list(run_correlation_document(correlation, document))


def answers(episodes: str, seconds: tuple[int, ...], entity: str = "", **more: object) -> list[str]:
    named = f", entity: {entity}" if entity else ""
    lines = [f"  - {{name: case, expect: match, at: {at}s{named}, episodes: [{episodes}]}}\n" for at in seconds]
    return [each.got for each in run("".join(lines), **more)]


def test_each_case_has_its_line_and_says_what_differs() -> None:
    both = "[{fingerprint: slow}, {fingerprint: hot}]"
    right, wrong = run(
        f"  - {{name: both, expect: match, at: 1s, episodes: {both}}}\n"
        "  - {name: one, expect: match, at: 1s, episodes: [{fingerprint: hot}]}\n"
    )
    assert (right.name, right.line, right.passed, right.got) == ("both", 5, True, "match")
    assert (wrong.name, wrong.line, wrong.failures) == ("one", 6, ("expected match, got no_match",))
    assert right.clauses


def test_an_episode_counts_from_its_fire_until_the_time_span_after_its_end() -> None:
    episodes = "{fingerprint: slow, from: 2s, until: 3s}, {fingerprint: hot, from: 6s}"
    assert answers(episodes, (5, 6, 8)) == ["no_match", "match", "match"]
    assert answers(episodes, (20,)) == ["no_match"], "time span and keep_firing_for are over"


def test_it_has_to_hold_and_it_outlives_its_last_window() -> None:
    assert answers("{fingerprint: slow}, {fingerprint: hot, from: 2s}", (4, 5), hold_s=3.0) == ["no_match", "match"]
    ended = "{fingerprint: slow, until: 2s}, {fingerprint: hot, until: 2s}"
    assert answers(ended, (2, 3, 9), timespan_s=1.0) == ["match", "match", "no_match"]


def test_entities_are_told_apart_and_one_that_binds_the_group_belongs_to_it() -> None:
    episodes = '{fingerprint: slow, entity: gpu:GPU-1, binds: {node: "0"}}, {fingerprint: hot, entity: node:0}'
    assert answers(episodes, (1,), entity="node:0", group_by=EntityKind.NODE) == ["match"]
    assert answers(episodes, (1,), entity="node:1", group_by=EntityKind.NODE) == ["no_match"]
    assert answers(episodes, (1,), group_by=EntityKind.NODE) == ["match"], "the made-up node is node 0"


@pytest.mark.parametrize(("hosts", "answer"), [(("a", "a"), "no_match"), (("a", "b"), "match")])
def test_episodes_of_several_hosts_are_counted(hosts: tuple[str, str], answer: str) -> None:
    episodes = ", ".join(f"{{fingerprint: slow, host: {host}}}" for host in hosts)
    assert answers(episodes, (1,), type="value_count", count_of="host", at_least=2, fingerprints=("slow",)) == [answer]
