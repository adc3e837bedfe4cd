"""The cockpit's benchmark runs, and prints what the budget is about."""

from __future__ import annotations

import pytest

from unveil.benchmarks.cockpit import main


@pytest.mark.slow
def test_it_prints_paint_gaps_memory_and_share_and_memory_keeps_to_its_budget(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--windows", "2000", "--seconds", "3"]) == 0
    said = capsys.readouterr().out
    for part in ("first paint", "longest frame gap", "% of a core"):
        assert part in said
    (resident,) = [float(line.split()[0]) for line in said.splitlines() if "MB resident" in line and "% of" in line][:1]
    assert resident <= 60
