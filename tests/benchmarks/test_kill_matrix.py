"""The kill matrix, whole: some two minutes and a half."""

from __future__ import annotations

import os

import pytest

from unveil.benchmarks.kill_matrix import cells, main
from unveil.benchmarks.kill_strikes import Struck
from unveil.remediation.lifecycle import ACTIVE


def test_every_active_state_is_left_and_entered_under_every_kill() -> None:
    rows = list(cells())
    for state in ACTIVE:
        assert {cell.what for cell in rows if cell.start is state} >= {"full disk", "watcher, after it is written"}
        assert any(cell.to is state for cell in rows)
    assert {cell.what for cell in rows} >= set(Struck)


@pytest.mark.longest
@pytest.mark.slow
@pytest.mark.root
@pytest.mark.ansible
@pytest.mark.timeout(400)
@pytest.mark.skipif(os.geteuid() != 0, reason="makes small disks and catches a module half-way: needs root")
def test_whatever_is_killed_every_run_ends_in_a_named_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([])
    told = capsys.readouterr().out
    print(told)
    assert code == 0, told
