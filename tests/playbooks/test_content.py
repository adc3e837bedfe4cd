"""What is shipped: every remediation loads and is honest, and no playbook lies in check mode or runs text."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from unveil.knowledge.loading import load
from unveil.records.remediation import Mode
from unveil.remediation import templates

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
FOLDERS = sorted(path.parent for path in PLAYBOOKS.glob("*/remediation.yml"))
SHARED = {"unveil_device_settings", "unveil_gpu_settings"}  # what unveil_setting imports: no modules of their own
OURS = {path.stem for path in (PLAYBOOKS / "modules").glob("*.py")} - SHARED
NAMES = [folder.name for folder in FOLDERS]
UNMEASURABLE = {"turn_on_gpu_persistence"}  # whoever measures holds the GPU, and hides what others would wait for
SHELLS = {"shell", "command", "script", "raw", "expect"}


@pytest.fixture(scope="module")
def remediations() -> dict[str, Any]:
    found = load(PLAYBOOKS.parent)
    assert found.knowledge is not None, found.problems
    return {each.name: each for each in found.knowledge.remediations}


def test_there_is_a_remediation_for_each_of_the_six_causes() -> None:
    assert set(NAMES) >= {
        "enable_huge_pages",
        "migrate_memory_home",
        "pin_nic_irqs_local",
        "raise_cpu_quota",
        "relax_dirty_limits",
        "restore_gpu_power_limit",
    }


def test_the_library_is_wide_and_all_of_it_is_asked_for(remediations: dict[str, Any]) -> None:
    found = load(PLAYBOOKS.parent).knowledge
    assert found is not None
    asked = {name for fingerprint in found.fingerprints for name in fingerprint.remediations}
    assert set(remediations) == asked, "a fix that no fingerprint names is never planned"


@pytest.mark.parametrize("name", NAMES)
def test_a_playbook_runs_no_text_and_tells_the_truth_in_check_mode(name: str) -> None:
    plays = yaml.safe_load((PLAYBOOKS / name / "apply.yml").read_text())
    for play in plays:
        assert play["gather_facts"] is False
        assert play["hosts"] == "{{ unveil_target | default('localhost') }}"
        for task in play["tasks"]:
            modules = set(task) - {"name", "when", "register", "loop", "vars"}
            assert len(modules) == 1
            (module,) = modules
            assert module in OURS or module.startswith("ansible.builtin."), "T7, T13"
            assert module.rpartition(".")[2] not in SHELLS


@pytest.mark.parametrize("name", NAMES)
def test_a_remediation_is_bounded_judged_and_undone(name: str, remediations: dict[str, Any]) -> None:
    each = remediations[name]
    assert each.mode in (Mode.MANUAL, Mode.APPROVE), "none of them acts by itself before it has proven itself"
    assert set(each.rollback_triggers) == {"apply_failed", "verify_failed", "canceled", "timeout", "operator"}
    assert each.verification.improve or name in UNMEASURABLE
    assert each.verification.within_s >= 45
    assert (each.verification.settings_hold_s, each.verification.clear_s) == (3, 5)
    assert each.limits.cooldown_s >= each.verification.within_s
    used = {name for setting in each.settings for name in templates.names(setting.address)}
    tame = {variable.name for variable in each.variables if variable.pattern and not variable.untrusted} | {"item"}
    assert used <= tame


@pytest.mark.parametrize("module", sorted(OURS))
def test_a_module_stands_alone_and_documents_itself(module: str) -> None:
    text = (PLAYBOOKS / f"modules/{module}.py").read_text()
    tree = ast.parse(text)
    imported = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported <= {*sys.stdlib_module_names, "ansible.module_utils", "ansible.module_utils.basic", "pynvml"}
    blocks = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    documentation = yaml.safe_load(blocks["DOCUMENTATION"])
    assert documentation["module"] == module
    assert documentation["attributes"]["check_mode"] == {"support": "full"}
    assert yaml.safe_load(blocks["EXAMPLES"])
    assert yaml.safe_load(blocks["RETURN"])
    options = set(re.findall(r'^            "(\w+)": \{"type"', text, re.MULTILINE))
    assert options == set(documentation["options"]), "what is documented is what there is"
    assert text.count("\n") <= 400
