"""A watcher that a benchmark runs beside its measurement."""

from __future__ import annotations

import os
import sys

import pytest

from unveil.benchmarks.running import at_work, running, said
from unveil.errors import BadInputError


def test_a_program_works_until_it_is_left() -> None:
    with at_work([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        os.kill(process.pid, 0)
    assert process.returncode is not None


@pytest.mark.slow
def test_a_watcher_that_does_not_start_is_an_error_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInputError) as caught, running("--rule", "nonsense", "--no-gpu"):
        pass
    assert said(caught.value, "stress") == 2
    assert "unveil.benchmarks.stress: the watcher did not start" in capfd.readouterr().err


@pytest.mark.slow
def test_a_watcher_that_runs_can_be_asked() -> None:
    with running("--no-gpu") as watcher:
        assert watcher.status()["pid"] == watcher.pid
        watcher.quiet()
    with pytest.raises(ProcessLookupError):
        os.kill(watcher.pid, 0)
