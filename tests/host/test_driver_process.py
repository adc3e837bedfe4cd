"""Processes that may be inside a driver call are asked to end, and never killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from unveil.host.driver_process import ask_to_end, reap, wait_or_leave

# Holds signals back like every caller of the driver, says so, sleeps as in a call, and looks for a request after it.
CALLER = """
import sys, time
from unveil.host.driver_process import hold_termination, termination_asked
hold_termination()
print("held", flush=True)
time.sleep(float(sys.argv[1]))
sys.exit(0 if termination_asked(float(sys.argv[2])) else 7)
"""


def caller(call_s: float, patience_s: float) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", CALLER, str(call_s), str(patience_s)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_request_is_heard_after_the_call_and_not_in_it() -> None:
    process = caller(0.3, 5.0)
    began = time.monotonic()
    ask_to_end(process)
    assert wait_or_leave(process, 5.0)
    assert time.monotonic() - began > 0.25
    assert process.returncode == 0


def test_waiting_for_a_request_ends_with_it_or_with_its_time() -> None:
    assert caller_code(0.0, 0.1) == 7
    began = time.monotonic()
    process = caller(0.0, 30.0)
    ask_to_end(process)
    assert process.wait(5.0) == 0
    assert time.monotonic() - began < 5


def caller_code(call_s: float, patience_s: float) -> int:
    process = caller(call_s, patience_s)
    code = process.wait(10.0)
    assert process.stdout is not None
    process.stdout.close()
    return code


def test_a_ctrl_c_is_not_a_request() -> None:
    process = caller(0.1, 0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(10.0) == 7
    ask_to_end(process)


def test_one_that_does_not_end_is_left_and_reaped_later() -> None:
    process = caller(0.4, 5.0)
    ask_to_end(process)
    assert wait_or_leave(process, 0.05) is False
    os.kill(process.pid, 0)
    assert process.pid in reap()
    end = time.monotonic() + 5
    while process.pid in reap():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert process.returncode == 0


def test_asking_a_process_that_has_ended_is_nothing() -> None:
    process = caller(0.0, 0.0)
    process.wait(10.0)
    ask_to_end(process)
    assert wait_or_leave(process, 0.0)
