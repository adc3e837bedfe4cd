"""Playbooks on a tree of plain files: a good one passes, and each way of being bad is told."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from unveil.engine.playbook_testing import play
from unveil.knowledge.content import shipped_root
from unveil.knowledge.testing import plans, read_suite

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.records.run import Plan

FIX = "allow_quota_burst"

pytestmark = [pytest.mark.slow, pytest.mark.ansible]


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    for folder in ("fingerprints", "playbooks", "inventory"):
        shutil.copytree(shipped_root() / folder, tmp_path / "kb" / folder)
    return tmp_path / "kb"


def plan_of(kb: Path) -> Plan:
    suite, problems = read_suite(kb)
    assert suite is not None, problems
    return next(plan for plan in plans(suite) if plan.remediation == FIX)


def failures(kb: Path, tmp_path: Path) -> tuple[str, ...]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return play(plan_of(kb), kb / "playbooks/modules", scratch).failures


def test_a_shipped_one_passes_with_a_tenant_s_hostile_text(kb: Path, tmp_path: Path) -> None:
    assert failures(kb, tmp_path) == ()


def test_one_that_writes_in_check_mode_is_told(kb: Path, tmp_path: Path) -> None:
    playbook = kb / f"playbooks/{FIX}/apply.yml"
    task = (
        "  tasks:\n    - name: Write anyway\n      check_mode: false\n      unveil_setting:\n"
        '        settings: "{{ unveil_settings }}"\n        root: "{{ unveil_host_root }}"\n'
    )
    playbook.write_text(playbook.read_text().replace("  tasks:\n", task, 1))
    assert "check mode wrote something" in failures(kb, tmp_path)


def test_one_that_does_nothing_is_told(kb: Path, tmp_path: Path) -> None:
    playbook = kb / f"playbooks/{FIX}/apply.yml"
    text = playbook.read_text()
    playbook.write_text(text[: text.index("  tasks:")] + "  tasks: []\n")
    assert any("after it, not" in failure for failure in failures(kb, tmp_path))


def test_a_setting_that_is_no_file_is_left_out_with_its_reason(tmp_path: Path) -> None:
    suite, _ = read_suite(shipped_root())
    assert suite is not None
    plan = next(plan for plan in plans(suite) if plan.changes[0].address.startswith("nvml:"))
    played = play(plan, shipped_root() / "playbooks/modules", tmp_path)
    assert played.skipped.endswith("is no file")
