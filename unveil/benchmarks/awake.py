"""CPUs that do not sleep, as those of a host with work: a loop on each, of the class that gives way to everything.

A virtual CPU that has nothing to do halts, its hypervisor gives the core to somebody else, and what wakes on it a
tenth of a second later finds no cache as it left it; on metal the core itself sleeps. All of that is the price of an
idle host. `SCHED_IDLE` (sched(7)) runs only where nothing else wants to and is preempted at once by whatever wakes, and
the loop touches next to no memory: what is measured beside it pays for its own work.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOOP = "import os\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nprint(flush=True)\nwhile True: pass"


@contextmanager
def loops_on_all_cpus() -> Iterator[Callable[[bool], None]]:
    """Have a loop for each CPU we may use, stopped at first; call what is given to let them run or to stop them."""
    loops = [subprocess.Popen([sys.executable, "-c", _LOOP], stdout=subprocess.PIPE) for _ in os.sched_getaffinity(0)]

    def keep_awake(yes: bool) -> None:
        for loop in loops:
            loop.send_signal(signal.SIGCONT if yes else signal.SIGSTOP)

    try:
        for loop, cpu in zip(loops, sorted(os.sched_getaffinity(0)), strict=True):
            os.sched_setaffinity(loop.pid, {cpu})
            assert loop.stdout is not None
            loop.stdout.readline()  # now it gives way
        keep_awake(False)
        yield keep_awake
    finally:
        for loop in loops:
            loop.kill()
            loop.communicate()
