"""What sampling costs on this machine: ``python -m unveil.benchmarks.sampling --seconds 20``.

Samples the live host at its real pace. A tight loop would flatter, as caches stay warm; what it says is printed, too.
The cost of waking up ten times a second is measured alone, before, and told apart. With ``--tree`` it samples a large
host made of plain files instead: 128 CPUs, eight nodes, eight GPUs, 128 NIC queues, 500 cgroups.
"""

from __future__ import annotations

import argparse
import gc
import resource
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from unveil.benchmarks.large_tree import Size, grow
from unveil.host.root import HostRoot
from unveil.host.sampler import Sampler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTERVAL_NS = 100_000_000
_BUDGETS = "of the whole watcher: 0.4 % of a core on two CPUs, 0.8 % on the large tree"


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _pace(seconds: float, work: Callable[[int, int], None]) -> float:
    """Call *work* with the number and the time of each tick; return CPU time used as a share of one core."""
    began, cpu = time.monotonic_ns(), _cpu_s()
    for number in range(int(seconds * 1e9 / _INTERVAL_NS)):
        wait = began + (number + 1) * _INTERVAL_NS - time.monotonic_ns()
        if wait > 0:
            time.sleep(wait / 1e9)
        work(number, time.monotonic_ns())
    return (_cpu_s() - cpu) / ((time.monotonic_ns() - began) / 1e9)


def _quantiles(costs: Sequence[int]) -> str:
    ordered = sorted(costs)
    return f"median {median(ordered) / 1e3:.0f} µs, 95 % {ordered[int(len(ordered) * 0.95)] / 1e3:.0f} µs"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m unveil.benchmarks.sampling", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to sample (default 20)")
    parser.add_argument("--host-root", default="/", help="another root for procfs and sysfs")
    parser.add_argument("--tree", action="store_true", help="sample a made-up large host")
    parser.add_argument("--cpus", type=int, default=Size().cpus, help="of the made-up host (default 128)")
    parser.add_argument("--cgroups", type=int, default=Size().cgroups, help="of the made-up host (default 500)")
    options = parser.parse_args(arguments)
    if not options.tree:
        return measure(HostRoot(options.host_root), options.seconds)
    with tempfile.TemporaryDirectory(prefix="unveil-tree-") as folder:
        grow(Path(folder), Size(cpus=options.cpus, cgroups=options.cgroups))
        return measure(HostRoot(folder), options.seconds)


def measure(root: HostRoot, seconds: float) -> int:
    """Sample a host for some seconds and print what that cost."""
    ticks: list[int] = []
    collects: list[int] = []
    values = 0
    channels = 0

    def work(number: int, now_ns: int) -> None:
        nonlocal values, channels
        before = time.thread_time_ns()
        sampler.tick(now_ns)
        after = time.thread_time_ns()
        ticks.append(after - before)
        if number % 10 == 9:
            blocks = sampler.collect(now_ns)
            collects.append(time.thread_time_ns() - after)
            values += sum(block.values.size for block in blocks)
            channels = max(channels, len({channel for block in blocks for channel in block.layout.channels}))

    sampler = Sampler(root)
    gc.collect()
    gc.freeze()
    idle = _pace(seconds / 4, lambda _number, _now_ns: None)
    _pace(min(3.0, seconds), work)
    ticks.clear()
    collects.clear()
    values = 0
    whole = _pace(seconds, work)

    own = (sum(ticks) + sum(collects)) / 1e9 / seconds
    print(
        f"tick and collect {own * 100:.3f} % of a core; process {whole * 100:.3f} %, of which waking {idle * 100:.3f} %"
    )
    print(f"budget  {_BUDGETS}")
    print(f"tick    {_quantiles(ticks)}; in a tight loop {_tight_us(sampler):.0f} µs")
    print(f"collect {_quantiles(collects)} (once a second)")
    print(f"{channels} channels, {values / seconds:.0f} values a second, {_resident_mb():.1f} MB resident")
    print(f"\n{'source':14} {'every':>6} {'files':>5} {'channels':>8} {'read µs':>8} {'parse µs':>8}  state")
    for each in sampler.health():
        print(
            f"{each.name:14} {each.period_s:>4g} s {each.files:>5} {each.channels:>8} {each.read_us:>8.1f} "
            f"{each.parse_us:>8.1f}  {each.state} {each.reason}"
        )
    sampler.close()
    return 0


def _tight_us(sampler: Sampler) -> float:
    """Return what a tick costs when nothing else runs in between, median in microseconds."""
    now_ns = time.monotonic_ns()
    costs = []
    for number in range(1, 201):
        before = time.thread_time_ns()
        sampler.tick(now_ns + number * _INTERVAL_NS)
        costs.append(time.thread_time_ns() - before)
    return median(costs) / 1e3


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    raise SystemExit(main())
