"""The watcher beside others that collect: ``python -m unveil.benchmarks.peers --seconds 60``

Runs the real watcher and whatever of the usual collectors is installed here, all at once and each at its own default
pace, and prints what each takes: CPU with all its children, memory, and how many metrics it gives. What is not
installed is named and left out. The watcher reads ten times a second and also judges what it read; most others read
every ten or fifteen seconds and only store it, so the last column tells CPU for a thousand values.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.benchmarks.psutil_peer import sample
from unveil.benchmarks.running import at_work, running, said
from unveil.benchmarks.watch import cpu_seconds, memory_mb
from unveil.cli import draw
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from collections.abc import Callable

_PORT = 19_100
_SCRAPE_S = 15.0  # Prometheus's own default is a minute; what its manual shows is 15 s
_SETTLE_S = 5.0
_PLACES = ("/usr/lib/sysstat", "/usr/lib/sysstat64", "/usr/sbin", "/sbin", "/usr/lib64/sa", "/usr/libexec/sysstat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A collector.

    Attributes:
        name: what it is called here.
        program: its executable.
        period_s: its default pace.
        arguments: of its command line, given a folder of its own.
        metrics: tells how many values it gives each time, while it runs; None where it does not say.
    """

    name: str
    program: str
    period_s: float
    arguments: Callable[[Path], list[str]]
    metrics: Callable[[], int | None] = lambda: None

    def path(self) -> str | None:
        """Return where its executable is, None when it is not installed."""
        return shutil.which(self.program) or shutil.which(self.program, path=":".join(_PLACES))


def _exported() -> int | None:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{_PORT}/metrics", timeout=5) as answer:
        return sum(1 for line in answer.read().splitlines() if line and not line.startswith(b"#"))
    return None


def _leaves(value: object) -> int:
    if isinstance(value, dict):
        return sum(_leaves(each) for each in value.values())
    return sum(_leaves(each) for each in value) if isinstance(value, list | tuple) else 1


def _collectd(folder: Path) -> list[str]:
    """Return collectd's arguments; it has no defaults but what Debian's own configuration loads."""
    plugins = "".join(f"LoadPlugin {each}\n" for each in ("cpu", "memory", "interface", "disk", "load", "swap", "csv"))
    (folder / "collectd.conf").write_text(f'BaseDir "{folder}"\nPIDFile "{folder}/pid"\n{plugins}')
    return ["-f", "-C", str(folder / "collectd.conf")]


def _telegraf(folder: Path) -> list[str]:
    """Return telegraf's arguments: the inputs that its sample configuration turns on."""
    inputs = "".join(
        f"[[inputs.{each}]]\n"
        for each in ("cpu", "disk", "diskio", "kernel", "mem", "net", "processes", "swap", "system")
    )
    (folder / "telegraf.conf").write_text(f'{inputs}[[outputs.file]]\nfiles = ["{folder}/out"]\n')
    return ["--config", str(folder / "telegraf.conf")]


PEERS = (
    Peer(
        name="psutil loop", program=sys.executable, period_s=0.1,
        arguments=lambda _: ["-m", "unveil.benchmarks.psutil_peer"],
        metrics=lambda: _leaves(json.loads(json.dumps(sample()))),
    ),
    Peer(
        name="a loop that does nothing", program=sys.executable, period_s=0.1,
        arguments=lambda _: ["-m", "unveil.benchmarks.idle_peer"], metrics=lambda: 0,
    ),
    Peer(
        name="node_exporter, scraped", program="prometheus-node-exporter", period_s=_SCRAPE_S,
        arguments=lambda _: [f"--web.listen-address=127.0.0.1:{_PORT}"], metrics=_exported,
    ),
    Peer(
        name="sysstat sadc", program="sadc", period_s=1.0,
        arguments=lambda folder: ["-S", "XALL", "1", str(folder / "sa")],
    ),
    Peer(
        name="collectl", program="collectl", period_s=10.0,
        arguments=lambda folder: ["-i", "10", "-f", str(folder / "collectl")],
    ),
    Peer(
        name="atop", program="atop", period_s=10.0, arguments=lambda folder: ["-w", str(folder / "atop"), "10"],
    ),
    Peer(name="collectd", program="collectd", period_s=10.0, arguments=_collectd),
    Peer(name="telegraf", program="telegraf", period_s=10.0, arguments=_telegraf),
    Peer(name="netdata", program="netdata", period_s=1.0, arguments=lambda _: ["-D"]),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one collector took.

    Attributes:
        share: of one core.
        rss_mb: resident, MB, of its main process.
        metrics: different values that it gives, None where unknown.
        values: that it gives in a second.
    """

    name: str
    period_s: float
    share: float
    rss_mb: float
    metrics: int | None
    values: float | None

    @property
    def us_for_thousand(self) -> float | None:
        """Return the CPU time for a thousand values, microseconds."""
        return 1e9 * self.share / self.values if self.values else None


def measure(seconds: float, arguments: list[str]) -> tuple[list[Cost], list[str]]:
    """Run all of them for some seconds; return what they cost, and what is to be said of those that are left out.

    Raises:
        BadInputError: the watcher did not start.
    """
    absent = [f"{peer.name}: not installed ({peer.program})" for peer in PEERS if peer.path() is None]
    pids: dict[str, tuple[int, float]] = {}
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="unveil-peers-") as scratch:
        watcher = stack.enter_context(running(*arguments))
        status = watcher.status()
        watcher.quiet()
        pids["unveil watch"] = watcher.pid, 0.1
        for number, peer in enumerate(PEERS):
            if (path := peer.path()) is not None:
                folder = Path(scratch) / str(number)
                folder.mkdir()
                process = stack.enter_context(at_work([path, *peer.arguments(folder)]))
                pids[peer.name] = process.pid, peer.period_s
        time.sleep(_SETTLE_S)
        counted: dict[str, int | None] = {peer.name: peer.metrics() for peer in PEERS if peer.name in pids}
        given = {name: metrics / pids[name][1] for name, metrics in counted.items() if metrics is not None}
        counted["unveil watch"] = status["channels"]
        given["unveil watch"] = sum(source["channels"] / source["period_s"] for source in status["sources"])
        before = {name: cpu_seconds(pid) for name, (pid, _) in pids.items() if _lives(pid)}
        began = time.monotonic()
        while (left_s := seconds - (time.monotonic() - began)) > 0:
            time.sleep(min(_SCRAPE_S, left_s))
            _exported()  # a node exporter does nothing until it is asked
        spent_s = time.monotonic() - began
        costs = []
        for name, (pid, period_s) in pids.items():
            if name not in before or not _lives(pid):
                absent.append(f"{name}: ended by itself")
                continue
            share = (cpu_seconds(pid) - before[name]) / spent_s
            costs.append(
                Cost(
                    name=name,
                    period_s=period_s,
                    share=share,
                    rss_mb=memory_mb(pid)[0],
                    metrics=counted[name],
                    values=given.get(name),
                )
            )
    return costs, absent


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def report(costs: list[Cost], absent: list[str]) -> int:
    """Print the table; return 0."""
    draw.table(
        ("collector", "every>", "CPU, % of a core>", "resident, MB>", "metrics>", "values a s>", "us for 1000>"),
        (
            (
                each.name,
                f"{each.period_s:g} s",
                f"{100 * each.share:.3f}",
                f"{each.rss_mb:.1f}",
                "-" if each.metrics is None else each.metrics,
                "-" if each.values is None else f"{each.values:.0f}",
                "-" if each.us_for_thousand is None else f"{each.us_for_thousand:.0f}",
            )
            for each in costs
        ),
    )
    for line in absent:
        draw.line(line, style="dim")
    return 0


def main(argv: list[str] | None = None) -> int:
    """Measure from the command line; further arguments go to `unveil watch`."""
    parser = argparse.ArgumentParser(
        prog="python -m unveil.benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="default: 60")
    asked, rest = parser.parse_known_args(argv)
    try:
        return report(*measure(asked.seconds, rest))
    except UnveilError as error:
        return said(error, "peers")


if __name__ == "__main__":
    sys.exit(main())
