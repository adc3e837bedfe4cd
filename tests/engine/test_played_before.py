"""What passed is not played again, until something that it depends on has changed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.engine.played_before import PlayedBefore
from unveil.knowledge.testing import plans, read_suite

if TYPE_CHECKING:
    import pytest


def test_what_passed_is_known_until_the_plan_the_playbook_or_a_module_changes(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kb = Path(shutil.copytree(few, tmp_path / "kb"))
    suite, problems = read_suite(kb)
    assert suite is not None, problems
    plan = next(plans(suite, {"cgroup_cpu_quota_throttling"}))
    modules = kb / "playbooks/modules"
    assert not PlayedBefore(modules).passed(plan)
    PlayedBefore(modules).note(plan)
    assert PlayedBefore(modules).passed(plan)
    assert not PlayedBefore(modules).passed(replace(plan, untrusted=()))
    with Path(plan.playbook).open("a") as file:
        file.write("# edited\n")
    assert not PlayedBefore(modules).passed(plan)
    PlayedBefore(modules).note(plan)
    with (modules / "unveil_setting.py").open("a") as file:
        file.write("# edited\n")
    assert not PlayedBefore(modules).passed(plan)
