"""Plans: which recordings to make in how many minutes, one after the other, and going on where one was cut off.

A workload runs through all its recordings, warm from the first one on. Its two pasts come first, and tell what it uses
and how much chance alone makes it lose; then its faults, and a busy but healthy stretch that is none.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.lab import labels
from unveil.lab.changes import ImpossibleError
from unveil.lab.experiment import LOOK_S, NEAR, Lengths, Past, experiment
from unveil.lab.place import place
from unveil.lab.running import WARM_S, Running
from unveil.lab.units import loss, read_units
from unveil.lab.uses import Uses

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

HELD_OUT = {
    "embedding": (
        "slow_link", "cpu_quota", "busy_but_healthy", "packet_loss", "cpu_neighbour", "io_throttle",
        "small_dirty_limit", "memory_neighbour", "huge_pages_off", "interrupts_on_one_cpu", "caches_dropped",
        "small_read_ahead", "memory_limit", "offloads_off", "memory_compacted",
    ),
    "serving": (
        "packet_loss", "cpu_neighbour", "busy_but_healthy", "cpu_quota", "slow_link", "huge_pages_off",
        "memory_neighbour", "interrupts_on_one_cpu", "memory_compacted", "offloads_off",
    ),
    "training": (
        "slow_link", "cpu_neighbour", "busy_but_healthy", "huge_pages_off", "io_throttle", "cpu_quota",
        "memory_neighbour", "interrupts_on_one_cpu", "packet_loss", "offloads_off", "memory_limit",
    ),
    "long_steps": (
        "cpu_quota", "slow_link", "busy_but_healthy", "huge_pages_off", "interrupts_on_one_cpu", "cpu_neighbour",
        "packet_loss", "io_throttle", "memory_neighbour", "offloads_off",
    ),
    "loading": (
        "io_throttle", "small_read_ahead", "busy_but_healthy", "cpu_quota", "cpu_neighbour", "memory_neighbour",
    ),
    "rollouts": (
        "cpu_quota", "slow_link", "busy_but_healthy", "packet_loss", "cpu_neighbour", "memory_neighbour",
        "io_throttle", "interrupts_on_one_cpu", "offloads_off", "small_dirty_limit", "huge_pages_off",
    ),
    "shuffle": (
        "slow_link", "cpu_quota", "busy_but_healthy", "io_throttle", "cpu_neighbour", "packet_loss",
        "memory_neighbour", "offloads_off", "small_dirty_limit", "small_read_ahead", "interrupts_on_one_cpu",
        "huge_pages_off",
    ),
}  # fmt: skip
"""Faults of each workload, those that tell most first: of a short plan the last are left out."""
DEFAULT = ("embedding", "serving", "training")
PAST_S = 152
FAULT = Lengths(healthy=25, faulty=52, after=25)
START_S, BETWEEN_S = 8 + WARM_S, 4
PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One recording of a plan; *part* is the folder that it goes to."""

    workload: str
    fault: str
    part: str
    lengths: Lengths

    @property
    def seconds(self) -> int:
        """What it takes, with what is in between."""
        return self.lengths.total + BETWEEN_S

    def file(self, folder: Path, ending: str) -> Path:
        """Return a file of it."""
        return folder / self.part / f"{self.workload}-{self.fault}{ending}"

    def done(self, folder: Path) -> bool:
        """Tell whether it was made: its labels are written last."""
        return self.file(folder, ".labels.yml").exists()


def held_out(minutes: float, workloads: Iterable[str]) -> tuple[Step, ...]:
    """Return the recordings that fit into so many minutes, by workload: pasts first, then as many faults as fit."""
    asked = list(workloads)
    past = Lengths(healthy=4, faulty=PAST_S - 6, after=2)
    pasts = {
        name: [Step(workload=name, fault=kind, part="past", lengths=past) for kind in ("none", "busy_but_healthy")]
        for name in asked
    }
    left = 60 * minutes - sum(START_S + sum(step.seconds for step in each) for each in pasts.values())
    faults: dict[str, list[Step]] = {name: [] for name in asked}
    for rank in range(max(len(HELD_OUT[name]) for name in asked)):
        for name in asked:
            if rank < len(HELD_OUT[name]) and left >= FAULT.total + BETWEEN_S:
                step = Step(workload=name, fault=HELD_OUT[name][rank], part="faults", lengths=FAULT)
                faults[name].append(step)
                left -= step.seconds
    return tuple(step for name in asked for step in (*pasts[name], *faults[name]))


def carry_out(steps: tuple[Step, ...], folder: Path) -> list[str]:
    """Make the recordings that are not there yet; return what was not possible, with its reason."""
    for step in steps:
        (folder / step.part).mkdir(parents=True, exist_ok=True)
    todo = [step for step in steps if not step.done(folder)]
    impossible: list[str] = []
    for name in dict.fromkeys(step.workload for step in todo):
        mine = [step for step in todo if step.workload == name]
        with place(folder / "scratch") as where, ExitStack() as stack:
            running: Running | None = None
            for step in mine:
                past = known_past(folder, name, steps)
                if running is None or not fit(running, past):
                    stack.close()
                    running = stack.enter_context(Running(name, where))
                if problem := _one(running, step, folder, past, todo):
                    impossible.append(problem)
    return impossible


def _one(running: Running, step: Step, folder: Path, past: Past, todo: list[Step]) -> str:
    """Make one recording; return why it was not possible, if it was not."""
    rest = todo[todo.index(step) :]
    starts = START_S * (len({each.workload for each in rest}) - 1)
    left = sum(each.seconds for each in rest) + starts
    told = f"{len(todo) - len(rest) + 1} of {len(todo)}  {step.workload}, {step.fault} ({step.part})"
    draw.line(f"{time.strftime('%H:%M:%S')}  {told}, {left // 60} min {left % 60:02} s to go")
    with draw.progress(told, total=step.lengths.total) as advance:
        try:
            result = experiment(
                running, step.fault, folder / step.part, lengths=step.lengths, past=past, advance=advance
            )
        except ImpossibleError as error:
            return f"{step.workload}, {step.fault}: {error.what}"
    if result.dead:
        draw.line(f"  a program of {step.workload} ended meanwhile", style="red")
    return ""


def known_past(folder: Path, workload: str, steps: Iterable[Step]) -> Past:
    """Return what a workload did in its quiet past, where that is recorded."""
    for step in steps:
        if (step.workload, step.fault, step.part) == (workload, "none", "past") and step.done(folder):
            told = labels.told_by(step.file(folder, ".result.json"))
            return Past(
                units=read_units(step.file(folder, ".units")),
                stretches=((told["began"], told["began"] + told["seconds"]),),
                uses=Uses(**told["uses"]),
            )
    return Past()


def fit(running: Running, past: Past) -> bool:
    """Wait until a workload is as well as in its past; False when it is not soon, or has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while running.alive and time.monotonic() < deadline:
        now = time.time()
        units = (*past.units, *read_units(running.log))
        lost = loss(units, past.stretches, [(now - LOOK_S, now)])
        if not past.units or (lost is not None and lost.throughput <= NEAR):
            return True
        time.sleep(1)
    return False


def table(recordings: Iterable[Path]) -> None:
    """Print what each fault cost, of recordings that were made."""
    rows = []
    for path in recordings:
        result = labels.read(path.with_suffix(".result.json"))
        if result is None:
            continue
        lost, chance = None if result.fault == "none" else result.lost, result.chance
        nothing = "-" if result.fault == "none" else "all"
        rows.append((
            result.workload, result.fault, path.parent.name,
            nothing if lost is None else f"{lost.throughput:.1%}",
            nothing if lost is None else f"{lost.latency:+.1%}",
            "-" if chance is None else f"{chance.throughput:.1%}, {chance.latency:.1%}",
            f"{result.settled_s - result.end_s:.0f} s",
            result.verdict + (", a program ended" if result.dead else ""),
        ))  # fmt: skip
    draw.table(
        ("workload", "fault", "in", "throughput lost>", "units take>", "by chance>", "settles in>", "verdict"), rows
    )
