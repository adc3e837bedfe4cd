"""`unveil kb explain`: everything about a fingerprint on one screen, and whether a host can answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from unveil.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NAME = "reduced_huge_page_coverage"


def test_clauses_notes_condition_and_fixes_are_drawn(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "explain", "--kb", str(few), NAME, "--no-host"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for text in (
        "status stable, level medium, per cgroup",
        "memory.cgroup_anon.last gte 209.7 M",
        "fact memory.thp_enabled in never,",
        "Condition: sizeable and uncovered",
        "Fires once it held for 3 s",
        "enable_huge_pages",
        "Needs: cpu.cgroup_usage, memory.cgroup_anon",
    ):
        assert text in said
    assert "This host" not in said


def test_a_host_without_what_it_needs_is_said_to_be_blind(
    few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thp = tmp_path / "sys/kernel/mm/transparent_hugepage/enabled"
    thp.parent.mkdir(parents=True)
    thp.write_text("always madvise [never]\n")
    assert main(["kb", "explain", "--kb", str(few), NAME, "--host-root", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["needs"]) - set(told["missing"]) == {"memory.thp_enabled"}
    assert [each["name"] for each in told["remediations"]] == ["enable_huge_pages"]
    assert main(["kb", "explain", "--kb", str(few), NAME, "--host-root", str(tmp_path)]) == 0
    assert "it can only answer unknown here" in " ".join(capsys.readouterr().out.split())


def test_a_name_that_is_not_there_gets_the_nearest(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "explain", "--kb", str(few), "reduced_hugepage_coverage"]) == 2
    assert f"did you mean {NAME}?" in capsys.readouterr().err


def test_a_correlation_is_explained_too(few: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "explain", "--kb", str(few), "power_limit_on_several_gpus"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "at least 2 different entities fire of gpu_power_limit_below_default, within 60" in said
    assert "nothing is done about the episodes" in said
    assert "It has no fix of its own." in said
    assert "restore_gpu_power_limit" in said
    assert main(["kb", "explain", "--kb", str(few), "power_limit_on_several_gpus", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["correlation"]["name"] == "power_limit_on_several_gpus"
    assert [each["name"] for each in told["remediations"]] == ["restore_gpu_power_limit"]
    assert main(["kb", "explain", "--kb", str(few), "power_limit_on_several_gpu"]) == 2
    assert "did you mean power_limit_on_several_gpus?" in capsys.readouterr().err
