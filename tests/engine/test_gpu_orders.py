"""Giving the GPUs back for maintenance, from the command line, while a watcher runs over the stand-in for NVML."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass
class Running:
    """A watcher over two GPUs, as a process of its own."""

    folder: Path

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "unveil", "gpu", *words, "--state-dir", str(self.folder)],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    def until_reading(self) -> None:
        end = time.monotonic() + 30
        while "GPUs are reading" not in (told := self.command()).stdout:
            assert time.monotonic() < end, told
            time.sleep(0.1)


@pytest.fixture
def running(nvml, kb: Path, scratch: Path, tmp_path: Path) -> Iterator[Running]:
    nvml.state.set(gpus=2)
    folder = tmp_path / "watch"
    flags = ["--state-dir", str(folder), "--kb", str(kb), "--host-root", str(scratch)]
    watcher = subprocess.Popen([sys.executable, "-m", "unveil", "watch", *flags], env=nvml.env)
    yield Running(folder)
    nvml.state.update({"gpu1.delay.*": None})
    watcher.terminate()
    assert watcher.wait(30) == 0


@pytest.mark.slow
@pytest.mark.gcc
def test_handles_are_given_back_and_taken_again(running: Running, nvml) -> None:
    running.until_reading()
    released = running.command("release")
    assert (released.returncode, released.stdout.split("\n")[0]) == (
        0,
        "GPUs are released: all handles were given back",
    )
    assert running.command().returncode == 0
    resumed = running.command("resume", "--json")
    assert resumed.returncode == 0
    assert '"starting"' in resumed.stdout
    running.until_reading()
    assert nvml.uuid(1) in running.command().stdout


@pytest.mark.slow
@pytest.mark.gcc
def test_a_gpu_in_a_driver_call_is_waited_for_and_never_killed(running: Running, nvml) -> None:
    running.until_reading()
    nvml.state.update({"gpu1.delay.*": 60})
    time.sleep(1.5)
    refused = running.command("release", "--wait", "0.5")
    assert refused.returncode == 1
    assert "not yet" in refused.stderr
    assert "Traceback" not in refused.stderr
    nvml.state.update({"gpu1.delay.*": None})
    assert running.command("release").returncode == 0


def test_a_watcher_without_gpus_says_so(watch: Callable[..., Any], tmp_path: Path) -> None:
    watcher = watch()
    for method in ("gpus", "release_gpus", "resume_gpus"):
        with pytest.raises(RefusedError, match="holds no GPUs"):
            watcher._commands.handle(method, {}, "uid:0")
