"""Interrupts of this kernel's own NIC on the CPU that a workload has to itself: found, shown, moved, and put back.

A machine of one node has no interrupt on the wrong node; this is what it can have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.execution.settings import Settings
from unveil.host.facts.reader import read_facts
from unveil.host.root import HostRoot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.root,
    pytest.mark.ansible,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="moves interrupts of this machine: needs root"),
]

NAME = "nic_irqs_on_pinned_cpus"
WORKS = """
import sys
import time
for procs in sys.argv[1:]:
    open(procs, "w").write("0")
while True:
    pass
"""


def _handled(irqs: tuple[str, ...]) -> list[int]:
    """Return how many of some interrupts each CPU has handled, as the kernel tells it."""
    rows = (line.split() for line in Path("/proc/interrupts").read_text().splitlines()[1:])
    counts = [[int(word) for word in row[1 : 1 + (os.cpu_count() or 1)]] for row in rows if row[0].strip(":") in irqs]
    return [sum(column) for column in zip(*counts, strict=True)]


@pytest.fixture
def away(packets: str) -> Iterator[dict[str, str]]:
    """Send the interrupts of the NIC to the last CPU; gives what their settings read then, and puts them back."""
    found = {
        str(fact.entity): fact.value for fact in read_facts(HostRoot()).facts if fact.name.endswith("irqs_movable")
    }
    irqs = found.get(f"nic:{packets}")
    last = (os.cpu_count() or 1) - 1
    if not isinstance(irqs, tuple) or not irqs or last < 1:
        pytest.skip("this machine has no NIC whose interrupts it lets be moved, or nowhere to move them")
    settings = Settings()
    before = {f"irq:{irq}/smp_affinity_list": settings.read(f"irq:{irq}/smp_affinity_list") for irq in irqs}
    try:
        for address in before:
            settings.write(address, str(last))
        end = time.monotonic() + 10  # an interrupt that comes just then shows the old place for a moment
        while (there := {address: settings.read(address) for address in before}) != dict.fromkeys(before, str(last)):
            assert time.monotonic() < end, there
            time.sleep(0.05)
        yield there
    finally:
        for address, text in before.items():
            settings.write(address, text.strip())
        assert {address: settings.read(address) for address in before} == before


@pytest.fixture
def worker(cgroup: str) -> Iterator[str]:
    """Hold a workload to the last CPU by its cpuset, and let nobody else have much of it: tests run beside others."""
    top = Path("/sys/fs/cgroup")
    folders = [path for name in ("cpuset", "cpu", "cpuacct", "") if (path := top / name / cgroup.strip("/")).exists()]
    wanted = {"cpuset.cpus": str((os.cpu_count() or 1) - 1), "cpu.shares": "10240", "cpu.weight": "1000"}
    settings = [folder / name for folder in folders for name in wanted if (folder / name).exists()]
    if "cpuset.cpus" not in {path.name for path in settings}:
        pytest.skip("no cpusets can be made here")
    for path in settings:
        path.write_text(wanted[path.name])
    works = subprocess.Popen([sys.executable, "-c", WORKS, *(folder / "cgroup.procs" for folder in folders)])
    yield cgroup
    works.kill()
    works.wait()


def test_interrupts_leave_the_cpu_of_a_workload_and_go_back_to_the_byte(
    host: Callable[..., Any], away: dict[str, str], worker: str
) -> None:
    settings = Settings()
    irqs = tuple(address[4:].partition("/")[0] for address in away)

    def now() -> dict[str, str]:
        return {address: settings.read(address) for address in away}

    watcher = host("--profile", "manual", "--no-gpu")
    episode = watcher.episode(NAME, f"cgroup:{worker}", seconds=90)
    planned = watcher.unveil("runs", "plan", episode["id"], "--check", "--json")
    assert planned.returncode == 0, planned.stderr + watcher.log()
    run = json.loads(planned.stdout)["run"]
    diff = {change["address"]: (change["before"], change["after"]) for change in run["plan"]["changes"]}
    assert set(diff) <= set(away)
    assert diff
    assert {before for before, _ in diff.values()} == {str((os.cpu_count() or 1) - 1)}
    assert now() == away, "neither a plan nor a dry run changes anything"

    assert watcher.unveil("runs", "approve", run["id"], "--yes").returncode == 0, watcher.log()
    applied = watcher.unveil("runs", "apply", run["id"], "--yes")
    assert applied.returncode == 0, applied.stdout + applied.stderr + watcher.log()
    assert "kept" in applied.stdout
    assert {address: now()[address].strip() for address in diff} == {
        address: after for address, (_, after) in diff.items()
    }
    told = json.loads(watcher.unveil("runs", "show", run["id"], "--json").stdout)
    assert [step["state"] for step in told["run"]["steps"]] == ["planned", "approved", "applying", "verifying", "kept"]

    assert watcher.again(run["id"]) == 0, "a second apply changes nothing"
    before = _handled(irqs)
    watcher.wait("it goes on", lambda: sum(_handled(irqs)) - sum(before) > 1000, seconds=60)
    moved = [later - sooner for later, sooner in zip(_handled(irqs), before, strict=True)]
    assert moved[-1] <= sum(moved) // 100, "the CPU of the workload is left alone"

    rolled_back = watcher.unveil("runs", "rollback", run["id"], "--yes")
    assert rolled_back.returncode == 0, rolled_back.stdout + rolled_back.stderr
    assert now() == away, "byte for byte"
    assert watcher.ended(run["id"], seconds=60) == "rolled_back"
