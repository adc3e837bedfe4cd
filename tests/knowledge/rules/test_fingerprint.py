"""A fingerprint whose condition, clauses or metadata cannot be right is told so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"

MISTAKES = [
    (FINGERPRINT, "throttled and host_idle and limited", "throttled and limited", [
        "20:5: error K201: clause 'host_idle' is not used in the condition (use it or remove it)",
    ]),
    (FINGERPRINT, "throttled and host_idle and limited", "throttled and host_idle and limted", [
        "22:42: error K202: no clause is named 'limted' (did you mean 'limited'?)",
    ]),
    (FINGERPRINT, "throttled and host_idle and limited", "throttled and host_idle limited", [
        "22:38: error K217: expected 'and', 'or' or the end, found 'limited'",
    ]),
    (FINGERPRINT, "throttled and host_idle and limited", "throttled and 1 of gpu_*", [
        "22:28: error K202: no clause is covered by 'gpu_*'",
    ]),
    (FINGERPRINT, "gte: 0.3}", "gte: 30}", [
        "20:46: warning K205: cpu.idle.rate is never 30: it lies between 0 and 1 (60 % is 0.6)",
    ]),
    (FINGERPRINT, "lt: 1000", "eq: unlimited", [
        "21:43: error K218: cpu.cgroup_quota is a number, so 'unlimited' never equals it (leave the quotes out)",
    ]),
    (FINGERPRINT, "{fact: cpu.cgroup_quota, lt: 1000}", "{fact: memory.thp_enabled, lt: 3}", [
        "21:41: error K218: memory.thp_enabled is a text: lt does not apply (use eq, neq, in, not_in)",
    ]),
    (FINGERPRINT, "{feature: cpu.idle.rate, gte: 0.3}", "{feature: gpu.util.mean, gte: 0.3}", [
        "20:26: error K219: gpu.util.mean is of a gpu, not of a host (entity: gpu)",
    ]),
    (FINGERPRINT, "{feature: cpu.idle.rate, gte: 0.3}", "{feature: gpu.util.mean, gte: 0.3, entity: gpu}", [
            ]),
    (FINGERPRINT, "{feature: cpu.idle.rate, gte: 0.3}", "{feature: storage.disk_reads.rate, gte: 3, entity: disk}", [
        "20:67: error K219: no disk is known to belong to a cgroup (here: cgroup, gpu, host, nic, node)",
    ]),
    (FINGERPRINT, "_share.rate, gte: 0.2", "_share.rate, deviates: up", [
        "19:5: error K005: deviates needs by_sigma or by_ratio",
    ]),
    (FINGERPRINT, "_share.rate, gte: 0.2", "_share.rate, against: peers, gte: 0.2", [
        "19:59: error K220: against goes with deviates",
    ]),
    (FINGERPRINT, "_share.rate, gte: 0.2", "_share.rate, slope_over: 30s, deviates: up, by_ratio: 2", [
        "19:59: error K220: a slope is compared with a number only (lt, lte, gt or gte, per second)",
    ]),
    (FINGERPRINT, "_share.rate, gte: 0.2", "_share.rate, slope_over: 1h, gte: 2", [
        "19:71: error K220: a slope is taken over 3 s to 10 min",
    ]),
    (FINGERPRINT, "_share.rate, gte: 0.2", "_share.rate, per: cpu.idle.rate, deviates: up, by_ratio: 2", [
        ("19:59: error K220: this host's past is known of features, not of ratios "
         "(against: peers, or compare with a number)"),
    ]),
    (FINGERPRINT, "_share.rate, gte: 0.2", "_share.rate, per: gpu.util.mean, gte: 2", [
        ("19:64: error K220: gpu.util.mean is of a gpu, and cpu.cgroup_throttled_share.rate of a cgroup "
         "(a feature of a cgroup or of the host)"),
    ]),
    (FINGERPRINT, "_share.rate, gte: 0.2", "_share.rate, per: cpu.idel.rate, gte: 2", [
        "19:64: error K203: unknown feature 'cpu.idel.rate' (did you mean cpu.idle.rate?)",
    ]),
    (FINGERPRINT, "idle.rate, gte: 0.3}", "idle.rate, deviates: up, by_ratio: 2, against: peers}", [
        ("20:77: error K220: a host is alone: it has no peers "
         "(take a feature of GPUs, NICs, disks, nodes or cgroups, and group by these)"),
    ]),
    (FINGERPRINT, "_share.rate, gte", "_share.rate, entity: host, gte", [
        "19:67: error K219: cpu.cgroup_throttled_share.rate is of a cgroup, not of a host (entity: cgroup)",
    ]),
    (FINGERPRINT, "falsepositives: [The tenant bought exactly this quota.]", "falsepositives: [None.]", [
        "25:1: error K301: no false positives are named",
    ]),
    (FINGERPRINT, "level: medium", "level: critical", [
        "8:8: warning K304: level critical with status test",
    ]),
    (FINGERPRINT, "owner: platform\n", "", [
        "4:7: warning K110: nobody owns it (owner: the team that answers for false alarms)",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "expected"), MISTAKES)
def test_a_signature_that_cannot_be_meant_is_told(
    told: Callable[[str, str, str], list[str]], file: str, old: str, new: str, expected: list[str]
) -> None:
    assert told(file, old, new) == expected
