"""Processes that may be inside a driver call: ended politely, and never killed.

Killing a process in the middle of a driver call has frozen whole GPUs (XID 119), and one that waits in the kernel does
not die anyway. So a process is asked to end (SIGTERM, which it looks at between two calls); one that does not is left
alone: it ends by itself when its call returns.
"""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Processes that were left in a driver call, kept so that they are reaped when they end.
_left: list[subprocess.Popen[bytes]] = []


def hold_termination() -> None:
    """Make this process deaf to SIGTERM and SIGINT until it asks: a driver call is never cut short."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})


def termination_asked(within_s: float = 0.0) -> bool:
    """Wait up to *within_s* for a SIGTERM; tell whether one came. A SIGINT (Ctrl-C) is the watcher's business."""
    while True:
        got = signal.sigtimedwait({signal.SIGTERM, signal.SIGINT}, max(within_s, 0.0))
        if got is None:
            return False
        if got.si_signo == signal.SIGTERM:
            return True
        within_s = 0.0


def ask_to_end(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM and hang up: the process ends at the end of its driver call, or at its next word to us."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None and not pipe.closed:
            pipe.close()


def wait_or_leave(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for a process that was asked to end; False when it did not and was left alone."""
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        _left.append(process)
        return False
    return True


def reap() -> tuple[int, ...]:
    """Reap the processes that were left and have ended since; return the PIDs of those still in the driver."""
    _left[:] = _still_running(_left)
    return tuple(process.pid for process in _left)


def _still_running(processes: Iterable[subprocess.Popen[bytes]]) -> list[subprocess.Popen[bytes]]:
    return [process for process in processes if process.poll() is None]
