"""The large host made of plain files is one that sampler and facts understand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.benchmarks.large_tree import Size, grow
from unveil.benchmarks.sampling import main
from unveil.host.facts.reader import read_facts
from unveil.host.root import HostRoot

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_tree_has_the_size_that_was_asked_for(tmp_path: Path) -> None:
    grow(tmp_path, Size(cpus=16, nodes=2, cgroups=6, disks=2))
    facts = read_facts(HostRoot(tmp_path))
    assert facts.value("cpu.online_count") == 16
    assert facts.value("interconnect.node_count") == 2


def test_what_sampling_it_costs_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tree", "--cpus", "16", "--cgroups", "6", "--seconds", "1"]) == 0
    said = capsys.readouterr().out
    assert "0.8 % on the large tree" in said
    assert "cgroup_memory" in said
    assert "holds nothing that we know" not in said
