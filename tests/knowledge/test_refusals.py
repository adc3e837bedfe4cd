"""What the schema of every kind refuses, each at its line and column: the safety rules of the formats, and typos."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.schema_check import KINDS, check_schema
from unveil.knowledge.yaml_positions import read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"
TEST = "fingerprints/cpu/quota_throttling.test.yml"
REMEDIATION = "playbooks/raise_quota/remediation.yml"
VALUES = "inventory/values.yml"
PROFILES = "inventory/profiles.yml"
FILTER = "inventory/filters/night_cap.yml"
PLAYBOOK = "playbooks/raise_quota/apply.yml"

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
    (TEST, "at: 6s", "recording: {file: ../host.parquet, from: 0, to: 9}", "9:23", "K005"),
    (TEST, "at: 6s", "recording: {file: /var/host.parquet, from: 0, to: 9}", "9:23", "K005"),
    (TEST, "at: 6s", "recording: {file: host.csv, from: 0, to: 9}", "9:23", "K005"),
    (TEST, "at: 6s", 'recording: {file: demo, from: "0", to: 9}', "9:35", "K005"),
    (TEST, "at: 6s", "recording: {file: demo, from: -1, to: 9}", "9:35", "K005"),
    (TEST, "at: 6s", "recording: {file: demo, from: 0}", "9:16", "K005"),
    (TEST, "at: 6s", "recording: {file: demo, from: 0, until: 9, to: 9}", "9:38", "K004"),
    (TEST, "at: 6s", "recordin: {file: demo, from: 0, to: 9}", "9:5", "K004"),
    (TEST, "    at: 6s\n", "    at: 6s\n    recording: {file: demo, from: 0, to: 9}\n", "10:5", "K005"),
    (TEST, "    at: 6s\n", "", "7:5", "K005"),
    (TEST, "interval: 1s", "intervall: 1s", "5:1", "K004"),
    (TEST, "plan:", "plans:", "14:5", "K004"),
    # Remediation
    (REMEDIATION, "mode: auto", "mode: automatic", "21:7", "K005"),
    (REMEDIATION, "status: stable", "status: test", "7:1", "K501"),
    (REMEDIATION, "status: stable", "status: experimental", "7:1", "K501"),
    (REMEDIATION, ("rollback: {triggers: [apply_failed, verify_failed, canceled, timeout, operator], "
      "available_for: 24h}\n"), "", "2:1", "K005"),
    (REMEDIATION, "timeout: 60s}", "timeout: 60s, gather_facts: true}", "13:43", "K004"),
    # Without `approval` an approval is void after the default of 30 minutes; a wrong one is refused.
    (REMEDIATION, "mode: auto", "mode: approve\napproval: {expires: soon}", "22:21", "K005"),
    (REMEDIATION, "mode: auto", "mode: approve\napproval: {expire: 30m}", "22:12", "K004"),
    (REMEDIATION, "max_attempts: 2", 'max_attempts: "2"', "24:39", "K005"),
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
    (PLAYBOOK, "gather_facts: false", "gather_facts: true", "4:17", "K601"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "place", "check"), REFUSED)
def test_it_is_refused_at_its_line_and_column(
    told: Callable[[str, str, str], list[str]], file: str, old: str, new: str, place: str, check: str
) -> None:
    found = told(file, old, new)
    assert any(line.startswith(f"{place}: error {check}: ") for line in found), found


CORRELATION = """\
apiVersion: unveil/v1
kind: Correlation
name: capped_and_throttled
id: 4c1f2d3e-5a6b-4c7d-8e9f-0a1b2c3d4e5f
title: A quota and a power cap at once
status: test
level: low
description: Somebody bounds this host from two sides at once.
date: "2026-11-29"
correlation:
  type: value_count
  fingerprints: [quota_throttling, power_limit_low]
  timespan: 10s
  condition: {gte: 2}
falsepositives: [A planned throttling of the whole host.]
"""
CORRELATION_TEST = """\
apiVersion: unveil/v1
kind: CorrelationTest
correlation: capped_and_throttled
cases:
  - name: both
    expect: match
    at: 7s
    episodes: [{fingerprint: quota_throttling, from: 5s}]
"""
LABELS = """\
apiVersion: unveil/v1
kind: RecordingLabels
intervals:
  - {from: 0, to: 60, label: healthy}
"""
EXPECTATIONS = """\
apiVersion: unveil/v1
kind: BacktestExpectations
expectations:
  - {fingerprint: quota_throttling, at_least: 1, first_within: 15s}
"""
SOUND = {
    "Fingerprint": FINGERPRINT, "FingerprintTest": TEST, "Remediation": REMEDIATION, "SiteValues": VALUES,
    "Profiles": PROFILES, "Filter": FILTER, "Correlation": CORRELATION, "CorrelationTest": CORRELATION_TEST,
    "RecordingLabels": LABELS, "BacktestExpectations": EXPECTATIONS,
}  # fmt: skip

# Of every kind: a misspelt key, a word that is none of its choices, and a text where a number belongs (or the reverse).
OF_EVERY_KIND = [
    ("Fingerprint", "falsepositives:", "falsepositive:", "25:1", "K004"),
    ("Fingerprint", "level: medium", "level: mid", "8:8", "K005"),
    ("Fingerprint", "gte: 0.2", 'gte: "0.2"', "19:64", "K005"),
    ("FingerprintTest", "entity: cgroup", "entty: cgroup", "10:5", "K004"),
    ("FingerprintTest", "expect: unknown", "expect: dunno", "24:13", "K005"),
    ("FingerprintTest", "at: 5s", "at: 5", "20:9", "K005"),
    ("Remediation", "settings_hold_for", "setting_hold_for", "28:3", "K004"),
    ("Remediation", "mode: auto", "mode: automatically", "21:7", "K005"),
    ("Remediation", "max_hosts: 5", 'max_hosts: "5"', "24:66", "K005"),
    ("SiteValues", "values:", "value:", "3:1", "K004"),
    ("SiteValues", "kind: SiteValues", "kind: SiteValue", "2:7", "K005"),
    ("SiteValues", "quota_share: 1", "quota_share: [1]", "3:24", "K005"),
    ("Profiles", "remediations:", "remediation:", "5:52", "K004"),
    ("Profiles", "mode: approve", "mode: approved", "5:43", "K005"),
    ("Profiles", "name: pilot", "name: 7", "5:12", "K005"),
    ("Filter", "reason:", "reasons:", "7:1", "K004"),
    ("Filter", "expires:", "effect: hide\nexpires:", "10:9", "K005"),
    ("Filter", 'expires: "2999-03-31"', "expires: 2999", "10:10", "K005"),
    ("Correlation", "timespan:", "time_span:", "13:3", "K004"),
    ("Correlation", "type: value_count", "type: value_counts", "11:9", "K005"),
    ("Correlation", "gte: 2", 'gte: "2"', "14:20", "K005"),
    ("CorrelationTest", "episodes:", "episode:", "8:5", "K004"),
    ("CorrelationTest", "expect: match", "expect: unknown", "6:13", "K005"),
    ("CorrelationTest", "at: 7s", "at: 7", "7:9", "K005"),
    ("RecordingLabels", "label:", "lable:", "4:23", "K004"),
    ("RecordingLabels", "kind: RecordingLabels", "kind: RecordingLabel", "2:7", "K005"),
    ("RecordingLabels", "to: 60", 'to: "60"', "4:19", "K005"),
    ("BacktestExpectations", "at_least:", "at_lest:", "4:37", "K004"),
    ("BacktestExpectations", "kind: BacktestExpectations", "kind: Expectations", "2:7", "K005"),
    ("BacktestExpectations", "at_least: 1", 'at_least: "1"', "4:47", "K005"),
]  # fmt: skip


def sound(kb: Path, kind: str) -> str:
    """Return the text of a document of this kind that is right: a file of the knowledge base, or one from above."""
    told = SOUND[kind]
    return told if "\n" in told else (kb / told).read_text()


def test_every_kind_is_among_them_and_admits_what_is_right(kb: Path) -> None:
    assert set(SOUND) == set(KINDS) == {kind for kind, *_ in OF_EVERY_KIND}
    for kind in SOUND:
        assert check_schema(read_yaml("file.yml", sound(kb, kind).encode()), (kind,)) == ()


@pytest.mark.parametrize(("kind", "old", "new", "place", "check"), OF_EVERY_KIND)
def test_every_kind_refuses_it_at_its_line_and_column(
    kb: Path, kind: str, old: str, new: str, place: str, check: str
) -> None:
    text = sound(kb, kind)
    assert old in text
    found = check_schema(read_yaml("file.yml", text.replace(old, new, 1).encode()), (kind,))
    assert any(str(each).startswith(f"file.yml:{place}: error {check}: ") for each in found), list(map(str, found))
