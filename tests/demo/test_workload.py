"""The patient of the demo: it works, says how long its steps took, and ends."""

from __future__ import annotations

import json

import pytest

from unveil.demo.workload import main


@pytest.mark.slow
def test_it_says_each_second_how_long_its_steps_took(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--megabytes", "4", "--seconds", "2.3", "--step", "0.02", "--activations", "1", "--renew", "0.5"]
    assert main(asked) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 2
    for line in lines:
        assert line.keys() == {"steps", "mean_ms", "late_ms"}
        assert 1 <= line["steps"] <= 55
        assert 0 < line["mean_ms"] < 1000


def test_it_can_do_without_activations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--megabytes", "1", "--seconds", "0.1", "--activations", "0"]) == 0
    assert capsys.readouterr().out == ""
