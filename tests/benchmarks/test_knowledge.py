from __future__ import annotations

import sys

import pytest

from unveil.benchmarks.knowledge import main


@pytest.mark.slow
def test_the_benchmark_prints_every_row_and_says_what_was_not_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["knowledge", "--files", "40", "--rules", "50"])
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert not main()
    said = capsys.readouterr().out
    for row in ("lint of 200", "the same again, cached", "one edit in 40 files", "unveil ", "a plain loop"):
        assert row in said
    assert said.count("not run") == 4
