"""The format Remediation: what may change, where values come from, and what auto demands."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from unveil.knowledge.formats.remediation import automatic_rule
from unveil.knowledge.schema_export import schemas

PROPERTIES = schemas()["Remediation"]["properties"]


@pytest.mark.parametrize(
    ("address", "admitted"),
    [
        ("file:/sys/kernel/mm/transparent_hugepage/enabled", True), ("sysctl:vm.dirty_bytes", True),
        ("irq:{{ item }}/smp_affinity_list", True), ("nvml:{{ gpu }}/power_limit", True), ("{{ quota_setting }}", True),
        ("/etc/passwd", False), ("http://x", False), ("", False), ("shell:rm -rf /", False),
    ],
)  # fmt: skip
def test_addresses(address: str, admitted: bool) -> None:
    assert Draft202012Validator(PROPERTIES["settings"]).is_valid([{"address": address}]) is admitted


@pytest.mark.parametrize(
    ("origin", "admitted"),
    [
        ("match.nic", True), ("fact.network.nic_irqs", True), ("setting.cpu.cgroup_quota", True),
        ("site.dirty_ratio", True), ("env.HOME", False), ("fact.x", False), ("match.", False), ("nic", False),
    ],
)  # fmt: skip
def test_origins(origin: str, admitted: bool) -> None:
    variables = {"x": {"type": "string", "from": origin}}
    assert Draft202012Validator(PROPERTIES["variables"]).is_valid(variables) is admitted


@pytest.mark.parametrize("name", ["item", "unveil_settings", "unveil_target", "Upper", "a-b"])
def test_names_that_are_ours_are_no_names_of_variables(name: str) -> None:
    assert not Draft202012Validator(PROPERTIES["variables"]).is_valid({name: {"type": "string"}})


@pytest.mark.parametrize(
    ("change", "admitted"),
    [
        ({}, True), ({"status": "test"}, False), ({"limits": {}}, False), ({"rollback": {"triggers": []}}, False),
        ({"risk": {"reversible": True, "interrupts_workload": True}}, False),
        ({"mode": "approve", "status": "test"}, True),
    ],
)  # fmt: skip
def test_auto_demands_safeguards_in_the_editor_too(change: dict[str, Any], admitted: bool) -> None:
    sound = {
        "mode": "auto", "status": "stable", "risk": {"reversible": True, "interrupts_workload": False},
        "rollback": {"triggers": ["verify_failed"]}, "limits": {"max_hosts": 1},
    }  # fmt: skip
    assert Draft202012Validator(automatic_rule()).is_valid(sound | change) is admitted
