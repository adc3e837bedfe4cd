"""The peer that everybody writes first: a plain psutil loop at 100 ms. ``python -m unveil.benchmarks.psutil_peer``.

Reads what psutil offers of a like set (CPUs, memory, swap, NICs, disks, CPU statistics), keeps it as JSON lines in
memory, and nothing else: no parsing of its own, no features, no detector, no journal.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque

import psutil

INTERVAL_S = 0.1


def sample() -> dict[str, object]:
    """Return everything once."""
    return {
        "cpu": [tuple(times) for times in psutil.cpu_times(percpu=True)],
        "stats": tuple(psutil.cpu_stats()),
        "load": psutil.getloadavg(),
        "memory": tuple(psutil.virtual_memory()),
        "swap": tuple(psutil.swap_memory()),
        "nics": {name: tuple(counters) for name, counters in psutil.net_io_counters(pernic=True).items()},
        "disks": {name: tuple(counters) for name, counters in psutil.disk_io_counters(perdisk=True).items()},
    }


def main() -> int:
    """Sample for ever, on absolute deadlines like the watcher."""
    kept: deque[str] = deque(maxlen=600)
    deadline = time.monotonic()
    while True:
        deadline = max(deadline + INTERVAL_S, time.monotonic())  # after a pause it does not make up for it
        kept.append(json.dumps(sample()))
        time.sleep(max(0.0, deadline - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
