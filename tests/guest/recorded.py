"""What runs in the guest to have its faults recorded: the recorder, a workload, and a fault that comes and goes.

One recording after the other, each of one workload that is well for a while, then under its fault, then well again. A
label says when the fault was laid on and taken off; that it was there, and gone, is seen in the kernel's files. Until
it has been gone for a while, nothing is labelled. Recordings and labels go to the host side as JSON lines.

What the work did in each stretch is told, too. Emulated memory is nowhere remote, and an emulated CPU has other costs:
of memory and interrupts a loss here says nothing, nor does a gain, and only that by the quota goes into a label.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet  # loading it takes an emulated CPU long, and no recording shall wait for that
from faults import Patient, huge, limit, misplace_irqs, nic_irqs, pages_by_node
from inside import THP, furnish, say

from unveil.engine.recorder import record
from unveil.host.recording import read_recording

if TYPE_CHECKING:
    from collections.abc import Callable

WELL_S, ILL_S, AFTER_S = 80, 40, 20  # the detectors look at sixty windows before they judge
SETTLE_S = 8  # a window, and the pace of the slowest sources
LONGEST_S = 90  # until a fault is there, or gone
MIGRATE_PAGES = 256
FOLDER = Path("/run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A fault to record.

    Attributes:
        patient: the workload, its megabytes and the node of its memory.
        there: tells by the kernel's files whether the workload suffers it.
        honest: what the work did here may be told as what the fault costs.
    """

    name: str
    title: str
    fingerprint: str
    patient: tuple[str, int, str]
    lay_on: Callable[[Patient], object]
    take_off: Callable[[Patient], object]
    there: Callable[[Patient], bool]
    honest: bool = False


def move(patient: Patient, source: int, target: int) -> None:
    """Have the kernel move a workload's memory from a node to another."""
    masks = [ctypes.byref(ctypes.c_ulong(1 << node)) for node in (source, target)]
    if ctypes.CDLL(None).syscall(MIGRATE_PAGES, patient.pid, ctypes.c_ulong(64), *masks) < 0:
        raise OSError("its pages do not move")


def bring_irqs_home(_patient: Patient | None = None) -> None:
    """Send every interrupt of the NIC to the node that it is on."""
    for irq in nic_irqs().values():
        Path(f"/proc/irq/{irq}/smp_affinity_list").write_text("2-3")


def irqs_are_away(_patient: Patient) -> bool:
    irq = nic_irqs()["input.0"]
    return Path(f"/proc/irq/{irq}/effective_affinity_list").read_text().strip() in {"0", "1", "0-1"}


def lift(patient: Patient) -> None:
    (patient.cgroup / "cpu.max").write_text("max 100000")


def in_small_pages(patient: Patient) -> bool:
    told = huge(patient)
    return bool(told["huge_kb"] < 0.1 * told["anonymous_kb"])


RECORDED = (
    Recorded(
        name="memory_on_wrong_node", title="memory on the node that the NIC is not on",
        fingerprint="workload_memory_remote", patient=("trains", 96, "1"), lay_on=lambda ill: move(ill, 1, 0),
        take_off=lambda ill: move(ill, 0, 1), there=lambda ill: pages_by_node(ill)["remote_share"] > 0.5,
    ),
    Recorded(
        name="irqs_on_wrong_node", title="the NIC's interrupts on the node that it is not on",
        fingerprint="nic_irq_away_from_nic", patient=("floods", 0, "1"), lay_on=misplace_irqs,
        take_off=bring_irqs_home, there=irqs_are_away,
    ),
    Recorded(
        name="huge_pages_off", title="huge pages off, while parts of the memory come and go",
        fingerprint="reduced_huge_page_coverage", patient=("loads", 256, "1"),
        lay_on=lambda _ill: THP.write_text("never"), take_off=lambda _ill: THP.write_text("always"),
        there=in_small_pages,
    ),
    Recorded(
        name="cpu_quota", title="a cgroup v2 quota of half the CPU that it takes, beside idle CPUs",
        fingerprint="cgroup_cpu_quota_throttling", patient=("computes", 0, ""), lay_on=limit, take_off=lift,
        there=lambda ill: not (ill.cgroup / "cpu.max").read_text().startswith("max"), honest=True,
    ),
)  # fmt: skip


class Course(threading.Thread):
    """Lays a fault on and takes it off while the main thread records, and has the recording end; keeps when."""

    def __init__(self, fault: Recorded, patient: Patient) -> None:
        super().__init__(name=fault.name)
        self._fault, self._patient = fault, patient
        self.marks: dict[str, tuple[float, float]] = {}  # by the wall clock and by the workload's
        self.failure = ""

    def run(self) -> None:
        """Go; what goes wrong is kept."""
        fault, patient = self._fault, self._patient
        try:
            time.sleep(WELL_S)
            if fault.there(patient):
                raise OSError("it is there before it is laid on")
            self._mark("begin")
            fault.lay_on(patient)
            self._wait(there=True)
            time.sleep(ILL_S)
            self._mark("end")
            fault.take_off(patient)
            self._wait(there=False)
            time.sleep(SETTLE_S)
            self._mark("settled")
            time.sleep(AFTER_S)
            self._mark("over")
        except OSError as error:
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    def _mark(self, name: str) -> None:
        self.marks[name] = time.time(), time.monotonic()

    def _wait(self, *, there: bool) -> None:
        begun = time.monotonic()
        while self._fault.there(self._patient) is not there:
            if time.monotonic() > begun + LONGEST_S:
                raise OSError("it does not come" if there else "it does not go")
            time.sleep(0.5)
        say(
            event="step",
            what=f"{self.name}: {'there' if there else 'gone'}",
            seconds=round(time.monotonic() - begun, 1),
        )


def labels(fault: Recorded, marks: dict[str, tuple[float, float]], began_s: float, lost: float) -> str:
    """Return the labels of a recording; *lost* is the share of the work that was not done under the fault."""
    begin, end, settled = (f"{marks[name][0] - began_s:.2f}" for name in ("begin", "end", "settled"))
    cost = f"{lost:.0%} less work" if fault.honest else "emulated, so what it costs is not known"
    return (
        f"apiVersion: unveil/v1\nkind: RecordingLabels\nworkload: {fault.patient[0]}\n"
        "hardware: two nodes, two CPUs each, under QEMU's software emulation\nintervals:\n"
        f"  - {{from: 0, to: {begin}, label: healthy}}\n"
        f"  - {{from: {begin}, to: {end}, fault: {fault.name}, label: {fault.fingerprint}, "
        f"note: {json.dumps(f'{fault.title}; {cost}')}}}\n"
        f"  - {{from: {settled}, label: healthy}}\n"
    )


def work_lost(patient: Patient, marks: dict[str, tuple[float, float]], begun: float) -> float:
    """Return the share of a second's work that was not done under the fault, against the healthy time before."""

    def pace(since: float, until: float) -> float:
        return sum(each["done"] for each in patient.beats() if since < each["at"] <= until) / (until - since)

    return 1 - pace(marks["begin"][1] + SETTLE_S, marks["end"][1]) / pace(begun, marks["begin"][1])


def run(fault: Recorded) -> None:
    """Record one fault and hand out what came of it."""
    path = FOLDER / f"{fault.name}.parquet"
    patient = Patient(fault.name, *fault.patient)
    try:
        end = time.monotonic() + LONGEST_S
        while not patient.beats() and time.monotonic() < end:
            time.sleep(0.5)
        begun, course = time.monotonic(), Course(fault, patient)
        course.start()
        seconds = record(path, host_root=Path("/"), gpu=False, seconds=None, note=fault.title, host="guest")
        course.join()
        took_s = time.monotonic() - begun
        told = {"recorded_s": seconds, "took_s": round(took_s, 1), "failed": course.failure}
        if not course.failure:
            lost = work_lost(patient, course.marks, begun)
            began_s = float(read_recording(path).metadata["started_s"])
            path.with_suffix(".labels.yml").write_text(labels(fault, course.marks, began_s, lost))
            told |= {"work_lost": round(lost, 3)}
            for each in (path, path.with_suffix(".labels.yml")):
                say(event="file", name=each.name, content=base64.b64encode(each.read_bytes()).decode())
        say(event="recorded", name=fault.name, fingerprint=fault.fingerprint, **told)
    finally:
        patient.close()


def main() -> None:
    """Record each fault, one after the other."""
    say(event="up", seconds=float(Path("/proc/uptime").read_text().split()[0]), parquet=pyarrow.__version__)
    furnish()
    THP.write_text("always")
    bring_irqs_home()
    for fault in RECORDED:
        try:
            run(fault)
        except Exception as error:  # noqa: BLE001  # one that fails must not keep the others; the host side sees it
            say(event="recorded", name=fault.name, failed=f"{type(error).__name__}: {error}")
    say(event="end")


if __name__ == "__main__":
    main()
