"""What `unveil watch` costs on this host: a share of one core, memory, bytes written, lateness of its ticks.

    python -m unveil.benchmarks.watch --seconds 60

Starts the real command with everything on (sampling at 100 ms, features, all three detectors, matching, journal, the
GPU child where there is NVML), waits until it is warm, and reads the kernel's own accounts of it. CPU time is that of
the watcher and all its children, living and dead, from the kernel's per-process CPU clocks (nanoseconds). A plain
psutil loop at the same pace (``unveil.benchmarks.psutil_peer``) is measured in between, slice by slice: it is stopped
while the watcher is measured, because each makes the other's caches cold.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from unveil.engine.client import Client
from unveil.errors import WatcherAbsentError

BUDGET_CPU = 1.0  # % of one core
BUDGET_RSS = 60.0  # MB


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its descendants, living and reaped, in seconds."""
    total = time.clock_gettime((~pid << 3) | 2)  # the kernel's clock id of another process: CPUCLOCK_SCHED
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    total += (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")  # cutime, cstime: children that ended
    for child in _children(pid):
        try:
            total += cpu_seconds(child)
        except OSError:
            continue  # ended just now: the next reading finds it in cutime
    return total


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def memory_mb(pid: int) -> tuple[float, float]:
    """Return (resident, proportional) size of one process, in MB of 10^6 bytes."""
    sizes = {"Rss": 0.0, "Pss": 0.0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in sizes:
            sizes[name] = int(rest.split()[0]) * 1024 / 1e6
    return sizes["Rss"], sizes["Pss"]


def bytes_written(pid: int) -> int:
    """Return how many bytes a process has sent towards a disk."""
    lines = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(lines["write_bytes"])


def _wait(watcher: subprocess.Popen[bytes], client: Client, condition: str, until_s: float) -> bool:
    """Wait until the status has the given key set or the time is up; return whether the watcher lives."""
    while time.monotonic() < until_s and watcher.poll() is None:
        try:
            if client.call("status").get(condition):
                break
        except WatcherAbsentError:
            pass
        time.sleep(0.5)
    return watcher.poll() is None


def measure(seconds: int, warm_s: int, arguments: list[str]) -> int:
    """Run the watcher, print the table, return 0 within budget and 1 beyond."""
    with tempfile.TemporaryDirectory(prefix="unveil-bench-") as folder:
        command = [sys.executable, "-m", "unveil", "watch", "--state-dir", folder, *arguments]
        watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        peer = subprocess.Popen([sys.executable, "-m", "unveil.benchmarks.psutil_peer"])
        client = Client(Path(folder) / "control.sock")
        try:
            if not _wait(watcher, client, "trained", time.monotonic() + warm_s):
                return 1  # it said why
            client.close()  # nobody asks the watcher anything while it is measured
            before, begin = bytes_written(watcher.pid), time.monotonic()
            (shares, sizes), (peers, peer_sizes) = _observe(watcher.pid, peer.pid, seconds)
            written = (bytes_written(watcher.pid) - before) / (time.monotonic() - begin)
            status = client.call("status")
        finally:
            client.close()
            peer.kill()
            peer.wait()
            watcher.terminate()
            watcher.wait(20)
    code = _report(shares, sizes, status, written)
    low, middle, high = min(peers), statistics.median(peers), max(peers)
    print(
        f"  {'psutil loop: CPU, %':26}{low:9.3f}{middle:9.3f}{high:9.3f}   (samples only; {peer_sizes[-1][0]:.0f} MB)"
    )
    return code


Readings = tuple[list[float], list[tuple[float, float]]]


def _observe(watcher: int, peer: int, seconds: int) -> tuple[Readings, Readings]:
    """Return (shares of a core in %, sizes) of each process over six slices of the time, in turns."""
    readings: tuple[Readings, Readings] = (([], []), ([], []))
    slice_s = max(1.0, seconds / 6)
    for _ in range(6):
        os.kill(peer, signal.SIGSTOP)
        _slice(watcher, slice_s, readings[0])
        os.kill(peer, signal.SIGCONT)
        _slice(peer, slice_s / 2, readings[1])
    return readings


def _slice(pid: int, length_s: float, readings: Readings) -> None:
    begin, spent = time.monotonic(), cpu_seconds(pid)
    time.sleep(length_s)
    readings[0].append(100 * (cpu_seconds(pid) - spent) / (time.monotonic() - begin))
    readings[1].append(memory_mb(pid))


def _report(shares: list[float], sizes: list[tuple[float, float]], status: dict[str, object], written: float) -> int:
    cpu, rss = statistics.median(shares), max(size[0] for size in sizes)
    ticks = status["ticks"]
    assert isinstance(ticks, dict)
    load = Path("/proc/loadavg").read_text().split()[0]
    print(f"unveil watch, 100 ms, {os.cpu_count()} CPUs, load {load}, rule {status['rule']}")
    print(f"  {'':26}{'min':>9}{'median':>9}{'max':>9}   budget")
    print(f"  {'CPU, % of one core':26}{min(shares):9.3f}{cpu:9.3f}{max(shares):9.3f}   {BUDGET_CPU:.1f}")
    print(f"  {'resident, MB':26}{min(s[0] for s in sizes):9.1f}{sizes[-1][0]:9.1f}{rss:9.1f}   {BUDGET_RSS:.0f}")
    print(f"  {'proportional, MB':26}{min(s[1] for s in sizes):9.1f}{sizes[-1][1]:9.1f}{max(s[1] for s in sizes):9.1f}")
    print(f"  {'written to disk, bytes/s':26}{'':9}{written:9.0f}")
    print(f"  {'lateness of ticks, ms':26}{'':9}{ticks['late_p50_ms']:9.2f}{ticks['late_p99_ms']:9.2f}   (median, p99)")
    print(f"  {'ticks taken, missed':26}{'':9}{ticks['taken']:9}{ticks['missed']:9}")
    print(f"  {'channels, features':26}{'':9}{status['channels']:9}{status['features']:9}")
    within = cpu <= BUDGET_CPU and rss <= BUDGET_RSS
    print("within budget" if within else "OVER BUDGET")
    return 0 if within else 1


def main(argv: list[str] | None = None) -> int:
    """Measure from the command line; further arguments go to `unveil watch`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--warm", type=int, default=90, help="wait at most so long for the first trained model")
    asked, rest = parser.parse_known_args(argv)
    return measure(asked.seconds, asked.warm, rest)


if __name__ == "__main__":
    sys.exit(main())
