"""What the cockpit costs: its first paint, the gaps between its frames, its memory and its share of a core.

    python -m unveil.benchmarks.cockpit

A process of its own serves a journal of many windows at a control socket, as a watcher does; the cockpit runs in
another one, on a terminal of its own. A frame gap is how late the cockpit's loop was for a tick of 10 ms: while it is
late, nothing is drawn and no key is answered; on a host that is busy with other things, compare it with the CPU time in
it. The share of a core is measured for itself, without that tick.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.engine.client import Client
from unveil.engine.control import ControlServer
from unveil.engine.history import History
from unveil.engine.status import resident_bytes
from unveil.records.attribution import Attribution, FeatureShare
from unveil.records.codec import encode
from unveil.records.feature import FeatureId
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State, Verdict, Vote
from unveil.records.window import Sighting, WindowSummary
from unveil.store.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOWS = 100_000
TICK_S = 0.01
SIZE = (160, 50)
SETTLED_S = 3.0  # after its start: what is measured is how it runs, not how it begins


def summary(index: int, at_s: float) -> WindowSummary:
    """Return a window as a busy host makes them: one of ten anomalous and matched."""
    notable = index % 10 == 0
    names = ("memory.page_faults.rate", "memory.thp_fault_alloc.rate", "cpu.psi_some.rate", "cpu.busy.rate")
    shares = tuple(
        FeatureShare(
            feature=FeatureId(name), subsystem=Subsystem.MEMORY, share=0.25, value=9000.0, expected=120.0, sigma=8.0
        )
        for name in names
    )
    vote = Vote(detector="zscore", score=1.2, threshold=1.1, p_value=0.01, anomalous=notable)
    return WindowSummary(
        watch=1, index=index, wall_s=at_s, ticks_missed=0,
        verdict=Verdict(
            window=index, state=State.ANOMALOUS if notable else State.NORMAL, votes=(vote,) * 3,
            rule="zscore|mahalanobis", severity=2.5 if notable else 0.4,
        ),
        attribution=Attribution(window=index, features=shares, subsystems=dict.fromkeys(Subsystem, 1 / 6)),
        sightings=(Sighting(fingerprint="reduced_huge_page_coverage", entity="cgroup:/x", answer="match"),) * notable,
        knowledge=1,
    )  # fmt: skip


class Served:
    """A journal served at a socket, growing."""

    def __init__(self, folder: Path, windows: int) -> None:
        self._journal = Journal(folder / "journal.db")
        self._begin_s = time.time() - windows
        self._journal.begin_watch(at_s=self._begin_s, version="0", host="benchmark")
        for index in range(windows):
            self._journal.append_second(summary(index, self._begin_s + index), ())
        self._next = windows
        self._history = History(self._journal.path)
        self._newest: dict[str, Any] = {}
        self._server = ControlServer(folder / "control.sock", self._answer)

    def _answer(self, method: str, params: dict[str, Any], _actor: str) -> Any:
        return self._status() if method == "status" else self._history.call(method, **params)

    def _status(self) -> dict[str, Any]:
        return {
            "version": "0", "pid": 1, "host": "benchmark", "watch": 1, "started_s": self._begin_s,
            "now_s": time.time(), "uptime_s": 60.0, "profile": "site", "rule": "zscore", "window": self._newest,
            "knowledge": {"generation": 1, "fingerprints": 6, "stale_since_s": None, "problems": []},
            "training": "trained", "ticks": {"taken": 1, "missed": 0, "late_p99_ms": 0.1},
            "cost": {"cpu_share": 0.005, "rss_bytes": 4e7}, "problems": [],
            "shape": {"cpus": 64, "nodes": 2, "gpus": 8, "nics": 4},
            "breaker": {"open": False, "failures": 0, "most": 3},
        }  # fmt: skip

    def run(self, rate: float) -> None:
        """Serve until killed, with so many new windows a second."""
        due = time.monotonic()
        while True:
            window = summary(self._next, time.time())
            self._journal.append_second(window, ())
            self._newest, self._next = encode(window), self._next + 1
            due = max(due + 1 / rate, time.monotonic() - 1)
            self._server.serve_until(int(due * 1e9))


async def cockpit(socket: Path, seconds: float, out: Path) -> None:
    """Run the cockpit on this terminal for a while and write down what it cost."""
    from unveil_tui.app import Cockpit

    client = Client(socket)
    client.call("windows", limit=1)
    answered_s, began_cpu_s = time.monotonic(), time.process_time()
    app = Cockpit(client)
    gc.freeze()  # as `unveil tui` does
    gaps: list[tuple[float, float]] = []
    told: dict[str, float] = {}

    async def measure() -> None:
        while not (app.seen.windows and app.screen.is_mounted and app.screen.query("#windows")):
            await asyncio.sleep(TICK_S / 2)
        painted = asyncio.Event()
        app.screen.call_after_refresh(painted.set)
        await painted.wait()
        told["first_paint_s"], told["paint_cpu_s"] = time.monotonic() - answered_s, time.process_time() - began_cpu_s
        await asyncio.sleep(SETTLED_S)
        before_s = time.process_time()
        await asyncio.sleep(seconds)
        told["cpu_share"] = (time.process_time() - before_s) / seconds
        began_s = due = time.monotonic()
        while (now := time.monotonic()) < began_s + seconds:
            due, cpu_s = max(due + TICK_S, now), time.thread_time()
            await asyncio.sleep(due - now)
            gaps.append((time.monotonic() - due, time.thread_time() - cpu_s))
        told["rss_mb"] = resident_bytes() / 1e6
        told["longest_gap_ms"], told["gap_cpu_ms"] = (1e3 * each for each in max(gaps))
        told["longest_cpu_ms"] = 1e3 * max(cpu for _, cpu in gaps)
        told["p99_gap_ms"] = 1e3 * sorted(gaps)[int(0.99 * len(gaps))][0]
        told["newest"] = float(app.seen.windows[-1].index)
        out.write_text(json.dumps(told))
        app.exit()

    measuring = asyncio.create_task(measure())
    await app.run_async()
    await measuring


def on_a_terminal(command: Sequence[str]) -> None:
    """Run a command on a terminal of its own, and read what it draws."""
    import fcntl
    import struct
    import termios

    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    process = subprocess.Popen(command, stdin=child, stdout=child, stderr=child, env=environment)
    os.close(child)

    def drain() -> None:
        with contextlib.suppress(OSError):  # the terminal goes with its process
            while os.read(parent, 1 << 16):
                pass

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    process.wait()
    reader.join(2)
    os.close(parent)


def measure(windows: int, rate: float, seconds: float) -> dict[str, float]:
    """Return what one cockpit cost on a journal of so many windows that grows at a rate."""
    with tempfile.TemporaryDirectory(prefix="unveil-cockpit-") as name:
        folder = Path(name)
        this = [sys.executable, "-m", "unveil.benchmarks.cockpit"]
        server = subprocess.Popen([*this, "--serve", name, "--windows", str(windows), "--rate", str(rate)])
        try:
            while not (folder / "control.sock").exists():
                if server.poll() is not None:
                    raise RuntimeError("the journal could not be served")
                time.sleep(0.05)
            on_a_terminal([*this, "--cockpit", name, "--seconds", str(seconds)])
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()
        told: dict[str, float] = json.loads((folder / "told.json").read_text())
        return told


def main(words: Sequence[str] | None = None) -> int:
    """Print what the cockpit costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=WINDOWS, help="in the journal (default: 100000)")
    parser.add_argument("--rate", type=float, default=20.0, help="new windows a second (default: 20)")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each of the two measurements (default: 12)")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cockpit", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.serve:
        Served(given.serve, given.windows).run(given.rate)
    if given.cockpit:
        asyncio.run(cockpit(given.cockpit / "control.sock", given.seconds, given.cockpit / "told.json"))
        return 0
    busy = measure(given.windows, given.rate, given.seconds)
    print(f"{given.windows:,} windows in the journal, {given.rate:g} a second arriving, {SIZE[0]}x{SIZE[1]}:")
    print(f"  first paint {busy['first_paint_s']:.2f} s after the socket answered, CPU {busy['paint_cpu_s']:.2f} s")
    print(
        f"  longest frame gap {busy['longest_gap_ms']:.0f} ms (CPU in it {busy['gap_cpu_ms']:.0f} ms), "
        f"p99 {busy['p99_gap_ms']:.0f} ms; most CPU between two ticks {busy['longest_cpu_ms']:.0f} ms"
    )
    print(f"  {busy['rss_mb']:.0f} MB resident, {100 * busy['cpu_share']:.1f} % of a core")
    calm = measure(2000, 1.0, given.seconds)
    print("1 window a second:")
    print(f"  {100 * calm['cpu_share']:.1f} % of a core, {calm['rss_mb']:.0f} MB resident")
    return 0


if __name__ == "__main__":
    sys.exit(main())
