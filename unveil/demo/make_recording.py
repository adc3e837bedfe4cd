"""Make the demo's recording: a real workload on this kernel, and a real fault in the middle of it.

    sudo python -m unveil.demo.make_recording recording.parquet

The workload is ``unveil.demo.workload`` in a cgroup of its own; the fault is transparent huge pages turned off under
it, as a configuration run does on a whole fleet at once. The setting is put back at the end, whatever happens. Kept are
the channels and facts that a stranger may see: of cgroups only the workload's, of the host neither name nor kernel.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.engine.recorder import record
from unveil.records.entity import EntityKind
from unveil.records.fact import FactTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.records.metric import Channel

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
CGROUP = "/training"
PRIVATE_FACTS = {"cpu.kernel", "cpu.model", "cpu.hypervisor", "cpu.boot_parameters"}
HIERARCHIES = ("memory", "cpu", "cpuacct")


def _hierarchies() -> list[Path]:
    v1 = [Path("/sys/fs/cgroup") / name for name in HIERARCHIES]
    return [path for path in v1 if (path / "cgroup.procs").exists()] or [Path("/sys/fs/cgroup")]


@contextlib.contextmanager
def _workload(arguments: list[str], log: Path) -> Iterator[None]:
    """Run the workload in a cgroup of its own, in every hierarchy that counts."""
    folders = [path / CGROUP.lstrip("/") for path in _hierarchies()]
    for folder in folders:
        folder.mkdir()
    enter = "import sys\nfor path in sys.argv[1].split(','): open(path, 'w').write('0')\n"
    program = f"{enter}from unveil.demo.workload import main\nmain(sys.argv[2:])"
    places = ",".join(str(folder / "cgroup.procs") for folder in folders)
    try:
        with (
            log.open("w") as output,
            subprocess.Popen([sys.executable, "-c", program, places, *arguments], stdout=output) as process,
        ):
            try:
                yield
            finally:
                process.send_signal(signal.SIGKILL)
    finally:
        for folder in folders:
            for _ in range(100):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.05)


@contextlib.contextmanager
def _huge_pages(mode: str) -> Iterator[None]:
    before = THP.read_text().partition("[")[2].partition("]")[0]
    try:
        THP.write_text(mode)
        yield
    finally:
        THP.write_text(before)


def keep_channel(channel: Channel) -> bool:
    """Keep what belongs to the host as a whole and to the workload's cgroup."""
    cgroup, nic = channel.label("cgroup"), channel.label("nic")
    return cgroup in (None, CGROUP) and nic in (None, "eth0", "lo") and channel.label("irq") is None


def keep_facts(table: FactTable) -> FactTable:
    """Keep the same of the facts, and of the settings behind them."""
    facts = tuple(
        fact
        for fact in table.facts
        if fact.name not in PRIVATE_FACTS
        and not (fact.entity.kind is EntityKind.CGROUP and fact.entity.key != CGROUP)
        and fact.entity.kind is not EntityKind.IRQ
        and not (fact.entity.kind is EntityKind.NIC and fact.entity.key not in {"eth0", "lo"})
    )
    kept = {fact.setting for fact in facts if fact.setting is not None}
    return FactTable(facts, {address: text for address, text in table.settings.items() if address in kept})


def main(argv: list[str] | None = None) -> int:
    """Make the recording and print what the fault cost the workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--healthy", type=int, default=110, metavar="SECONDS")
    parser.add_argument("--faulty", type=int, default=40, metavar="SECONDS")
    parser.add_argument("--after", type=int, default=15, metavar="SECONDS")
    asked = parser.parse_args(argv)
    log = asked.file.with_suffix(".steps")

    def on_second(taken: int) -> None:
        if taken == asked.healthy:
            THP.write_text("never")
        elif taken == asked.healthy + asked.faulty:
            THP.write_text("always")

    shape = ["--megabytes", "256", "--renew", "10", "--activations", "32", "--step", "0.1", "--seconds", "100000"]
    with _huge_pages("always"), _workload(shape, log):
        time.sleep(5)
        record(
            asked.file,
            host_root=Path("/"),
            gpu=False,
            seconds=asked.healthy + asked.faulty + asked.after,
            note=(
                f"A training-like loop in cgroup {CGROUP}. After {asked.healthy} s transparent huge pages are turned "
                f"off (enabled=never), after {asked.healthy + asked.faulty} s they are allowed again."
            ),
            channels=keep_channel,
            facts=keep_facts,
            host="demo",
            on_second=on_second,
        )
    print(f"{asked.file}: {asked.file.stat().st_size / 1000:.0f} kB; the workload's own step times are in {log}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
