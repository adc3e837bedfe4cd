"""What `unveil watch` costs on this host: a share of one core, memory, bytes written, lateness of its ticks.

    python -m unveil.benchmarks.watch --seconds 60

Starts the real command with everything on (sampling at 100 ms, features, all detectors, matching, journal, the
GPU child where there is NVML), waits until it is warm, and reads the kernel's own accounts of it. CPU time is that of
the watcher and all its children, living and dead, from the kernel's per-process CPU clocks (nanoseconds).

A share of a core means little without the machine: to wake an idle CPU and to fill its caches again costs much more on
one than on another, and on a virtual machine much more in one hour than in another. So two peers that wake
at the same pace are measured beside it, slice by slice: a loop that does nothing (``idle_peer``: the floor) and a plain
psutil loop (``psutil_peer``). Each is stopped while another is measured, because each makes the others' caches cold.
All three are measured twice, again in turns: on the host as it is, and while its CPUs are kept from sleeping, as those
of a host with work are (``awake``); four minutes in all. How many pages of memory are touched from one tick to the
next, and in a second, does not depend on the hour, and explains most of the rest.
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

from unveil.benchmarks.awake import loops_on_all_cpus
from unveil.engine.client import Client
from unveil.errors import WatcherAbsentError

BUDGET_CPU = 0.4  # % of one core, on a host of two CPUs
BUDGET_RSS = 48.0  # MB
_PAGE_KB, _HUGE_KB = 4, 2048
SLICES = 12
TICK_SPAN_S = 0.12  # holds one tick for sure, seldom two
PEERS = ("idle_peer", "psutil_peer")


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


def touched_pages(pid: int, span_s: float) -> int | None:
    """Return how many pages a process touches in a time; None where the kernel or our rights do not tell.

    Of several spans the least: pages that are shared count as touched when another process touches them.
    """
    least: int | None = None
    for _ in range(7):
        try:
            Path(f"/proc/{pid}/clear_refs").write_text("1")
            time.sleep(span_s)
            touched = _referenced(Path(f"/proc/{pid}/smaps").read_text())
        except OSError:
            return None
        least = touched if least is None else min(least, touched)
    return least


def _referenced(smaps: str) -> int:
    """Return how many pages are marked as touched, a huge one counted once."""
    pages = referenced = 0
    for line in smaps.splitlines():
        name, _, rest = line.partition(":")
        if name == "Referenced":
            referenced = int(rest.split()[0])
        elif name == "AnonHugePages":
            huge = min(referenced, int(rest.split()[0])) // _HUGE_KB
            pages += huge + (referenced - huge * _HUGE_KB) // _PAGE_KB
    return pages


def _wait(watcher: subprocess.Popen[bytes], client: Client, until_s: float) -> bool:
    """Wait until windows are judged or the time is up; return whether the watcher lives."""
    while time.monotonic() < until_s and watcher.poll() is None:
        try:
            window = client.call("status")["window"]
            if window is not None and window["verdict"]["state"] != "unknown":
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
        peers = [subprocess.Popen([sys.executable, "-m", f"unveil.benchmarks.{name}"]) for name in PEERS]
        client = Client(Path(folder) / "control.sock")
        try:
            if not _wait(watcher, client, time.monotonic() + warm_s):
                return 1  # it said why
            client.close()  # nobody asks the watcher anything while it is measured
            before, begin = bytes_written(watcher.pid), time.monotonic()
            observed = _observe([watcher.pid, *(peer.pid for peer in peers)], seconds)
            written = (bytes_written(watcher.pid) - before) / (time.monotonic() - begin)
            touched = [
                (touched_pages(pid, TICK_SPAN_S), touched_pages(pid, 1.0)) for pid in (watcher.pid, peers[0].pid)
            ]
            status = client.call("status")
        finally:
            client.close()
            for peer in peers:
                peer.kill()
                peer.wait()
            watcher.terminate()
            watcher.wait(20)
    return _report(observed, status, written, touched)


Readings = tuple[list[float], list[tuple[float, float]]]
Turns = dict[bool, list[Readings]]  # by whether CPUs are kept awake: of the watcher and of each peer


def _observe(measured: list[int], seconds: int) -> Turns:
    """Return (shares of a core in %, sizes) of watcher and peers over slices of the time, in turns."""
    readings: Turns = {awake: [([], []) for _ in measured] for awake in (False, True)}
    peers = measured[1:]
    slice_s = max(1.0, seconds / SLICES)
    for peer in peers:
        os.kill(peer, signal.SIGSTOP)
    with loops_on_all_cpus() as keep_awake:
        for _ in range(SLICES):
            for awake in (False, True):
                keep_awake(awake)
                _slice(measured[0], slice_s, readings[awake][0])
                for peer, found in zip(peers, readings[awake][1:], strict=True):
                    os.kill(peer, signal.SIGCONT)
                    _slice(peer, slice_s / 2, found)
                    os.kill(peer, signal.SIGSTOP)
    for peer in peers:
        os.kill(peer, signal.SIGCONT)
    return readings


def _slice(pid: int, length_s: float, readings: Readings) -> None:
    begin, spent = time.monotonic(), cpu_seconds(pid)
    time.sleep(length_s)
    readings[0].append(100 * (cpu_seconds(pid) - spent) / (time.monotonic() - begin))
    readings[1].append(memory_mb(pid))


def _report(
    observed: Turns,
    status: dict[str, object],
    written: float,
    touched: list[tuple[int | None, int | None]],
) -> int:
    sizes = [size for readings in observed.values() for size in readings[0][1]]
    rss = max(size[0] for size in sizes)
    ticks = status["ticks"]
    assert isinstance(ticks, dict)
    load = Path("/proc/loadavg").read_text().split()[0]
    window = status["window"]
    assert isinstance(window, dict)
    votes = ", ".join(vote["detector"] for vote in window["verdict"]["votes"])
    print(f"unveil watch, 100 ms, {os.cpu_count()} CPUs, load {load}, rule {status['rule']}, votes: {votes}")
    print(f"  {'':26}{'min':>9}{'median':>9}{'max':>9}   budget")
    over = []
    for awake, (watcher, idle, psutil) in observed.items():
        print(f"  CPU, % of one core, {'while no CPU sleeps' if awake else 'on the host as it is'}")
        print(f"  {'  the watcher':26}{_spread(watcher[0])}   {BUDGET_CPU:.1f}")
        print(f"  {'  a loop that does nothing':26}{_spread(idle[0])}   (the floor of this machine in this minute)")
        print(f"  {'  a psutil loop':26}{_spread(psutil[0])}   (samples only; {psutil[1][-1][0]:.0f} MB)")
        if statistics.median(watcher[0]) > BUDGET_CPU:
            over.append("CPU while no CPU sleeps" if awake else "CPU on the host as it is")
    print(f"  {'resident, MB':26}{min(s[0] for s in sizes):9.1f}{sizes[-1][0]:9.1f}{rss:9.1f}   {BUDGET_RSS:.0f}")
    print(f"  {'proportional, MB':26}{min(s[1] for s in sizes):9.1f}{sizes[-1][1]:9.1f}{max(s[1] for s in sizes):9.1f}")
    for name, (tick, second) in zip(("pages touched", "  a loop that does nothing"), touched, strict=True):
        print(f"  {name:26}{_or_dash(tick):>9}{_or_dash(second):>9}            (from tick to tick, in a second)")
    print(f"  {'written to disk, bytes/s':26}{'':9}{written:9.0f}")
    print(f"  {'lateness of ticks, ms':26}{'':9}{ticks['late_p50_ms']:9.2f}{ticks['late_p99_ms']:9.2f}   (median, p99)")
    print(f"  {'ticks taken, missed':26}{'':9}{ticks['taken']:9}{ticks['missed']:9}")
    print(f"  {'channels, features':26}{'':9}{status['channels']:9}{status['features']:9}")
    over += ["memory"] if rss > BUDGET_RSS else []
    print(f"OVER BUDGET: {', '.join(over)}" if over else "within budget")
    return 1 if over else 0


def _spread(shares: list[float]) -> str:
    return f"{min(shares):9.3f}{statistics.median(shares):9.3f}{max(shares):9.3f}"


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


def main(argv: list[str] | None = None) -> int:
    """Measure from the command line; further arguments go to `unveil watch`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="that the watcher is measured for, in either state")
    parser.add_argument("--warm", type=int, default=90, help="wait at most so long until windows are judged")
    asked, rest = parser.parse_known_args(argv)
    return measure(asked.seconds, asked.warm, rest)


if __name__ == "__main__":
    sys.exit(main())
