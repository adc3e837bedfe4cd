from __future__ import annotations

import sys

import pytest

from unveil.benchmarks.matching import main


@pytest.mark.slow
def test_the_benchmark_prints_compiled_beside_plain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["matching", "20"])
    assert not main()
    said = capsys.readouterr().out
    assert said.startswith("20 fingerprints of 5 clauses")
    assert "plain loop" in said
    assert [line.split()[0] for line in said.splitlines()[2:]] == ["host", "host", "host,", "as"]
