"""Frames survive the pipe, and what is no frame is told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.gpu_frames import (
    AbsentFrame,
    CallFrame,
    FailedFrame,
    GpusFrame,
    IdentityFrame,
    LostFrame,
    SampleFrame,
    read_frames,
    write_frame,
)

FRAMES = [
    GpusFrame(gpus=["GPU-1", "GPU-2"]),
    CallFrame(gpu="GPU-1", at_ns=2**62),
    SampleFrame(
        gpu="GPU-1", at_ns=1, latency_s=0.1, values=[0.97, None, 1e300], reasons={"gpu.power": "Not\nSupported"}
    ),
    SampleFrame(gpu="GPU-1", at_ns=2, latency_s=0.1, values=[]),
    IdentityFrame(gpu="GPU-1", at_ns=3, facts={"gpu.pids": ["1"], "gpu.name": "é", "gpu.power_min": 1.5}, reasons={}),
    LostFrame(gpu="GPU-1", reason="GPU is lost"),
    AbsentFrame(reason="none"),
    FailedFrame(reason="gone"),
]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_a_frame_is_one_line_and_comes_back(frame) -> None:
    line = write_frame(frame)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_frames([line.strip()]) == ([frame], [])


def test_what_a_library_prints_between_frames_is_told_apart() -> None:
    lines = [
        write_frame(FRAMES[0])[:-1],
        b"NVRM: oh no",
        b"",
        b"[1]",
        b'["call",{}]',
        b"{}",
        write_frame(FRAMES[1])[:-1],
    ]
    frames, others = read_frames(lines)
    assert frames == [FRAMES[0], FRAMES[1]]
    assert others == lines[1:-1]


@given(st.lists(st.binary(max_size=40), max_size=4))
def test_no_line_is_an_error(lines: list[bytes]) -> None:
    frames, others = read_frames(lines)
    assert len(frames) + len(others) == len(lines)
