"""The GPU child as the process it is: what it writes, and when it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from unveil.host.gpu_frames import (
    AbsentFrame,
    FailedFrame,
    GpusFrame,
    IdentityFrame,
    SampleFrame,
    read_frames,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.host.gpu_frames import Frame


def start(environ: dict[str, str], uuid: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "unveil.host.gpu_child", "--interval", "0.05", "--gpu", uuid]
    return subprocess.Popen(words, env=environ, stdout=subprocess.PIPE)


def frames_until(child: subprocess.Popen[bytes], done: Callable[[list[Frame]], bool]) -> list[Frame]:
    assert child.stdout is not None
    frames: list[Frame] = []
    while not done(frames):
        line = child.stdout.readline()
        assert line, "the child ended"
        frames += read_frames([line])[0]
    return frames


def end(child: subprocess.Popen[bytes]) -> int:
    child.send_signal(signal.SIGTERM)
    assert child.stdout is not None
    child.stdout.close()
    return child.wait(60)


@pytest.mark.gcc
def test_a_child_that_is_asked_to_list_names_all_and_ends(nvml) -> None:
    nvml.state.set(gpus=3)
    nvml.state.set_gpu(1, lost=1)
    words = [sys.executable, "-m", "unveil.host.gpu_child", "--list"]
    ended = subprocess.run(words, env=nvml.env, capture_output=True, check=True)
    assert read_frames(ended.stdout.splitlines()) == ([GpusFrame(gpus=[nvml.uuid(0), nvml.uuid(2)])], [])


@pytest.mark.gcc
def test_slow_values_and_facts_are_read_every_tenth_cycle(nvml) -> None:
    child = start(nvml.env, nvml.uuid())
    frames = frames_until(child, lambda seen: sum(isinstance(frame, SampleFrame) for frame in seen) == 12)
    assert end(child) == 0
    told = [frame for frame in frames if isinstance(frame, IdentityFrame | SampleFrame)]
    assert [place for place, frame in enumerate(told) if isinstance(frame, IdentityFrame)] == [0, 11]


@pytest.mark.gcc
def test_reasons_are_told_once_and_when_they_change(nvml) -> None:
    nvml.state.update({"gpu.error.nvmlDeviceGetPowerUsage": 999})
    child = start(nvml.env, nvml.uuid())
    samples = [frame for frame in frames_until(child, lambda seen: len(seen) > 12) if isinstance(frame, SampleFrame)]
    assert end(child) == 0
    assert samples[0].reasons is not None
    assert samples[0].reasons["gpu.power"] == "Unknown Error"
    assert samples[1].reasons == {"gpu.power": "Unknown Error"}, "activity is measured from the second reading on"
    assert samples[2].reasons is None


@pytest.mark.gcc
def test_one_child_reads_one_gpu_of_several_even_when_another_hangs(nvml) -> None:
    nvml.state.set(gpus=2)
    nvml.state.update({"gpu0.delay.*": 60})
    child = start(nvml.env, nvml.uuid(1))
    frames = frames_until(child, lambda seen: any(isinstance(frame, SampleFrame) for frame in seen))
    assert end(child) == 0
    assert {frame.gpu for frame in frames if isinstance(frame, SampleFrame)} == {nvml.uuid(1)}


@pytest.mark.gcc
def test_a_child_ends_when_nobody_listens_any_more(nvml) -> None:
    child = start(nvml.env, nvml.uuid())
    frames_until(child, lambda seen: len(seen) > 0)
    assert child.stdout is not None
    child.stdout.close()
    assert child.wait(60) == 0


@pytest.mark.gcc
def test_a_request_to_end_waits_for_the_driver_call(nvml) -> None:
    child = start(nvml.env, nvml.uuid())
    frames_until(child, lambda seen: any(isinstance(frame, SampleFrame) for frame in seen))
    nvml.state.update({"gpu0.delay.nvmlDeviceGetTemperature": 60})
    assert child.stdout is not None
    while select.select([child.stdout], [], [], 1.0)[0]:  # what it says ten times in the meantime
        child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):  # it is in the driver
        child.wait(0.3)
    nvml.state.update({"gpu0.delay.nvmlDeviceGetTemperature": None})
    assert end(child) == 0


@pytest.mark.gcc
def test_the_last_word_of_a_child_says_why(nvml) -> None:
    nvml.state.set(**{"driver.loaded": 0})
    child = start(nvml.env, nvml.uuid())
    frames = frames_until(child, lambda seen: len(seen) > 0)
    assert child.wait(60) == 1
    assert child.stdout is not None
    child.stdout.close()
    assert isinstance(frames[-1], FailedFrame)
    assert "Driver Not Loaded" in frames[-1].reason


def test_a_host_without_the_library_has_nothing_to_read() -> None:
    environ = {
        name: value for name, value in os.environ.items() if name not in {"LD_LIBRARY_PATH", "UNVEIL_NVML_LIBRARY"}
    }
    ended = subprocess.run(
        [sys.executable, "-m", "unveil.host.gpu_child", "--list"], env=environ, capture_output=True, check=False
    )
    assert ended.returncode == 0
    frames, others = read_frames(ended.stdout.splitlines())
    assert others == []
    assert isinstance(frames[0], AbsentFrame), json.dumps(ended.stderr.decode())
