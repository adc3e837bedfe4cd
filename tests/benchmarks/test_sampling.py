from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.benchmarks.sampling import main

if TYPE_CHECKING:
    import pytest


def test_the_benchmark_prints_cost_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "1"]) == 0
    said = capsys.readouterr().out
    assert "% of a core" in said
    assert "net_dev" in said
