"""A small host of real files, the plainest way to parse a text, and a watcher that only polls its GPU reader."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.errors import UnreadableError
from unveil.host.gpu import GpuReader
from unveil.host.parsers.text import Text
from unveil.host.recording import read_recording
from unveil.host.root import HostRoot
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.host.parsers.shape import Parser
    from unveil.records.sample import SampleBlock

NET_HEADER = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast"
    "|bytes    packets errs drop fifo colls carrier compressed\n"
)


class Procfs:
    """Procfs, sysfs and cgroupfs below a folder; files are rewritten in place, as open ones must see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = HostRoot(folder)

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file, its folders included."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())

    def remove(self, path: str) -> None:
        """Remove a file."""
        (self.folder / path).unlink()

    def stat(self, cpus: dict[int, int], interrupts: int = 1000) -> None:
        """Write /proc/stat: user time of each CPU; every other state gets one tick more than the one before."""
        lines = [f"cpu{cpu} {' '.join(str(user + state) for state in range(10))}" for cpu, user in cpus.items()]
        total = sum(cpus.values())
        self.write(
            "proc/stat",
            f"cpu  {' '.join(str(total + state) for state in range(10))}\n"
            + "".join(f"{line}\n" for line in lines)
            + f"intr {interrupts} {' '.join('7' for _ in range(40))}\nctxt 500\nbtime 1700000000\nprocesses 60\n"
            "procs_running 2\nprocs_blocked 0\nsoftirq 9 1 2 3 4 5 6 7 8 9 10\n",
        )

    def net_dev(self, nics: dict[str, int]) -> None:
        """Write /proc/net/dev: bytes received by each interface."""
        lines = [
            f"{name:>6}: {received:7} {' '.join(str(n) for n in range(1, 16))}\n" for name, received in nics.items()
        ]
        self.write("proc/net/dev", NET_HEADER + "".join(lines))

    def meminfo(self, free_kib: int = 1000) -> None:
        """Write /proc/meminfo."""
        self.write(
            "proc/meminfo",
            f"MemTotal:       16000 kB\nMemFree:  {free_kib} kB\nHugePages_Total:      3\nHugepagesize:    2048 kB\n",
        )

    def cgroup_v2(self, path: str, *, anon: int = 4096, usage_usec: int = 5) -> None:
        """Make or change a cgroup of version 2."""
        base = f"sys/fs/cgroup{path}"
        self.write(
            f"{base}/cpu.stat", f"usage_usec {usage_usec}\nnr_periods 4\nnr_throttled 1\nthrottled_usec 250000\n"
        )
        self.write(f"{base}/memory.stat", f"anon {anon}\nfile 8192\nanon_thp 0\npgfault 11\npgmajfault 2\n")
        self.write(f"{base}/memory.numa_stat", f"anon N0={anon} N1=0\nfile N0=8192 N1=0\n")
        self.write(f"{base}/memory.max", "max\n")


@pytest.fixture
def procfs(tmp_path: Path) -> Procfs:
    """Give a host with two CPUs and two interfaces."""
    made = Procfs(tmp_path / "host")
    made.stat({0: 100, 1: 200})
    made.net_dev({"lo": 10, "eth0": 20})
    made.meminfo()
    made.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    return made


@pytest.fixture
def any_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a source cost what it costs on a slow machine, up to the budget that a sampler is given."""
    monkeypatch.setattr(
        "unveil.host.active_source.allowed_ns", lambda _period_s, budget_ns, _share=0.0: 1000 * budget_ns
    )
    monkeypatch.setattr("unveil.host.sampler._LEARNING_SHARE", 1000.0)


@pytest.fixture(scope="session")
def plainly() -> Callable[[bytes, Parser], dict[Channel, float]]:
    """Give the plain path: the parser's readings, and Python's own integers; absent where a number is none."""

    def parse(text: bytes, parser: Parser) -> dict[Channel, float]:
        numbers = [int(digits) for digits in re.findall(rb"[0-9]+", text)]
        values: dict[Channel, float] = {}
        twice: set[Channel] = set()
        for reading in parser(Text(text)):
            parts = [numbers[ordinal] for ordinal in reading.numbers]
            twice |= {reading.channel} & values.keys()
            values[reading.channel] = sum(parts) * reading.scale if max(parts) < 1 << 62 else math.nan
        return {channel: value for channel, value in values.items() if channel not in twice}

    return parse


Recorded = list[tuple[float, list[bytes]]]


@pytest.fixture(scope="session")
def recorded() -> Callable[[Path], Recorded]:
    """Give the wall clock of each second of a recording, with the times and values of its blocks."""

    def seconds(path: Path) -> Recorded:
        return [
            (tick.wall_s, [array.tobytes() for block in tick.blocks for array in (block.times_ns, block.values)])
            for tick in read_recording(path).ticks()
        ]

    return seconds


@pytest.fixture(scope="session")
def share_refused(recorded: Callable[[Path], Recorded]) -> Callable[[Path, Path, int], float]:
    """Give what damages a bit here and there in a recording's file: each time it is refused, or read as before.

    Only Parquet's footer has no checksum: of a damage there, all that is asked is that nothing but an error follows.
    """

    def share(path: Path, file: Path, step: int) -> float:
        before, whole = recorded(path), file.read_bytes()
        offsets = range(4, len(whole), step)
        footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        refused = 0
        for offset in offsets:
            damaged = bytearray(whole)
            damaged[offset] ^= 1 << offset % 8
            file.write_bytes(damaged)
            try:
                same = recorded(path) == before
                assert same or offset >= footer, offset
            except UnreadableError:
                refused += 1
        for length in range(0, len(whole), 3 * step):
            file.write_bytes(whole[:length])
            with pytest.raises(UnreadableError):
                recorded(path)
        return refused / len(offsets)

    return share


INTERVAL_NS = 100_000_000
HOLD_NS = 500_000_000


def waited_for_a_cpu_ns() -> int:
    """Return how long this thread was ready to run, and other programs ran instead."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1])


class GpuWatch:
    """A watcher that does nothing but poll its GPU reader, and remembers what came and how long polls took."""

    def __init__(self, reader: GpuReader) -> None:
        self.reader = reader
        self.blocks: list[SampleBlock] = []
        self.slowest_s = 0.0

    def until(self, done: Callable[[], bool], *, within_s: float = 30.0) -> None:
        end = time.monotonic() + within_s
        while True:
            starts, others_ns = self.reader.health().starts, waited_for_a_cpu_ns()
            now_ns = time.monotonic_ns()
            block = self.reader.poll(now_ns)
            spent_ns = time.monotonic_ns() - now_ns
            if self.reader.health().starts == starts:  # a start of a process costs what it costs
                self.slowest_s = max(self.slowest_s, (spent_ns - (waited_for_a_cpu_ns() - others_ns)) / 1e9)
            if block is not None:
                self.blocks.append(block)
            if done():
                return
            assert time.monotonic() < end, self.reader.health()
            time.sleep(0.01)

    def for_s(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end, within_s=seconds + 5)

    def last(self, metric: str, uuid: str) -> float | None:
        """Return the newest value of a channel; None when the newest block has no such channel."""
        if not self.blocks:
            return None
        column = self.blocks[-1].layout.column.get(Channel(metric, (("gpu", uuid),)))
        return None if column is None else float(self.blocks[-1].values[-1, column])


@pytest.fixture
def watch_of(nvml, tmp_path: Path) -> Iterator[Callable[..., GpuWatch]]:
    readers = []

    def make(**keywords: object) -> GpuWatch:
        options = {"interval_ns": INTERVAL_NS, "hold_ns": HOLD_NS, "environ": nvml.env} | keywords
        reader = GpuReader(HostRoot(tmp_path), **options)
        readers.append(reader)
        return GpuWatch(reader)

    yield make
    for key in [line.partition("=")[0] for line in nvml.state.path.read_text().splitlines() if ".delay." in line]:
        nvml.state.update({key: None})
    ended = [reader.close(10.0) for reader in readers]
    assert all(ended)
