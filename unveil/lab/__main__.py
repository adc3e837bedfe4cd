"""The fault lab's command line.

    sudo python -m unveil.lab --workload loading --fault huge_pages_off --fault cpu_quota recordings/
    sudo python -m unveil.lab --plan heldout --minutes 40 recordings/

Runs each workload under each fault on this machine's own kernel, records it, and writes labels beside each recording
for `unveil eval` and `unveil kb backtest`. Every setting is put back, also after Ctrl-C; when the lab is killed, its
guardian does it, and `--restore` does what even that one could not. A fault that this kernel does not permit is skipped
with the reason; one that cost the workload nothing is recorded, called inert, and its time is not labelled.

A plan makes for each workload two healthy recordings (past/) and as many with faults as fit into its minutes
(faults/). The same command goes on where it was cut off. Then:

    unveil eval recordings/faults --history recordings/past/embedding-none.parquet --history …
"""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.errors import UnveilError
from unveil.lab import plan
from unveil.lab.changes import ImpossibleError, alone, restore
from unveil.lab.experiment import Lengths, Past, experiment
from unveil.lab.faults import FAULTS
from unveil.lab.place import place, tear_down
from unveil.lab.running import WORKLOADS, Running, check

if TYPE_CHECKING:
    from types import FrameType


def main(argv: list[str] | None = None) -> int:
    """Run the experiments asked for; 0 when all ran, 1 when some fault was not possible here."""
    parser = argparse.ArgumentParser(
        prog="python -m unveil.lab", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="where recordings go")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="default: all")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="default: all")
    parser.add_argument("--list", action="store_true", help="list workloads and faults and end")
    parser.add_argument("--plan", choices=("heldout",), help="recordings for an evaluation, with a past each")
    parser.add_argument("--minutes", type=float, default=40, help="that a plan may take (default: 40)")
    parser.add_argument("--dry-run", action="store_true", help="show the plan and end")
    parser.add_argument("--table", action="store_true", help="print what the recordings of a folder tell and end")
    parser.add_argument("--restore", action="store_true", help="put back what a lab left that was killed, and end")
    parser.add_argument("--when-gone", type=int, metavar="PROCESS", help=argparse.SUPPRESS)
    for name, default in (("healthy", 120), ("faulty", 60), ("after", 40)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="SECONDS", help=f"default: {default}")
    asked = parser.parse_args(argv)
    if not asked.restore and (asked.list or asked.folder is None):
        _list()
        return 0 if asked.list else 3
    try:
        return _do(asked)
    except UnveilError as error:
        print(f"unveil.lab: {error.what}" + (f"\n  hint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _do(asked: argparse.Namespace) -> int:
    if asked.restore:
        return _restore(asked.when_gone)
    if asked.table:
        plan.table(sorted(asked.folder.rglob("*.parquet")))
        return 0
    if asked.plan:
        workloads = asked.workload or plan.DEFAULT
        if missing := set(workloads) - plan.HELD_OUT.keys():
            raise UnveilError(f"no plan has the workload {', '.join(missing)}")
        return _plan(plan.held_out(asked.minutes, workloads), asked.folder, dry=asked.dry_run)
    lengths = Lengths(healthy=asked.healthy, faulty=asked.faulty, after=asked.after)
    _end_once()
    return _campaign(asked.workload or list(WORKLOADS), asked.fault or list(FAULTS), asked.folder, lengths)


def _list() -> None:
    draw.table(("workload", "programs>"), [(name, len(programs)) for name, programs in WORKLOADS.items()])
    draw.table(("fault", "what it is", "fingerprint"), [(name, f.title, f.label or "-") for name, f in FAULTS.items()])


def _restore(lab: int | None) -> int:
    """Put everything back; as the guardian of a lab, once that has ended: then its end of the pipe is closed."""
    if lab is not None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # whoever ends the lab may mean its guardian, too
            signal.signal(number, signal.SIG_IGN)
        sys.stdin.buffer.read()
    with nullcontext() if lab is not None else alone():  # a guardian has inherited the lab's lock
        told = restore(take_away=tear_down, ended=lab)
    for words in told:
        draw.line(f"put back: {words}")
    if lab is None and not told:
        draw.line("nothing is left to put back")
    return 0


def _plan(steps: tuple[plan.Step, ...], folder: Path, *, dry: bool) -> int:
    if dry:
        rows = [(s.workload, s.fault, s.part, f"{s.lengths.total} s", s.done(folder)) for s in steps]
        draw.table(("workload", "what", "folder", "takes>", "is there"), rows)
        return 0
    for workload in dict.fromkeys(step.workload for step in steps):
        check(workload)
    _end_once()
    impossible = plan.carry_out(steps, folder)
    plan.table(step.file(folder, ".parquet") for step in steps)
    return _tell(impossible)


def _campaign(workloads: list[str], faults: list[str], folder: Path, lengths: Lengths) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    impossible: list[str] = []
    made: list[Path] = []
    for workload in workloads:
        for fault in faults:
            # A place of its own each time: what one fault did to memory and caches is no part of the next.
            with (
                place(folder / "scratch") as where,
                Running(workload, where) as running,
                draw.progress(f"{workload}, {fault}", total=lengths.total) as advance,
            ):
                try:
                    experiment(running, fault, folder, lengths=lengths, past=Past(), advance=advance)
                except ImpossibleError as error:
                    impossible.append(f"{workload}, {fault}: {error.what}")
                else:
                    made.append(folder / f"{workload}-{fault}.parquet")
    plan.table(made)
    return _tell(impossible)


def _tell(impossible: list[str]) -> int:
    for line in impossible:
        draw.line(f"not possible here: {line}", style="yellow")
    return 1 if impossible else 0


def _end_once() -> None:
    """Make SIGTERM unwind like Ctrl-C, so that everything is put back; whoever asks again does not cut that short."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


if __name__ == "__main__":
    sys.exit(main())
