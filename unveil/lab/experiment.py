"""One experiment: a workload, a healthy stretch, a fault, a healthy stretch again; recorded, labelled and weighed."""

from __future__ import annotations

import json
import signal
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.engine.recorder import record
from unveil.errors import UnreadableError
from unveil.lab.faults import FAULTS
from unveil.lab.place import address
from unveil.lab.units import Loss, loss, read_units

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from unveil.lab.place import Place

WARM_S = 10  # a workload's own start is left out of all
SETTLE_S = 8  # after a fault is taken away, the workload is not yet as before
EFFECTIVE = 0.05
"""Share of throughput, or of latency, that a fault must cost to be called one: the others are inert here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process of a workload: its module, its arguments, where it runs; ``tells`` when its units count."""

    module: str
    arguments: tuple[str, ...]
    side: str
    tells: bool = False


_LAB = "unveil.lab.workloads"
WORKLOADS = {
    "training": (
        Program(module=f"{_LAB}.training", arguments=("0", address("a")), side="a", tells=True),
        Program(module=f"{_LAB}.training", arguments=("1", address("a")), side="b"),
    ),
    "long_steps": (
        Program(module=f"{_LAB}.training", arguments=("0", address("a"), "0.3"), side="a", tells=True),
        Program(module=f"{_LAB}.training", arguments=("1", address("a"), "0.3"), side="b"),
    ),
    "serving": (
        Program(module=f"{_LAB}.serving", arguments=("server", address("a")), side="a"),
        Program(module=f"{_LAB}.serving", arguments=("clients", address("a")), side="b", tells=True),
    ),
    "loading": (Program(module=f"{_LAB}.loading", arguments=(), side="a", tells=True),),
}
"""By name; one entry a workload."""
NEEDS_TORCH = {"training", "long_steps", "serving"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Seconds of the three stretches."""

    healthy: int = 120
    faulty: int = 60
    after: int = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an experiment gave. *lost* is None where the workload did nothing in one of the stretches."""

    recording: Path
    workload: str
    fault: str
    lost: Loss | None

    @property
    def effective(self) -> bool:
        """Tell whether the fault cost something here."""
        return self.lost is None or max(self.lost.throughput, self.lost.latency) >= EFFECTIVE


def experiment(
    workload: str, fault: str, folder: Path, place: Place, *, lengths: Lengths, advance: Callable[[int], None]
) -> Result:
    """Run one experiment and write RECORDING.parquet, .labels.yml and .units beside it.

    Args:
        advance: told after each second how many there are.

    Raises:
        ImpossibleError: this kernel does not permit the fault.
        UnreadableError: the workload cannot run here, or did not start working.
    """
    stem = f"{workload}-{fault}"
    recording, log = folder / f"{stem}.parquet", (folder / f"{stem}.units").resolve()
    for path in (recording, log):
        path.unlink(missing_ok=True)
    marks = {}
    with ExitStack() as injected, running(workload, place, log):

        def on_second(taken: int) -> None:
            if taken == lengths.healthy:
                marks["begin"] = time.time()
                injected.enter_context(FAULTS[fault].inject(place))
            elif taken == lengths.healthy + lengths.faulty:
                injected.close()
                marks["end"] = time.time()
            advance(taken)

        total = lengths.healthy + lengths.faulty + lengths.after
        note = f"workload {workload}, fault {fault} from {lengths.healthy} s for {lengths.faulty} s"
        record(recording, host_root=Path("/"), gpu=False, seconds=total, note=note, host="lab", on_second=on_second)
    units = read_units(log)
    lost = None
    if len(marks) == 2:
        lost = loss(units, (marks["begin"] - lengths.healthy, marks["begin"]), (marks["begin"] + 2, marks["end"]))
    result = Result(recording=recording, workload=workload, fault=fault, lost=lost)
    recording.with_suffix(".labels.yml").write_text(labels(result, lengths), encoding="utf-8")
    return result


@contextmanager
def running(workload: str, place: Place, log: Path) -> Iterator[None]:
    """Run a workload until it is left; it works already when this is entered.

    Raises:
        UnreadableError: it cannot run here, or did not do one unit in a minute.
    """
    if workload in NEEDS_TORCH and find_spec("torch") is None:
        raise UnreadableError(f"the {workload} workload needs PyTorch", hint="pip install 'unveil[lab]'")
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number, program in enumerate(WORKLOADS[workload]):
            output = log if program.tells else log.with_suffix(f".{number}")
            started.append(place.start(program.module, list(program.arguments), side=program.side, log=output))
        deadline = time.monotonic() + 60
        while not (log.exists() and log.stat().st_size):
            if any(process.poll() is not None for process in started) or time.monotonic() > deadline:
                raise UnreadableError(f"the {workload} workload did not start working")
            time.sleep(0.2)
        time.sleep(WARM_S)
        yield
    finally:
        for process in started:
            process.send_signal(signal.SIGKILL)
            process.wait()
        for path in log.parent.glob(f"{log.stem}.[0-9]"):
            path.unlink()


def labels(result: Result, lengths: Lengths) -> str:
    """Return the labels file of an experiment. The time of a fault that cost nothing is left unlabelled."""
    begin, end = lengths.healthy, lengths.healthy + lengths.faulty
    fault = FAULTS[result.fault]
    lines = [
        "apiVersion: unveil/v1",
        "kind: RecordingLabels",
        f"workload: {result.workload}",
        "intervals:",
        f"  - {{from: 0, to: {begin}, label: healthy}}",
    ]
    if result.fault in ("none", "busy_but_healthy"):
        lines.append(f"  - {{from: {begin}, to: {end}, label: healthy, note: {json.dumps(fault.title)}}}")
    elif result.effective:
        label = f", label: {fault.label}" if fault.label else ""
        label += f", subsystem: {fault.subsystem}" if fault.subsystem else ""
        told = "" if result.lost is None else f"; {result.lost.throughput:.0%} of throughput lost"
        told += "" if result.lost is None else f", units take {result.lost.latency:+.0%}"
        note = json.dumps(f"{fault.title}{told}")
        lines.append(f"  - {{from: {begin}, to: {end}, fault: {result.fault}{label}, note: {note}}}")
    lines.append(f"  - {{from: {end + SETTLE_S}, label: healthy}}")
    return "\n".join(lines) + "\n"
