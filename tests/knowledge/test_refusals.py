"""What the schema of every kind refuses, each at its line and column: the safety rules of the formats, and typos."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"
TEST = "fingerprints/cpu/quota_throttling.test.yml"
REMEDIATION = "playbooks/raise_quota/remediation.yml"
VALUES = "inventory/values.yml"
PROFILES = "inventory/profiles.yml"
FILTER = "inventory/filters/night_cap.yml"

REFUSED = [
    # Fingerprint
    (FINGERPRINT, "kind: Fingerprint", "kind: Fingerprnt", "3:7", "K005"),
    (FINGERPRINT, "apiVersion: unveil/v1", "apiVersion: unveil/v2", "2:13", "K005"),
    (FINGERPRINT, "7c0a8d0e-6b1f-4c58-9a54-2f0f5a1f3b11", "7c0a8d0e-6b1f-1c58-9a54-2f0f5a1f3b11", "5:5", "K101"),
    (FINGERPRINT, "status: test", "status: tested", "7:9", "K005"),
    (FINGERPRINT, "level: medium", "level: urgent", "8:8", "K005"),
    (FINGERPRINT, "status: test", "stauts: test", "7:1", "K004"),
    (FINGERPRINT, "group_by: cgroup", "group_by: container", "16:11", "K005"),
    (FINGERPRINT, "{feature: cpu.idle.rate, gte: 0.3}",
     "{feature: cpu.idle.rate, gte: 0.3, lte: 0.5}", "20:51", "K005"),
    (FINGERPRINT, "{feature: cpu.idle.rate, gte: 0.3}", "{feature: cpu.idle.rate}", "20:5", "K005"),
    (FINGERPRINT, "{feature: cpu.idle.rate, gte: 0.3}", '{feature: cpu.idle.rate, gte: "0.3"}', "20:46", "K005"),
    (FINGERPRINT, "{feature: cpu.idle.rate, gte: 0.3}",
     "{feature: cpu.idle.rate, fact: cpu.count, gte: 1}", "20:41", "K004"),
    (FINGERPRINT, "host_idle:", "not:", "20:5", "K005"),
    (FINGERPRINT, "  for: 6s", "  for: 6", "23:8", "K005"),
    (FINGERPRINT, "  for: 6s", "  for: six", "23:8", "K005"),
    (FINGERPRINT, "falsepositives: [The tenant bought exactly this quota.]", "falsepositives: []", "25:1", "K301"),
    (FINGERPRINT, 'date: "2026-11-29"', 'date: "29.11.2026"', "13:7", "K005"),
    (FINGERPRINT, "tags: [subsystem.cpu,", "tags: [subsys.cpu,", "15:8", "K005"),
    # FingerprintTest
    (TEST, "expect: match", "expect: yes", "8:13", "K003"),
    (TEST, "expect: match", "expect: mach", "8:13", "K005"),
    (TEST, "at: 6s", "at: 6", "9:9", "K005"),
    (TEST, "interval: 1s", "intervall: 1s", "5:1", "K004"),
    (TEST, "plan:", "plans:", "14:5", "K004"),
    # Remediation
    (REMEDIATION, "mode: auto", "mode: automatic", "21:7", "K005"),
    (REMEDIATION, "status: stable", "status: test", "7:1", "K501"),
    (REMEDIATION, "reversible: true", "reversible: false", "22:21", "K501"),
    (REMEDIATION, "interrupts_workload: false", "interrupts_workload: true", "22:39", "K501"),
    (REMEDIATION, "requires_reboot: false", "requires_reboot: true", "22:67", "K501"),
    (REMEDIATION, ", max_hosts: 5", "", "24:1", "K501"),
    (REMEDIATION, "rollback: {triggers: [apply_failed, verify_failed,",
     "rollback: {triggers: [apply_failed,", "25:12", "K501"),
    (REMEDIATION, "risk: {impact: low,", "risk: {impact: huge,", "22:16", "K005"),
    (REMEDIATION, ", reversible: true", "", "22:7", "K005"),
    (REMEDIATION, "rollback: {", "rolback: {", "25:1", "K004"),
    (REMEDIATION, "timeout: 60s", "timeout: forever", "13:38", "K005"),
    (REMEDIATION, "from: match.cgroup", "from: event.cgroup", "15:32", "K005"),
    (REMEDIATION, "type: number, from", "type: float, from", "17:17", "K005"),
    (REMEDIATION, "direction: down, effect: 0.5", "direction: sideways, effect: 0.5", "30:67", "K005"),
    (REMEDIATION, "preconditions: [still_matching,", "preconditions: [still_matchin,", "23:17", "K005"),
    # what a site owns
    (VALUES, "values: {quota_share: 1}", "values: {Quota-Share: 1}", "3:10", "K005"),
    (VALUES, "values: {quota_share: 1}", "values: {quota_share: {a: 1}}", "3:23", "K005"),
    (VALUES, "values: {quota_share: 1}", "quota_share: 1", "3:1", "K004"),
    (PROFILES, "default: observe", "default: all", "3:10", "K005"),
    (PROFILES, 'hosts: ["gpu-*"], ', "", "5:5", "K005"),
    (PROFILES, "raise_quota: auto", "raise_quota: always", "5:80", "K005"),
    (FILTER, 'expires: "2999-03-31"', 'expires: "never"', "10:10", "K005"),
    (FILTER, 'expires: "2999-03-31"\n', "", "1:1", "K005"),
    (FILTER, "reason: Utility contract, see change 4711.", "reason: because", "7:9", "K005"),
    (FILTER, "fingerprints: [power_limit_low]", "fingerprints: []", "8:15", "K005"),
    (FILTER, "match: {hosts:", "match: {host:", "9:9", "K004"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "place", "check"), REFUSED)
def test_it_is_refused_at_its_line_and_column(
    told: Callable[[str, str, str], list[str]], file: str, old: str, new: str, place: str, check: str
) -> None:
    found = told(file, old, new)
    assert any(line.startswith(f"{place}: error {check}: ") for line in found), found
