"""The fault lab's command line.

    sudo python -m unveil.lab --workload loading --fault huge_pages_off --fault cpu_quota recordings/

Runs each workload under each fault on this machine's own kernel, records it, and writes labels beside each recording
for `unveil eval` and `unveil kb backtest`. Every setting is put back, also after Ctrl-C. A fault that this kernel does
not permit is skipped with the reason; one that cost the workload nothing is recorded, and its time is not labelled.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from unveil.cli import draw
from unveil.errors import UnveilError
from unveil.lab.experiment import WORKLOADS, Lengths, Result, experiment
from unveil.lab.faults import FAULTS, ImpossibleError
from unveil.lab.place import place


def main(argv: list[str] | None = None) -> int:
    """Run the experiments asked for; 0 when all ran, 1 when some fault was not possible here."""
    parser = argparse.ArgumentParser(
        prog="python -m unveil.lab", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="where recordings go")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="default: all")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="default: all")
    parser.add_argument("--list", action="store_true", help="list workloads and faults and end")
    for name, default in (("healthy", 120), ("faulty", 60), ("after", 40)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="SECONDS", help=f"default: {default}")
    asked = parser.parse_args(argv)
    if asked.list or asked.folder is None:
        draw.table(("workload", "programs>"), [(name, len(programs)) for name, programs in WORKLOADS.items()])
        draw.table(
            ("fault", "what it is", "fingerprint"), [(name, f.title, f.label or "-") for name, f in FAULTS.items()]
        )
        return 0 if asked.list else 3
    lengths = Lengths(healthy=asked.healthy, faulty=asked.faulty, after=asked.after)
    try:
        return _campaign(asked.workload or list(WORKLOADS), asked.fault or list(FAULTS), asked.folder, lengths)
    except UnveilError as error:
        print(f"unveil.lab: {error.what}" + (f"\n  hint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _campaign(workloads: list[str], faults: list[str], folder: Path, lengths: Lengths) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    skipped: list[str] = []
    results: list[Result] = []
    total = lengths.healthy + lengths.faulty + lengths.after
    for workload in workloads:
        for fault in faults:
            # A place of its own each time: what one fault did to memory and caches is no part of the next.
            with place(folder / "scratch") as where, draw.progress(f"{workload}, {fault}", total=total) as advance:
                try:
                    results.append(experiment(workload, fault, folder, where, lengths=lengths, advance=advance))
                except ImpossibleError as error:
                    skipped.append(f"{workload}, {fault}: {error.what}")
    draw.table(
        ("workload", "fault", "throughput lost>", "units take>", "recording"),
        [
            (
                each.workload, each.fault,
                "-" if each.lost is None else f"{each.lost.throughput:.1%}",
                "-" if each.lost is None else f"{each.lost.latency:+.1%}",
                each.recording.name,
            )
            for each in results
        ],
    )  # fmt: skip
    for line in skipped:
        draw.line(f"not possible here: {line}", style="yellow")
    return 1 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
