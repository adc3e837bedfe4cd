"""A training-like loop that says how long each step took: the patient of the demo and of the journey tests.

Each step allocates activation buffers, writes them, computes over parameters that stay, and frees the buffers, as a
training step does. It asks for nothing (no madvise): whether its memory is huge is the host's doing.

    python -m unveil.demo.workload --megabytes 320 --seconds 60
"""

from __future__ import annotations

import argparse
import json
import mmap
import sys
import time

PAGE = 4096


def _touch(buffer: mmap.mmap) -> None:
    """Write one byte a page: the page faults of filling a buffer, without the time of filling it."""
    buffer[::PAGE] = b"\x01" * len(range(0, len(buffer), PAGE))


def run(*, megabytes: int, seconds: float, step_s: float, renew_s: float, activations: int) -> None:
    """Work until *seconds* are over, printing one JSON line per second: steps, their longest and mean time.

    Args:
        megabytes: size of the parameters, which stay.
        step_s: pace of the steps; a step that takes longer delays the next.
        renew_s: how often the parameters are allocated anew (a new epoch, a checkpoint loaded).
        activations: megabytes allocated and freed by each step.
    """
    begin = time.monotonic()
    parameters = mmap.mmap(-1, megabytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    _touch(parameters)
    renewed = said = begin
    times: list[float] = []
    longest_gap = 0.0
    while (now := time.monotonic()) < begin + seconds:
        if now - renewed >= renew_s:
            parameters.close()
            parameters = mmap.mmap(-1, megabytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            _touch(parameters)
            renewed = time.monotonic()
        started = time.monotonic()
        if activations:
            with mmap.mmap(-1, activations << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as buffer:
                _touch(buffer)
        sum(parameters[:: 64 * PAGE])
        ended = time.monotonic()
        times.append(ended - started)
        time.sleep(max(0.0, started + step_s - ended))
        longest_gap = max(longest_gap, time.monotonic() - started - step_s)
        if time.monotonic() - said >= 1:
            said = time.monotonic()
            line = {"steps": len(times), "mean_ms": 1e3 * sum(times) / len(times), "late_ms": 1e3 * longest_gap}
            print(json.dumps({key: round(value, 2) for key, value in line.items()}), flush=True)
            times, longest_gap = [], 0.0
    parameters.close()


def main(argv: list[str] | None = None) -> int:
    """Run the workload from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=320)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--step", type=float, default=0.1, metavar="SECONDS")
    parser.add_argument("--renew", type=float, default=1e9, metavar="SECONDS")
    parser.add_argument("--activations", type=int, default=16, metavar="MEGABYTES")
    asked = parser.parse_args(argv)
    run(
        megabytes=asked.megabytes,
        seconds=asked.seconds,
        step_s=asked.step,
        renew_s=asked.renew,
        activations=asked.activations,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
