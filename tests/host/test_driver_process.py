"""Processes that may be inside a driver call are asked to end, and never killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from unveil.host.driver_process import ask_to_end, reap, wait_or_leave

if TYPE_CHECKING:
    from collections.abc import Callable

# Holds signals back like every caller of the driver, says so, waits as in a call, and looks for a request after it.
CALLER = """
import os, sys
from unveil.host.driver_process import hold_termination, termination_asked
hold_termination()
print("held", flush=True)
os.read(int(sys.argv[1]), 1)
sys.exit(0 if termination_asked(float(sys.argv[2])) else 7)
"""


def caller(patience_s: float) -> tuple[subprocess.Popen[bytes], Callable[[], None]]:
    """Start one; return what ends its call, too."""
    reader, writer = os.pipe()
    words = [sys.executable, "-c", CALLER, str(reader), str(patience_s)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, pass_fds=(reader,))
    os.close(reader)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process, lambda: os.close(writer)


def test_a_request_is_heard_after_the_call_and_not_in_it() -> None:
    process, end_call = caller(600.0)
    ask_to_end(process)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    end_call()
    assert wait_or_leave(process, 60.0)
    assert process.returncode == 0


def test_waiting_for_a_request_ends_with_it_or_with_its_time() -> None:
    process, end_call = caller(0.1)
    end_call()
    assert process.wait(60.0) == 7
    ask_to_end(process)
    process, end_call = caller(600.0)
    end_call()
    ask_to_end(process)
    assert process.wait(60.0) == 0, "long before its time"


def test_a_ctrl_c_is_not_a_request() -> None:
    process, end_call = caller(0.2)
    process.send_signal(signal.SIGINT)
    end_call()
    assert process.wait(60.0) == 7
    ask_to_end(process)


def test_one_that_does_not_end_is_left_and_reaped_later() -> None:
    process, end_call = caller(600.0)
    ask_to_end(process)
    assert wait_or_leave(process, 0.05) is False
    os.kill(process.pid, 0)
    assert process.pid in reap()
    end_call()
    end = time.monotonic() + 60
    while process.pid in reap():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert process.returncode == 0


def test_asking_a_process_that_has_ended_is_nothing() -> None:
    process, end_call = caller(0.0)
    end_call()
    process.wait(60.0)
    ask_to_end(process)
    assert wait_or_leave(process, 0.0)
