"""One experiment on a workload that runs: a healthy stretch, a fault, a healthy stretch again; recorded and weighed."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.engine.recorder import record
from unveil.host.replay import Replay
from unveil.lab.faults import FAULTS, HEALTHY
from unveil.lab.labels import Result, labels, write
from unveil.lab.units import chance, line, loss, read_units, settled_s
from unveil.lab.uses import Meter

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.lab.place import Place
    from unveil.lab.running import Running
    from unveil.lab.units import Stretch, Unit
    from unveil.lab.uses import Uses

SETTLE_S = 8.0
"""What is never judged after a fault: a window and the pace of the slowest sources; more where the work takes more."""
LOOK_S, NEAR = 5.0, 0.10
LATE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Seconds of the three stretches."""

    healthy: int = 120
    faulty: int = 60
    after: int = 40

    @property
    def total(self) -> int:
        """Seconds of a recording."""
        return self.healthy + self.faulty + self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a workload did while it was well: its units, the stretches of wall-clock time that they are of, its use.

    Attributes:
        uses: what faults are laid on relative to; where None, what was used in the lead-in.
    """

    units: tuple[Unit, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    uses: Uses | None = None


class Injection:
    """A fault laid on and taken away by a thread of its own, so that the recorder misses no tick over it.

    Neighbours die with the thread that started them: this one lives as long as the fault.
    """

    def __init__(self, fault: str, place: Place, uses: Uses) -> None:
        self.begin = self.active = self.end = 0.0
        self._fault, self._place, self._uses = fault, place, uses
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.begin = time.time()
        try:
            with FAULTS[self._fault].inject(self._place, self._uses):
                self.active = time.time()
                self._over.wait()
                self.end = time.time()
        except BaseException as error:  # noqa: BLE001  # of another thread: raised in the one that asked
            self._error = error

    @property
    def failed(self) -> bool:
        """Tell whether it could not be laid on."""
        return self._error is not None

    def stop(self) -> None:
        """Have it taken away; return at once."""
        self._over.set()

    def close(self) -> None:
        """Have it taken away, and raise what went wrong, if anything did. An interrupt waits until that is done."""
        self._over.set()
        interrupt: KeyboardInterrupt | None = None
        while self._thread.is_alive():
            try:
                self._thread.join()
            except KeyboardInterrupt as error:
                interrupt = error
        if self._error is not None:
            raise self._error
        if interrupt is not None:
            raise interrupt


@dataclass(slots=True)
class _Conducting:
    """What happens at which second of a recording."""

    fault: str
    running: Running
    lengths: Lengths
    advance: Callable[[int], None]
    meter: Meter
    uses: Uses | None
    ended: float = 0.0
    injection: Injection | None = None
    taken: int = 0

    def on_second(self, taken: int) -> None:
        self.taken = taken
        self.ended = time.time()
        if taken == self.lengths.healthy:
            self.uses = self.uses or self.meter.uses()
            self.injection = Injection(self.fault, self.running.place, self.uses)
        elif taken == self.lengths.healthy + self.lengths.faulty and self.injection is not None:
            self.injection.stop()
        if taken == self.lengths.total and self.fault == "none":
            self.uses = self.meter.uses()  # of all of it
        if self.injection is not None and self.injection.failed:
            self.injection.close()
        self.advance(taken)


def experiment(
    running: Running, fault: str, folder: Path, *, lengths: Lengths, past: Past, advance: Callable[[int], None]
) -> Result:
    """Record one experiment: WORKLOAD-FAULT.parquet, .units, .result.json and, at last, .labels.yml.

    Args:
        past: what the workload did while it was well, beside this recording's own lead-in.
        advance: told after each second how many there are.

    Raises:
        ImpossibleError: this kernel does not permit the fault, or this workload has nothing for it.
        KeyboardInterrupt: somebody wanted an end; nothing is left of this recording.
    """
    recording = folder / f"{running.workload}-{fault}.parquet"
    for path in folder.glob(f"{recording.stem}.*"):  # parts of one that was cut off, too
        path.unlink()
    doing = _Conducting(
        fault=fault, running=running, lengths=lengths, advance=advance, meter=Meter(running.place), uses=past.uses
    )
    note = f"workload {running.workload}, fault {fault} from {lengths.healthy} s for {lengths.faulty} s"
    whole = False
    try:
        try:
            record(
                recording, host_root=Path("/"), gpu=False, seconds=lengths.total, note=note, host="lab",
                on_second=doing.on_second,
            )  # fmt: skip
        finally:
            if doing.injection is not None:
                doing.injection.close()
        if doing.taken < lengths.total:
            raise KeyboardInterrupt
        whole = True
    finally:
        if not whole:
            recording.unlink(missing_ok=True)
    began = float(Replay(recording).metadata["started_s"])  # whence labels are counted
    result, units = _weigh(doing, past, began)
    recording.with_suffix(".units").write_text(units, encoding="utf-8")
    write(recording.with_suffix(".result.json"), result, began=began, uses=doing.uses and asdict(doing.uses))
    recording.with_suffix(".labels.yml").write_text(labels(result), encoding="utf-8")
    return result


def _weigh(doing: _Conducting, past: Past, began: float) -> tuple[Result, str]:
    """Return the result of a recording, and the lines of its units."""
    injection, ended = doing.injection, doing.ended
    assert injection is not None, "a recording that is whole has seen its fault"
    units = read_units(doing.running.log)
    well = [(began, injection.begin), *past.stretches]
    known = sorted({*past.units, *units}, key=lambda unit: unit.at_s)
    lost = loss(known, well, [(injection.active, injection.end)])
    after = (injection.end + SETTLE_S, ended)
    settled = settled_s(known, well, after, look_s=LOOK_S, near=NEAR)
    result = Result(
        workload=doing.running.workload,
        fault=doing.fault,
        begin_s=injection.begin - began,
        active_s=injection.active - began,
        end_s=injection.end - began,
        settled_s=(settled if doing.fault not in HEALTHY else injection.end) - began,
        seconds=ended - began,
        lost=lost,
        chance=chance(known, well, injection.end - injection.active),
        dead=not doing.running.alive,
    )
    kept = (line(unit) for unit in units if began - LATE_S <= unit.at_s <= ended)
    return result, "".join(kept)
