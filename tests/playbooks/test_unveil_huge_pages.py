from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
MEMORY = next(
    (Path(f"/sys/fs/cgroup{name}") for name in ("/memory", "") if Path(f"/sys/fs/cgroup{name}/cgroup.procs").exists()),
    None,
)
root = pytest.mark.root
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes a cgroup and collapses memory: needs root")

# Takes memory in small pages, touches it all the time, and notes the longest time that one round took.
WORKLOAD = """
import mmap, sys, time
size = int(sys.argv[1]) << 20
open(sys.argv[2], 'w').write('0')
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(0, size, 4096):
    memory[at] = 1
memory.madvise(mmap.MADV_HUGEPAGE if sys.argv[4] == 'madvise' else 14)
worst, last = 0.0, time.monotonic()
print('ready', flush=True)
while True:
    for at in range(0, size, 1 << 16):
        memory[at] = 2
        now = time.monotonic()
        worst, last = max(worst, now - last), now
    time.sleep(0.005)
    open(sys.argv[3], 'w').write(f'{worst}')
    last = time.monotonic()
"""


@dataclass
class Workload:
    process: subprocess.Popen[str]
    cgroup: str
    beat: Path

    def anon_huge_mib(self) -> int:
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return int(next(line.split()[1] for line in rollup.splitlines() if line.startswith("AnonHugePages:"))) >> 10

    def worst_s(self) -> float:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            with contextlib.suppress(OSError, ValueError):
                return float(self.beat.read_text())
            time.sleep(0.01)
        raise AssertionError("the workload does not beat")


@pytest.fixture
def thp_never() -> Iterator[bytes]:
    """Turn huge pages off, so that what is taken is in small pages; put back what was there."""
    try:
        before = THP.read_bytes()
        THP.write_text("never")
    except OSError as error:
        pytest.skip(f"this kernel's huge pages cannot be set: {error}")
    yield before
    THP.write_text(before.decode().partition("[")[2].partition("]")[0])
    assert THP.read_bytes() == before


@pytest.fixture
def workload(tmp_path: Path) -> Iterator[Callable[[int], Workload]]:
    """Start a workload in a memory cgroup of its own."""
    if MEMORY is None:
        pytest.skip("no memory cgroups here")
    folder = MEMORY / f"unveil-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"this kernel lets nobody make a cgroup: {error}")
    started: list[subprocess.Popen[str]] = []

    def start(mebibytes: int) -> Workload:
        beat = tmp_path / "beat"
        arguments = [str(mebibytes), str(folder / "cgroup.procs"), str(beat), "plain"]
        process = subprocess.Popen([sys.executable, "-c", WORKLOAD, *arguments], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return Workload(process, f"/{folder.name}", beat)

    yield start
    for process in started:
        process.kill()
        process.communicate()
    for _ in range(200):
        with contextlib.suppress(OSError):
            folder.rmdir()
            break
        time.sleep(0.02)


@root
@needs_root
def test_a_running_process_gets_huge_pages_and_is_never_held_up_for_long(
    module: Callable[..., Any],
    workload: Callable[[int], Workload],
    thp_never: bytes,
    loaded: Callable[[str], ModuleType],
) -> None:
    if not loaded("unveil_huge_pages").supported():
        pytest.skip("MADV_COLLAPSE came with Linux 6.1")
    patient = workload(256)
    assert patient.anon_huge_mib() == 0

    dry = module("unveil_huge_pages", check=True, cgroup=patient.cgroup)
    assert dry["changed"] is True
    assert 250 << 20 <= dry["candidate_bytes"] <= 300 << 20
    assert patient.anon_huge_mib() == 0, "check mode collapses nothing"

    real = module("unveil_huge_pages", cgroup=patient.cgroup)
    assert real["changed"] is True
    assert patient.anon_huge_mib() >= 0.9 * 256
    assert real["collapsed_bytes"] >= 0.9 * (256 << 20)
    assert real["out_of_time"] is False
    assert real["longest_call_s"] < 0.5
    assert patient.worst_s() < 0.5, "the workload was never held up for half a second"
    assert patient.process.poll() is None

    again = module("unveil_huge_pages", cgroup=patient.cgroup)
    assert (again["changed"], again["collapsed_bytes"]) == (False, 0)
    assert THP.read_bytes().decode().partition("[")[2].startswith("never"), "the setting is not this module's"


@root
@needs_root
def test_its_time_is_bounded(
    module: Callable[..., Any],
    workload: Callable[[int], Workload],
    thp_never: bytes,
    loaded: Callable[[str], ModuleType],
) -> None:
    if not loaded("unveil_huge_pages").supported():
        pytest.skip("MADV_COLLAPSE came with Linux 6.1")
    patient = workload(128)
    answer = module("unveil_huge_pages", cgroup=patient.cgroup, max_seconds=0.01, slice_mib=2, pause_ms=5)
    assert answer["out_of_time"] is True
    assert answer["collapsed_bytes"] < 128 << 20


def test_odd_requests_are_refused(module: Callable[..., Any], host_tree: Path) -> None:
    for cgroup in ("/no/such", "../../etc", "pod1", "/pod1/../..", "/pod\n1"):
        answer = module("unveil_huge_pages", cgroup=cgroup, root=str(host_tree))
        assert answer["failed"] is True
        assert "there is no cgroup" in answer["msg"]
    answer = module("unveil_huge_pages", cgroup="/pod1", slice_mib=64, root=str(host_tree))
    assert "slice_mib" in answer["msg"]


def test_a_kernel_that_cannot_is_no_failure(module: Callable[..., Any], host_tree: Path) -> None:
    answer = module("unveil_huge_pages", cgroup="/pod1", root=str(host_tree))
    assert answer["changed"] is False
    assert "cannot collapse" in str(answer["warnings"])


def test_the_cgroup_counts_come_from_both_versions(loaded: Callable[[str], ModuleType], tmp_path: Path) -> None:
    module = loaded("unveil_huge_pages")
    (tmp_path / "memory.stat").write_text("rss 5\nrss_huge 1\ntotal_rss 100\ntotal_rss_huge 40\n")
    assert module.statistics(str(tmp_path)) == (100, 40)
    (tmp_path / "memory.stat").write_text("anon 70\nfile 9\nanon_thp 20\n")
    assert module.statistics(str(tmp_path)) == (70, 20)
    assert module.headroom(str(tmp_path)) > 1 << 60
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5\n")
    assert module.headroom(str(tmp_path)) > 1 << 60
    (tmp_path / "memory.max").write_text(f"{1 << 30}\n")
    assert module.headroom(str(tmp_path)) == (1 << 30) - 5 - module.MEMORY_RESERVE


def test_only_regions_that_are_mostly_in_use_are_worth_it(loaded: Callable[[str], ModuleType]) -> None:
    module, huge = loaded("unveil_huge_pages"), 2 << 20
    memory = mmap.mmap(-1, 12 * huge, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    first = -(-base // huge) * huge - base
    for page in range(first, first + 3 * huge, 4096):  # three huge pages full …
        memory[page] = 1
    for page in range(first + 5 * huge, first + 6 * huge, 8192 * 2):  # … and one to a quarter
        memory[page] = 1
    options = {"huge": huge, "page": 4096, "slice": 2 * huge, "least_used": 0.5}
    inside = [each for each in module.slices("/", os.getpid(), options) if base <= each[0] < base + 12 * huge]
    assert inside == [(base + first, 2 * huge, 0), (base + first + 2 * huge, huge, 0)]
