"""What departs from the format is told at its place, in words, with the nearest right one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"
TEST = "fingerprints/cpu/quota_throttling.test.yml"

MISTAKES = [
    (FINGERPRINT, "condition: throttled", "conditions: throttled", [
        "18:3: error K005: condition is missing",
        "22:3: error K004: unknown key 'conditions' (did you mean condition?)",
    ]),
    (FINGERPRINT, "status: test", "status: testing", [
        "7:9: error K005: 'testing' is not known here (did you mean test?)",
    ]),
    (FINGERPRINT, "group_by: cgroup", "group_by: gpu_uuid", [
        "16:11: error K005: 'gpu_uuid' is not known here (did you mean gpu?)",
    ]),
    (FINGERPRINT, "kind: Fingerprint", "kind: Fingerprnt", [
        "3:7: error K005: unknown kind 'Fingerprnt' (did you mean Fingerprint?)",
    ]),
    (FINGERPRINT, "kind: Fingerprint", "kind: Filter", [
        "3:7: error K005: a Filter does not belong here (here: Fingerprint)",
    ]),
    (FINGERPRINT, "gte: 0.2}", 'gte: "0.2"}', [
        "19:64: error K005: '0.2' is text where a number belongs (leave the quotes out)",
    ]),
    (FINGERPRINT, "for: 6s", "for: 6", [
        "23:8: error K005: 6 is a number where text belongs (quote it)",
    ]),
    (FINGERPRINT, "for: 6s", "for: 6sec", [
        "23:8: error K005: '6sec' is not a duration (write a number and a unit: 6s, 15m, 24h, 7d)",
    ]),
    (FINGERPRINT, "title: A container is throttled while CPUs are idle", "title: [a]", [
        "6:8: error K005: a list where text belongs",
    ]),
    (FINGERPRINT, "gte: 0.2}", "gte: 0.2, lt: 0.9}", [
        "19:69: error K005: lt and gte stand together: exactly one is needed (make two clauses of it)",
    ]),
    (FINGERPRINT, ", gte: 0.2}", "}", [
        ("19:5: error K005: exactly one of lt, lte, gt, gte, eq, neq, deviates with by_sigma or deviates with by_ratio "
         "is needed"),
    ]),
    (FINGERPRINT, "gte: 0.2}", "deviates: up}", [
        "19:5: error K005: deviates needs by_sigma or by_ratio",
    ]),
    (FINGERPRINT, "{feature: cpu.cgroup_throttled_share.rate, gte: 0.2}", "{gte: 0.2}", [
        "19:5: error K005: exactly one of feature, fact or share is needed",
    ]),
    (FINGERPRINT, "host_idle: {feature: cpu.idle.rate, gte: 0.3}", "host_idle: 0.3", [
        "20:16: error K005: 0.3 is a number where a mapping belongs",
    ]),
    (FINGERPRINT, 'date: "2026-11-29"', 'date: "2026-13-29"', [
        "13:7: error K005: '2026-13-29' is not a day (write it as \"2026-11-29\")",
    ]),
    (FINGERPRINT, "id: 7c0a8d0e-6b1f-4c58-9a54-2f0f5a1f3b11", "id: 7c0a8d0e-6b1f-1c58-9a54-2f0f5a1f3b11", [
        ("5:5: error K101: '7c0a8d0e-6b1f-1c58-9a54-2f0f5a1f3b11' is not a UUIDv4 (python3 -c 'import uuid; "
         "print(uuid.uuid4())')"),
    ]),
    (FINGERPRINT, "tags: [subsystem.cpu, cause", "tags: [subsystem.cpu, subsystem.cpu, cause", [
        "15:23: error K005: 'subsystem.cpu' stands twice in the list",
    ]),
    (FINGERPRINT, "falsepositives: [The tenant bought exactly this quota.]\n", "", [
        "2:1: error K301: falsepositives is missing",
    ]),
    (TEST, "expect: no_match", "expect: nomatch", [
        "19:13: error K005: 'nomatch' is not known here (did you mean no_match?)",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "expected"), MISTAKES)
def test_a_departure_from_the_format_is_told_where_it_is(
    told: Callable[[str, str, str], list[str]], file: str, old: str, new: str, expected: list[str]
) -> None:
    assert told(file, old, new) == expected
