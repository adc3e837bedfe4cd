"""FAULTS: silent inefficiencies that can be laid on a host and taken away again. Nothing fails; it is only slower.

Each is a context manager over a place: entering injects it, leaving puts every value back that was there before, also
when it was only half injected. A kernel that does not permit one raises `ImpossibleError` with the reason.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import UnveilError
from unveil.lab.place import SIDES, outer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from unveil.lab.place import Place

HOG = "while True: sum(range(100000))"
MODEST = (
    "import time\nwhile True:\n    end = time.monotonic() + 0.02\n"
    "    while time.monotonic() < end: pass\n    time.sleep(0.2)"
)
STREAM = (
    "import numpy\na = numpy.ones(1 << 24)\nb = numpy.empty_like(a)\n"
    "while True: numpy.multiply(a, 1.0001, out=b); numpy.copyto(a, b)"
)


class ImpossibleError(UnveilError):
    """This kernel or machine does not permit a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        title: what an operator would call it.
        label: fingerprint that shall find it; empty when the knowledge base has none.
        subsystem: where it is, for a fault without a label.
    """

    title: str
    label: str
    inject: Callable[[Place], AbstractContextManager[None]]
    subsystem: str = ""


def write(stack: ExitStack, path: Path, text: str) -> None:
    """Write a kernel file now, and what it held before when the stack unwinds."""
    try:
        before = path.read_text()
        selected = before.partition("[")[2].partition("]")[0] or before.strip()
        path.write_text(text)
    except OSError as error:
        raise ImpossibleError(f"{path}: {error.strerror}") from error
    stack.callback(path.write_text, selected)


@contextmanager
def _huge_pages_off(_place: Place) -> Iterator[None]:
    with ExitStack() as stack:
        write(stack, Path("/sys/kernel/mm/transparent_hugepage/enabled"), "never")
        yield


@contextmanager
def _cpu_quota(place: Place) -> Iterator[None]:
    folder = place.folder("cpu")
    if folder is None:
        raise ImpossibleError("no CPU controller")
    with ExitStack() as stack:
        if (folder / "cpu.max").exists():
            write(stack, folder / "cpu.max", "45000 100000")
        else:
            write(stack, folder / "cpu.cfs_quota_us", "45000")
        yield


@contextmanager
def _io_throttle(place: Place) -> Iterator[None]:
    number = place.scratch.stat().st_dev
    disk = _whole_disk(os.major(number), os.minor(number))
    folder = place.folder("blkio")
    if folder is None:
        raise ImpossibleError("no block I/O controller")
    with ExitStack() as stack:
        for name in ("read", "write"):
            path = folder / f"blkio.throttle.{name}_bps_device"
            if not path.exists():
                raise ImpossibleError(f"{path} does not exist")
            path.write_text(f"{disk} {2 << 20}")
            stack.callback(path.write_text, f"{disk} 0")
        yield


def _whole_disk(major: int, minor: int) -> str:
    """Return the number of the disk that a partition is on, or of the disk itself."""
    path = Path(f"/sys/dev/block/{major}:{minor}").resolve()
    disk = path.parent if (path / "partition").exists() else path
    try:
        return (disk / "dev").read_text().strip()
    except OSError as error:
        raise ImpossibleError("the scratch folder is on no block device") from error


@contextmanager
def _memory_limit(place: Place) -> Iterator[None]:
    folder = place.folder("memory")
    if folder is None:
        raise ImpossibleError("no memory controller")
    with ExitStack() as stack:
        if (folder / "memory.high").exists():
            used = int((folder / "memory.current").read_text())
            write(stack, folder / "memory.high", str(int(0.85 * used)))
        else:
            used = int((folder / "memory.usage_in_bytes").read_text())
            write(stack, folder / "memory.limit_in_bytes", str(int(0.85 * used)))
        yield


@contextmanager
def _small_dirty_limit(_place: Place) -> Iterator[None]:
    with ExitStack() as stack:
        ratio = Path("/proc/sys/vm/dirty_ratio")
        if ratio.read_text().strip() == "0":
            write(stack, Path("/proc/sys/vm/dirty_bytes"), str(2 << 20))
        else:  # the kernel sets one to zero when the other is written, so the ratio is what is put back
            stack.callback(ratio.write_text, ratio.read_text().strip())
            Path("/proc/sys/vm/dirty_bytes").write_text(str(2 << 20))
        yield


@contextmanager
def _receive_on_one_cpu(_place: Place) -> Iterator[None]:
    with ExitStack() as stack:
        for side in SIDES:
            for path in sorted(Path(f"/sys/class/net/{outer(side)}/queues").glob("rx-*/rps_cpus")):
                write(stack, path, "1")
        yield


@contextmanager
def _offloads_off(_place: Place) -> Iterator[None]:
    _needs("ethtool")
    with ExitStack() as stack:
        for side in SIDES:
            for feature in ("tso", "gso", "gro"):
                stack.callback(_run, "ethtool", "-K", outer(side), feature, "on")
                _run("ethtool", "-K", outer(side), feature, "off")
        yield


@contextmanager
def _slow_link(_place: Place) -> Iterator[None]:
    _needs("tc")
    with ExitStack() as stack:
        for side in SIDES:
            shape = ("root", "tbf", "rate", "300mbit", "burst", "256kb", "latency", "50ms")
            _run("tc", "qdisc", "add", "dev", outer(side), *shape)
            stack.callback(_run, "tc", "qdisc", "del", "dev", outer(side), "root")
        yield


def _needs(tool: str) -> None:
    if shutil.which(tool) is None:
        raise ImpossibleError(f"`{tool}` is not installed")


def _run(*words: str) -> None:
    ended = subprocess.run(words, check=False, capture_output=True, text=True)
    if ended.returncode:
        raise ImpossibleError(f"{' '.join(words)}: {ended.stderr.strip()}")


def _neighbours(program: str) -> Callable[[Place], AbstractContextManager[None]]:
    """Return a fault of other tenants, one a CPU, outside the workload's cgroup."""

    @contextmanager
    def inject(_place: Place) -> Iterator[None]:
        started = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(os.cpu_count() or 1)]
        try:
            yield
        finally:
            for process in started:
                process.send_signal(signal.SIGKILL)
                process.wait()

    return inject


@contextmanager
def _caches_dropped(_place: Place) -> Iterator[None]:
    program = "import time\nwhile True: open('/proc/sys/vm/drop_caches', 'w').write('1'); time.sleep(1)"
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def _none(_place: Place) -> Iterator[None]:
    yield


@contextmanager
def _busy_but_healthy(_place: Place) -> Iterator[None]:
    """Let a modest neighbour come and go: what an honest detector leaves alone."""
    process = subprocess.Popen([sys.executable, "-c", MODEST])
    try:
        yield
    finally:
        process.kill()
        process.wait()


FAULTS = {
    "none": Fault(title="nothing: a healthy run", label="", inject=_none),
    "busy_but_healthy": Fault(title="a modest neighbour", label="", inject=_busy_but_healthy),
    "huge_pages_off": Fault(
        title="transparent huge pages turned off", label="reduced_huge_page_coverage", inject=_huge_pages_off
    ),
    "cpu_quota": Fault(title="a CFS quota of 45 % of a core", label="cgroup_cpu_quota_throttling", inject=_cpu_quota),
    "io_throttle": Fault(title="block I/O limited to 2 MB/s", label="", inject=_io_throttle, subsystem="storage"),
    "memory_limit": Fault(
        title="memory limited to 85 % of what is used", label="", inject=_memory_limit, subsystem="memory"
    ),
    "small_dirty_limit": Fault(title="2 MB may be dirty", label="dirty_writeback_stall", inject=_small_dirty_limit),
    "receive_on_one_cpu": Fault(
        title="packets received on CPU 0 only", label="", inject=_receive_on_one_cpu, subsystem="network"
    ),
    "offloads_off": Fault(title="segmentation offloads off", label="", inject=_offloads_off, subsystem="network"),
    "slow_link": Fault(title="links limited to 300 Mbit/s", label="", inject=_slow_link, subsystem="network"),
    "cpu_neighbour": Fault(title="a busy neighbour on every CPU", label="", inject=_neighbours(HOG), subsystem="cpu"),
    "memory_neighbour": Fault(
        title="a memory-bandwidth hog on every CPU", label="", inject=_neighbours(STREAM), subsystem="memory"
    ),
    "caches_dropped": Fault(
        title="page cache dropped each second", label="", inject=_caches_dropped, subsystem="memory"
    ),
}
"""By name; one entry a fault."""
