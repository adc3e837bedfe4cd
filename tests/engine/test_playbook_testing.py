"""Playbooks on a tree of plain files: a good one passes, and each way of being bad is told."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from unveil.engine.playbook_testing import PASSES, may_share, play, play_all
from unveil.knowledge.content import shipped_root
from unveil.knowledge.testing import plans, read_suite

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.records.run import Plan

FIX = "allow_quota_burst"


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    for folder in ("fingerprints", "playbooks", "inventory"):
        shutil.copytree(shipped_root() / folder, tmp_path / "kb" / folder)
    return tmp_path / "kb"


def plans_of(kb: Path, *names: str) -> tuple[Plan, ...]:
    suite, problems = read_suite(kb)
    assert suite is not None, problems
    fingerprints = {each for name in names for each in suite.knowledge.remediation(name).remediates}  # type: ignore[union-attr]  # it is there
    return tuple(plan for plan in plans(suite, fingerprints) if plan.remediation in names)


def plan_of(kb: Path) -> Plan:
    return plans_of(kb, FIX)[0]


def failures(kb: Path, tmp_path: Path) -> tuple[str, ...]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return play(plan_of(kb), kb / "playbooks/modules", scratch).failures


@pytest.mark.slow
@pytest.mark.ansible
def test_a_shipped_one_passes_with_a_tenant_s_hostile_text(kb: Path, tmp_path: Path) -> None:
    assert failures(kb, tmp_path) == ()


@pytest.mark.slow
@pytest.mark.ansible
def test_one_that_writes_in_check_mode_is_told(kb: Path, tmp_path: Path) -> None:
    playbook = kb / f"playbooks/{FIX}/apply.yml"
    task = (
        "  tasks:\n    - name: Write anyway\n      check_mode: false\n      unveil_setting:\n"
        '        settings: "{{ unveil_settings }}"\n        root: "{{ unveil_host_root }}"\n'
    )
    playbook.write_text(playbook.read_text().replace("  tasks:\n", task, 1))
    assert "check mode wrote something" in failures(kb, tmp_path)


@pytest.mark.slow
@pytest.mark.ansible
def test_one_that_does_nothing_is_told(kb: Path, tmp_path: Path) -> None:
    playbook = kb / f"playbooks/{FIX}/apply.yml"
    text = playbook.read_text()
    playbook.write_text(text[: text.index("  tasks:")] + "  tasks: []\n")
    assert any("after it, not" in failure for failure in failures(kb, tmp_path))


def test_a_setting_that_is_no_file_is_left_out_with_its_reason(tmp_path: Path) -> None:
    (plan,) = plans_of(shipped_root(), "reset_gpu_clocks")
    played = play(plan, shipped_root() / "playbooks/modules", tmp_path)
    assert played.skipped.endswith("is no file")


@pytest.mark.slow
@pytest.mark.ansible
def test_a_bad_one_in_a_shared_start_neither_hides_nor_spoils_the_others(kb: Path) -> None:
    playbook = kb / f"playbooks/{FIX}/apply.yml"
    text = playbook.read_text()
    playbook.write_text(text[: text.index("  tasks:")] + "  tasks: []\n")
    done: list[int] = []
    told: dict[str, bool] = {}
    drawn = plans_of(kb, FIX, "lower_swappiness", "turn_on_gpu_persistence")
    played = play_all(
        drawn, kb / "playbooks/modules", jobs=1, advance=done.append,
        told=lambda plan, each: told.update({plan.remediation: not each.failures}),
    )  # fmt: skip
    assert len(played) == len(drawn) == 3
    by_name = {each.remediation: each for each in played}
    assert any("after it, not" in failure for failure in by_name[FIX].failures)
    assert by_name["lower_swappiness"].failures == ()
    assert by_name["turn_on_gpu_persistence"].skipped
    assert told == {FIX: False, "lower_swappiness": True, "turn_on_gpu_persistence": True}
    assert done[-1] == PASSES * len(drawn)


@pytest.mark.slow
@pytest.mark.longest
@pytest.mark.ansible
@pytest.mark.timeout(590)
def test_every_shipped_one_passes_but_those_whose_setting_only_a_driver_has() -> None:
    suite, _ = read_suite(shipped_root())
    assert suite is not None
    drawn = tuple(plans(suite))
    assert {plan.remediation for plan in drawn} == {each.name for each in suite.knowledge.remediations}
    played = play_all(drawn, shipped_root() / "playbooks/modules", jobs=2, advance=lambda _done: None)
    assert [each for each in played if each.failures] == []
    by_driver = {plan.remediation for plan in drawn if plan.changes[0].address.startswith("nvml:")}
    assert {each.remediation for each in played if each.skipped} == by_driver


def test_only_one_whose_variables_are_all_the_plan_s_shares_a_start(kb: Path) -> None:
    playbook = kb / f"playbooks/{FIX}/apply.yml"
    assert may_share(playbook)
    text = playbook.read_text()
    for other in (
        text.replace("  tasks:", "  vars: {unveil_settings: []}\n  tasks:"),
        text.replace("hosts: ", "hosts: localhost # "),
        text + text.replace("---\n", ""),
        f"{text}    - name: Say otherwise\n      ansible.builtin.set_fact: {{unveil_settings: []}}\n",
        "- import_playbook: other.yml\n",
        "text\n",
    ):
        playbook.write_text(other)
        assert not may_share(playbook), other
    assert not may_share(kb / "absent.yml")
