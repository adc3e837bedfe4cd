"""What a watcher holds after hours: ``python -m unveil.benchmarks.hours --hours 2``, which takes a minute or two.

The real watch, with its journal, knowledge base and housekeeping reads this host, ten times a second of a clock that is
not waited for: so all that fills up over hours (the reference's past, the trail, the journal's cache) fills up at once.
Counters advance less between two reads than they would; how many values there are, and what is kept of them, is as
ever. Code stays mapped, as nothing is ever calm: on a calm host much of *of files* is given back.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.benchmarks.running import said
from unveil.cli import draw
from unveil.detection.rule import DEFAULT_RULE
from unveil.engine.bare_imports import bare_imports
from unveil.errors import UnveilError

with bare_imports():  # as `unveil watch` does
    from unveil.engine.allocator import keep_little, keep_together
    from unveil.engine.settings import Settings
    from unveil.engine.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUDGET_MB = 48.0
TICK_NS = 100_000_000
_MARKS_S = (60, 600, 1800, 3600, 7200, 14_400, 28_800)
_COLUMNS = {"Rss": "resident", "Anonymous": "its own", "AnonHugePages": "in huge pages"}


class Clock:
    """A wall clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now_s = time.time()

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def sizes_mb(rollup: str) -> dict[str, float]:
    """Return what ``smaps_rollup`` says of a process, in MB of 10^6 bytes."""
    found = {}
    for line in rollup.splitlines()[1:]:
        name, _, rest = line.partition(":")
        found[name] = int(rest.split()[0]) * 1024 / 1e6
    return found


def watched(watch: Watch, clock: Clock, seconds: int) -> Iterator[int]:
    """Let so many seconds pass, as fast as they are taken; yield each."""
    now_ns = time.monotonic_ns()
    for second in range(1, seconds + 1):
        for _ in range(10):
            now_ns += TICK_NS
            watch.observation.tick(now_ns)
        clock.now_s += 1.0
        watch._second(now_ns)
        watch._housekeeping.second(now_ns)
        while watch.training._child is not None:  # of a rule that asks for it; time stands still meanwhile
            time.sleep(0.05)
            watch.training.poll(clock.now_s)
        yield second


def measure(seconds: int, settings: Settings) -> int:
    """Watch so long, print the table; return 0 when it ends within the budget.

    Raises:
        UnveilError: there is no watching here.
    """
    keep_little()
    watch, clock = Watch(settings), Clock()
    watch.clock = clock
    watch.start()
    keep_together()
    rows: list[tuple[object, ...]] = []
    sizes: dict[str, float] = {}
    spent_s = time.process_time()
    try:
        for second in watched(watch, clock, seconds):
            if second in _MARKS_S or second == seconds:
                sizes = sizes_mb(Path("/proc/self/smaps_rollup").read_text())
                own = [f"{sizes[name]:.1f}" for name in _COLUMNS]
                rows.append((f"{second / 60:.0f} min", *own, f"{sizes['Rss'] - sizes['Anonymous']:.1f}"))
        spent_s = time.process_time() - spent_s
    finally:
        watch.close()
    draw.table(("after, MB", *(f"{name}>" for name in _COLUMNS.values()), "of files>"), rows)
    draw.line(f"{1000 * spent_s / seconds:.2f} ms of CPU time a second watched, with warm caches")
    within = sizes["Rss"] <= BUDGET_MB
    draw.line(f"{'within' if within else 'OVER'} {BUDGET_MB:.0f} MB")
    return 0 if within else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--host-root", type=Path, default=Path("/"), help="e.g. what `large_tree` wrote")
    parser.add_argument("--rule", default=DEFAULT_RULE)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="unveil-bench-") as folder:
        settings = Settings(state_dir=Path(folder) / "state", host_root=asked.host_root, rule=asked.rule, gpu=False)
        try:
            return measure(round(3600 * asked.hours), settings)
        except UnveilError as error:
            return said(error, "hours")


if __name__ == "__main__":
    sys.exit(main())
