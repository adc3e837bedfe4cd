"""The floor: a Python loop that wakes every 100 ms and does nothing. ``python -m unveil.benchmarks.idle_peer``.

What it costs is what this machine, kernel and Python ask for waking up; no watcher in Python can be cheaper.
"""

from __future__ import annotations

import sys
import time

INTERVAL_S = 0.1


def main() -> int:
    """Wake for ever, on absolute deadlines like the watcher."""
    deadline = time.monotonic()
    while True:
        deadline = max(deadline + INTERVAL_S, time.monotonic())  # after a pause it does not make up for it
        time.sleep(max(0.0, deadline - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
