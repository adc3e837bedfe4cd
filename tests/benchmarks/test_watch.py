from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from unveil.benchmarks.watch import cpu_seconds, main, memory_mb


@pytest.mark.longest
@pytest.mark.slow
def test_the_benchmark_measures_the_real_command_and_says_whether_it_keeps_to_its_budget(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--seconds", "1", "--warm", "3", "--no-gpu"])
    said = capsys.readouterr().out
    assert code in (0, 1)
    assert ("within budget" in said) is (code == 0)
    for row in (
        "CPU, % of one core, on the host as it is",
        "CPU, % of one core, while no CPU sleeps",
        "resident, MB",
        "lateness of ticks",
        "channels, features",
        "a loop that does nothing",
        "pages touched",
    ):
        assert row in said


@pytest.mark.slow
def test_a_watcher_that_does_not_start_is_said_and_waited_for_no_longer(capfd: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    assert main(["--seconds", "1", "--warm", "60", "--rule", "nonsense", "--no-gpu"]) == 1
    assert time.monotonic() - began < 30
    assert "nonsense" in capfd.readouterr().err


def test_cpu_time_is_that_of_a_process_and_its_children_living_and_dead() -> None:
    program = (
        "import subprocess, sys, time\n"
        "burn = 'import time\\nwhile time.process_time() < 0.3: pass'\n"
        "subprocess.run([sys.executable, '-c', burn])\n"
        "living = subprocess.Popen([sys.executable, '-c', burn + '\\nprint(1, flush=True)\\ntime.sleep(60)'],"
        " stdout=subprocess.PIPE)\n"
        "living.stdout.readline(); print(living.pid, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        assert 0.55 < cpu_seconds(process.pid) < 30, "ticks would be sixty"
        resident, proportional = memory_mb(process.pid)
        assert 0 < proportional <= resident < 200
    finally:
        os.kill(child, 9)
        process.kill()
        process.wait()
        process.stdout.close()
