"""The faults that the guest goes through: how each is made, the workload that suffers it, and how it is seen.

What is seen is read from the kernel's files here, without the project's code.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
CGROUPS = Path("/sys/fs/cgroup")


def number_of(path: Path, name: str) -> int:
    """Return a number of a file of names and numbers."""
    return int(next(line.split()[1] for line in path.read_text().splitlines() if line.split()[0].strip(":") == name))


class Patient:
    """A workload in a cgroup of its own."""

    def __init__(self, name: str, illness: str, megabytes: int, node: str) -> None:
        self.cgroup = CGROUPS / f"guest-{name}"
        self.cgroup.mkdir()
        self._output = Path(f"/run/{name}.log")
        with self._output.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", HERE / "patient.py", illness, str(megabytes), node, self.cgroup],
                stdout=log,
            )
        self.pid = self._process.pid

    def beats(self) -> list[dict[str, Any]]:
        """Return what it wrote."""
        return [json.loads(line) for line in self._output.read_text().splitlines() if line.endswith("}")]

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self.cgroup.rmdir()


@dataclass
class Fault:
    """One fault and how it is seen.

    Attributes:
        look: what is recorded before, after apply, after the second and after the rollback, beside the settings.
        inject: makes the fault once the workload runs; returns nothing.
        by_playbook: the watcher plays the playbook with a real ansible-playbook, verifies and rolls back. That takes a
            minute here, so one of them has its modules called as Ansible does.
    """

    name: str
    fingerprint: str
    entity: str
    patient: tuple[str, int, str]
    look: Callable[[Patient], dict[str, Any]]
    inject: Callable[[Patient], None] = lambda _patient: None
    by_playbook: bool = False
    told: dict[str, Any] = field(default_factory=dict)


def pages_by_node(patient: Patient) -> dict[str, Any]:
    """Return the workload's anonymous pages by node, as the kernel tells them of the process."""
    pages: dict[int, int] = {}
    for line in Path(f"/proc/{patient.pid}/numa_maps").read_text().splitlines():
        if " anon=" in line:
            for node, count in re.findall(r" N(\d+)=(\d+)", line):
                pages[int(node)] = pages.get(int(node), 0) + int(count)
    total = sum(pages.values())
    return {"pages": pages, "remote_share": round(1 - pages.get(1, 0) / total, 4)}


def nic_irqs() -> dict[str, int]:
    """Return the interrupts of the NIC by the names of their handlers."""
    device = Path("/sys/class/net/eth0/device").resolve().name
    found = {}
    for line in Path("/proc/interrupts").read_text().splitlines():
        words = line.split()
        if words and words[-1].startswith(f"{device}-"):
            found[words[-1].partition("-")[2]] = int(words[0].strip(":"))
    return found


def irq_state(_patient: Patient) -> dict[str, Any]:
    """Return where each interrupt of the NIC may go, where it goes, and how many each node has got."""
    time.sleep(1)  # an effective affinity follows with the next interrupt
    told: dict[str, Any] = {}
    lines = {line.split(":")[0].strip(): line.split() for line in Path("/proc/interrupts").read_text().splitlines()}
    for name, irq in nic_irqs().items():
        folder = Path(f"/proc/irq/{irq}")
        counts = [int(word) for word in lines[str(irq)][1:5]]
        told[name] = {
            "wanted": (folder / "smp_affinity_list").read_text().strip(),
            "effective": (folder / "effective_affinity_list").read_text().strip(),
            "counts": [sum(counts[:2]), sum(counts[2:])],
        }
    return told


def misplace_irqs(_patient: Patient) -> None:
    """Send every interrupt of the NIC to the node that it is not on."""
    for irq in nic_irqs().values():
        Path(f"/proc/irq/{irq}/smp_affinity_list").write_text("0-1")


def limit(patient: Patient) -> None:
    """Give the workload a tenth of a CPU, half of what it would take."""
    (patient.cgroup / "cpu.max").write_text("10000 100000")


def throttling(patient: Patient) -> dict[str, Any]:
    """Return in how many of the periods of two seconds the workload was held back."""
    counts = []
    for _ in range(2):
        counts.append([number_of(patient.cgroup / "cpu.stat", name) for name in ("nr_periods", "nr_throttled")])
        time.sleep(2 - 2 * (len(counts) - 1))
    (periods, throttled), (periods_later, throttled_later) = counts
    return {"periods": periods_later - periods, "throttled": throttled_later - throttled}


def huge(patient: Patient) -> dict[str, Any]:
    rollup = Path(f"/proc/{patient.pid}/smaps_rollup")
    return {"huge_kb": number_of(rollup, "AnonHugePages"), "anonymous_kb": number_of(rollup, "Anonymous")}


FAULTS = (
    Fault("numa", "workload_memory_remote", "cgroup:/guest-numa", ("trains", 96, "0"), pages_by_node, by_playbook=True),
    Fault("irq", "nic_irq_away_from_nic", "nic:eth0", ("pings", 0, "1"), irq_state, misplace_irqs, by_playbook=True),
    Fault(
        "huge", "reduced_huge_page_coverage", "cgroup:/guest-huge", ("trains in batches", 216, "1"), huge,
        by_playbook=True,
    ),
    Fault("quota", "cgroup_cpu_quota_throttling", "cgroup:/guest-quota", ("computes", 0, ""), throttling, limit),
)  # fmt: skip
