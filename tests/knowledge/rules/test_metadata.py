"""What a fingerprint should say about itself, how it is written, and what may follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = "fingerprints/cpu/quota_throttling.yml"
LINK = "https://docs.kernel.org/scheduler/sched-bwc.html"
MISTAKES = [
    ("status: test", "status: deprecated", [
        ("7:9: warning K109: it is deprecated, and nobody is told what to use instead "
         "(metadata: {replaced_by: NAME}, or none)"),
    ]),
    ("status: test", "status: deprecated\nmetadata: {replaced_by: none}", []),
    (LINK, "https://github.com/torvalds/linux/blob/master/MAINTAINERS", [
        ("14:14: warning K302: this link shows another text after the next commit "
         "(name a commit or a tag (key y on GitHub))"),
    ]),
    (LINK, "https://github.com/torvalds/linux/blob/v6.12/MAINTAINERS", []),
    ("  The quota of a cgroup stops its threads in most periods although the host has idle CPUs.",
     "  A container is throttled, while CPUs are idle.", [
        "9:14: warning K303: the description is the title (what is wrong, why it costs)",
    ]),
    ("for: 6s", "for: 1500ms", [
        "23:8: warning K208: windows come each second, so 1500ms is as long as the next full second",
    ]),
    ("{fact: cpu.cgroup_quota, lt: 1000}", "{fact: cpu.cgroup_name, eq: web}", [
        "21:21: warning K213: a tenant chooses cpu.cgroup_name, and with it the answer",
    ]),
    (("    host_idle: {feature: cpu.idle.rate, gte: 0.3}\n    limited: {fact: cpu.cgroup_quota, lt: 1000}\n"
      "  condition: throttled and host_idle and limited"), "  condition: throttled", [
        "18:3: warning K210: one clause is a symptom or a setting, not both, and yet it leads to a fix",
    ]),
    (("throttled: {feature: cpu.cgroup_throttled_share.rate, gte: 0.2}\n"
      "    host_idle: {feature: cpu.idle.rate, gte: 0.3}\n    limited: {fact: cpu.cgroup_quota, lt: 1000}"),
     ("throttled: {feature: cpu.cgroup_throttled_share.rate, deviates: up, by_sigma: 3}\n"
      "    host_idle: {feature: cpu.idle.rate, deviates: up, by_sigma: 3}\n    limited: {share: cpu, gte: 0.3}"), [
        ("27:16: error K209: it only compares with what is usual here, and 'raise_quota' acts by itself "
         "(ask for a fact or a limit, too)"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES)
def test_what_is_missing_or_odd_is_told(
    told: Callable[[str, str, str], list[str]], old: str, new: str, expected: list[str]
) -> None:
    assert told(FILE, old, new) == expected


def test_a_stable_one_shows_what_it_does_when_it_is_blind(told: Callable[[str, str, str], list[str]]) -> None:
    proven = 'status: stable\nmetadata: {proof: "tests/there.py::test_it"}'
    assert told(FILE, "status: test", proven) == [], "its third case does"
    test = "fingerprints/cpu/quota_throttling.test.yml"
    assert told(test, "expect: unknown", "expect: no_match") == ["6:1: warning K704: no case expects unknown"]
