"""The processes of one run: found even when they left their session, and ended without survivors.

Ansible's workers call ``setsid``, so a process group does not hold them. Two nets do: the run's child is the subreaper
of all its descendants (an orphan comes back to it and not to init), and every process of a run carries the run's mark
in its environment, which even finds those whose child was killed.

Source: proc(5), prctl(2) PR_SET_CHILD_SUBREAPER.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "UNVEIL_RUN"
_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Make this process inherit its orphaned descendants; False where the kernel does not let it."""
    library = ctypes.CDLL(None, use_errno=True)
    return bool(library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def _stat(pid: int) -> list[bytes] | None:
    """Return the fields of /proc/PID/stat from the state on; the command, which may hold anything, is cut off."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  # thousands of these in a scan
            data = file.read()
    except OSError:
        return None
    return data[data.rindex(b")") + 2 :].split()


def started(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when it is gone or only waits to be reaped."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in (b"Z", b"X") else int(fields[19])


def alive(pid: int, start: int) -> bool:
    """Tell whether a process still lives that started at a time: a pid alone may be someone else by now."""
    return started(pid) == start


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def descendants(pid: int) -> set[int]:
    """Return the living descendants of a process."""
    children: dict[int, list[int]] = {}
    for each in _pids():
        fields = _stat(each)
        if fields is not None and fields[0] not in (b"Z", b"X"):
            children.setdefault(int(fields[1]), []).append(each)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        new = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found.update(new)
        waiting += new
    return found


def marked(mark: str) -> set[int]:
    """Return the living processes that carry a run's mark in the environment they were started with."""
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for pid in _pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                data = file.read()
        except OSError:
            continue
        if wanted in data.split(b"\0") and started(pid) is not None:
            found.add(pid)
    return found


def send(pids: set[int], number: signal.Signals) -> None:
    """Send a signal to processes; those that are gone are no error."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def reap() -> None:
    """Take the exit status of every child that is waiting for it."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def end(find: Callable[[], set[int]], *, within_s: float, reaping: bool = False) -> int:
    """Kill processes until none is found, and return how many are left when the time is up (0 is the answer hoped for).

    Args:
        find: the processes that must not live any more.
        within_s: seconds to try; a process in an uninterruptible call of a driver outlives any signal.
        reaping: collect exit statuses in between, which only their (sub)reaper can.
    """
    until = time.monotonic() + within_s
    while True:
        left = find()
        if not left or time.monotonic() > until:
            return len(left)
        send(left, signal.SIGKILL)
        if reaping:
            reap()
        time.sleep(0.02)
