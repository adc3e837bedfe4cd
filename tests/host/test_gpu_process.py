"""The GPU child is started again after pauses, never in a storm."""

from __future__ import annotations

import os
import time

from unveil.host.gpu_process import GpuProcess

SECOND = 1_000_000_000
ENVIRON = dict(os.environ, UNVEIL_NVML_LIBRARY="/no/such/libnvidia-ml.so.1")  # a child that fails at once


def fail_once(process: GpuProcess, now_ns: int) -> None:
    """Start the child at a time of our own clock, and wait until it has failed."""
    starts = process.starts
    process.poll(now_ns)
    assert process.starts == starts + 1
    end = time.monotonic() + 60
    while process.pid is not None:
        process.poll(now_ns)
        assert time.monotonic() < end
        time.sleep(0.002)


def test_pauses_grow_to_a_minute_and_begin_anew_after_a_child_that_lived_well() -> None:
    process, now = GpuProcess(("--list",), ENVIRON), 1000 * SECOND
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        fail_once(process, now)
        assert "/no/such/libnvidia-ml.so.1" in (process.failure or "")
        process.poll(now + pause * SECOND - 1)
        assert process.pid is None, f"started before its {pause} s were over"
        now += pause * SECOND
    process.poll(now)
    lived = now + 3600 * SECOND
    end = time.monotonic() + 60
    while process.pid is not None:
        process.poll(lived)  # to the process's own clock, this child lived for an hour
        assert time.monotonic() < end
        time.sleep(0.002)
    starts = process.starts
    process.poll(lived + SECOND - 1)
    assert process.starts == starts
    process.poll(lived + SECOND)
    assert process.starts == starts + 1
    assert process.end(10.0)


def test_a_child_that_cannot_be_started_is_a_failure_and_no_crash() -> None:
    process = GpuProcess((), ENVIRON | {"": "no name"})
    process._command = ("/no/such/python",)
    process.poll(SECOND)
    assert process.pid is None
    assert "cannot be started" in (process.failure or "")
    assert process.starts == 0
    assert process.end(0.1)


def test_a_process_that_was_stopped_before_it_began_never_begins() -> None:
    process = GpuProcess(("--list",), ENVIRON)
    process.stop()
    assert process.poll(SECOND) == []
    assert process.starts == 0
    assert process.end(0.1)
