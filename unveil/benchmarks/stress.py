"""Does the watcher keep up on a host that is out of CPU? ``python -m unveil.benchmarks.stress --minutes 10``

Runs the real command beside ``stress-ng`` on all CPUs (compute, memory and switches), and tells how many windows and
ticks were missed, how late ticks were, what the watcher cost and whether its memory grows. No window may be missed,
and every late or missed tick must be counted: ticks taken and missed together are those that were due.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unveil.benchmarks.running import Running, at_work, running, said
from unveil.benchmarks.watch import cpu_seconds, memory_mb
from unveil.cli import draw
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from collections.abc import Sequence

TICKS = 10  # a second
DRIFT_MB = 4.0  # a training in its child passes in between; more is a leak
_LOOK_S = 10.0
_SETTLE_S = 15.0
_SLACK = 0.01  # of the ticks that were due: the clock of two readings is not the watcher's


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was seen at one time."""

    at_s: float
    window: int
    taken: int
    missed: int
    late: int
    late_p99_ms: float
    spent_s: float
    rss_mb: float


def stressors(cpus: int) -> list[str] | None:
    """Return the command that takes all CPUs; None where stress-ng is not installed."""
    program = shutil.which("stress-ng")
    if program is None:
        return None
    loads = ["--cpu", str(cpus), "--vm", "1", "--vm-bytes", "128M", "--switch", "1", "--timer", "1"]
    return [program, *loads, "--timeout", "0", "--quiet"]


def burners(cpus: int) -> list[str]:
    """Return a command that takes all CPUs with nothing but Python."""
    program = (
        "import os\n"
        f"for _ in range({2 * cpus} - 1):\n"
        "    if os.fork() == 0: break\n"
        "parent = os.getppid()\n"
        "while os.getppid() == parent: sum(range(100000))\n"
    )
    return [sys.executable, "-c", program]


def read(watcher: Running) -> Reading:
    """Ask the watcher, and the kernel about it."""
    status = watcher.status()
    ticks: dict[str, Any] = status["ticks"]
    return Reading(
        at_s=time.monotonic(),
        window=status["window"]["index"],
        taken=ticks["taken"],
        missed=ticks["missed"],
        late=ticks["late"],
        late_p99_ms=ticks["late_p99_ms"],
        spent_s=cpu_seconds(watcher.pid),
        rss_mb=memory_mb(watcher.pid)[0],
    )


def report(readings: Sequence[Reading], load: str) -> int:
    """Print what became of it; return 0 when no window is missing and every tick is accounted for."""
    first, last = readings[0], readings[-1]
    seconds = last.at_s - first.at_s
    windows, due = last.window - first.window, round(seconds)
    taken, missed = last.taken - first.taken, last.missed - first.missed
    third = max(1, len(readings) // 3)
    early, late = (sum(each.rss_mb for each in part) / len(part) for part in (readings[:third], readings[-third:]))
    draw.table(
        ("under load", "value>", "wanted>"),
        (
            ("load", load, ""),
            ("seconds", f"{seconds:.0f}", ""),
            ("windows", windows, f"{due} (one a second)"),
            ("ticks taken", taken, ""),
            ("ticks missed, counted", missed, ""),
            ("ticks late, counted", last.late - first.late, ""),
            ("ticks neither taken nor counted", round(TICKS * seconds) - taken - missed, "0 (and a rounding)"),
            ("lateness p99, ms", f"{last.late_p99_ms:.1f}", ""),
            ("CPU, % of one core", f"{100 * (last.spent_s - first.spent_s) / seconds:.2f}", ""),
            ("resident, MB: first third", f"{early:.1f}", ""),
            ("resident, MB: last third", f"{late:.1f}", f"<= {early + DRIFT_MB:.1f}"),
        ),
    )
    wrong = []
    if windows < due - 1:
        wrong.append(f"{due - windows} windows are missing")
    if abs(TICKS * seconds - taken - missed) > max(TICKS, _SLACK * TICKS * seconds):
        wrong.append("ticks are neither taken nor counted as missed")
    if late - early > DRIFT_MB:
        wrong.append(f"memory grew by {late - early:.1f} MB")
    draw.line("; ".join(wrong) or "no window missed, every tick counted, memory steady")
    return 1 if wrong else 0


def measure(seconds: float, arguments: Sequence[str]) -> int:
    """Watch and load this host for some seconds.

    Raises:
        BadInputError: the watcher did not start.
    """
    cpus = os.cpu_count() or 1
    command = stressors(cpus)
    load = "stress-ng" if command else "Python loops, as stress-ng is not installed"
    with running(*arguments) as watcher, at_work(command or burners(cpus)):
        time.sleep(min(_SETTLE_S, seconds))
        readings = [read(watcher)]
        until_s = readings[0].at_s + seconds
        with draw.progress("under stress", total=seconds) as advance:
            while (left_s := until_s - time.monotonic()) > 0:
                time.sleep(min(_LOOK_S, left_s))
                readings.append(read(watcher))
                advance(round(readings[-1].at_s - readings[0].at_s))
    return report(readings, f"{load} on {cpus} CPUs")


def main(argv: list[str] | None = None) -> int:
    """Measure from the command line; further arguments go to `unveil watch`."""
    parser = argparse.ArgumentParser(
        prog="python -m unveil.benchmarks.stress",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="default: 10")
    asked, rest = parser.parse_known_args(argv)
    try:
        return measure(60 * asked.minutes, rest)
    except UnveilError as error:
        return said(error, "stress")


if __name__ == "__main__":
    sys.exit(main())
