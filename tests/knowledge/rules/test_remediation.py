"""A remediation that may act by itself, or be steered by a tenant, is safe or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

REMEDIATION = "playbooks/raise_quota/remediation.yml"

VALUE = """value: "{{ '-1' if share >= 1 else '50000' }}\""""

MISTAKES = [
    (REMEDIATION, VALUE, "value: 50000", [
        ("20:45: warning K214: 50000 for {{ quota_setting }} is a number that a site would choose "
         "(a variable from site.NAME, with it as the default)"),
    ]),
    (REMEDIATION, VALUE, 'value: "-1"', []),
    (REMEDIATION, "status: stable", "status: test", [
        "7:1: error K501: mode auto needs status stable, not test (or lower the mode to approve)",
    ]),
    (REMEDIATION, "interrupts_workload: false", "interrupts_workload: true", [
        "22:39: error K501: mode auto must not interrupt the workload (or lower the mode to approve)",
    ]),
    (REMEDIATION, "triggers: [apply_failed, verify_failed, canceled, timeout, operator]", "triggers: []", [
        ("25:12: error K501: mode auto needs rollback after apply_failed and verify_failed (or lower the mode to "
         "approve)"),
    ]),
    (REMEDIATION, ", max_hosts: 5", "", [
        "24:1: error K501: mode auto needs limits.max_hosts (or lower the mode to approve)",
    ]),
    (REMEDIATION, "within: 60s", "within: 4s", [
        "27:11: error K502: verify.within 4s ends before fingerprint_clear_for 6s",
    ]),
    (REMEDIATION, "direction: up, effect: 0.5", "direction: up, effect: 0.5, after: 60s", [
        "31:21: error K502: verify.within 60s ends before values of cpu.psi_some.rate count",
    ]),
    (REMEDIATION, "cpu.psi_some.rate, direction: up", "cpu.progress_step.last, direction: up", [
        ("31:21: error K502: cpu.progress_step.last looks a minute back, so it would be compared with itself "
         "(say after: 80s)"),
    ]),
    (REMEDIATION, "cooldown: 30m", "cooldown: 30s", [
        "24:20: error K506: cooldown 30s ends before verification, 60s",
    ]),
    (REMEDIATION, "apply: apply.yml", "apply: aply.yml", [
        "13:18: error K504: there is no file 'aply.yml' here (the playbook lies beside remediation.yml)",
    ]),
    (REMEDIATION, "apply: apply.yml", "apply: ../modules/apply.yml", [
        "13:18: error K504: '../modules/apply.yml' leads out of the folder (the playbook lies beside remediation.yml)",
    ]),
    (REMEDIATION, ', pattern: "^cgroup:/.+$"', "", [
        ("16:3: error K507: 'quota_setting' is string without a pattern and reaches a setting (pattern: what its "
         "text may be)"),
    ]),
    (REMEDIATION, ', pattern: "^/[A-Za-z0-9_./:-]*$"', "", [
        ("15:3: error K507: 'cgroup' is string without a pattern and reaches the playbook (pattern: what its "
         "text may be)"),
    ]),
    (REMEDIATION, '{address: "{{ quota_setting }}"', '{address: "file:/sys/{{ tenant }}"', [
        "20:15: error K508: 'tenant' is text that a tenant chose: it must not reach a setting",
    ]),
    (REMEDIATION, '{address: "{{ quota_setting }}"', '{address: "{{ quota_settng }}"', [
        "20:15: error K511: 'quota_settng' is no variable (did you mean quota_setting?)",
    ]),
    (REMEDIATION, '{address: "{{ quota_setting }}"', '{address: "file:/etc/passwd"', [
        ("20:15: error K005: 'file:/etc/passwd' is no file setting that may be changed (an address is "
         "file:/sys/…, sysctl:NAME, irq:N/smp_affinity_list, cgroup:PATH/FILE, ethtool:NIC/ring/rx, "
         "nvml:UUID/power_limit, service:UNIT/active or memory:CGROUP/nodes)"),
    ]),
    (REMEDIATION, 'pattern: "^cgroup:/.+$"', 'pattern: "^cgroup:/(.+$"', [
        "16:74: error K509: the pattern cannot be read: missing ), unterminated subpattern at position 9",
    ]),
    (REMEDIATION, "default: 1, min: 0, max: 4", "default: 5, min: 0, max: 4", [
        "17:58: error K510: the default 5 is more than max 4",
    ]),
    (REMEDIATION, "default: 1, min", "default: many, min", [
        "17:58: error K510: the default 'many' is not of type number",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "expected"), MISTAKES)
def test_a_remediation_that_is_not_safe_is_refused(
    told: Callable[[str, str, str], list[str]], file: str, old: str, new: str, expected: list[str]
) -> None:
    assert told(file, old, new) == expected
