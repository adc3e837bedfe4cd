"""WORKLOADS, and one of them running: its programs in the containers of a place, warm before anything is recorded."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

from unveil.errors import UnreadableError
from unveil.lab.place import address

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path
    from types import TracebackType

    from unveil.lab.place import Place

WARM_S = 10  # a workload's own start is left out of all
START_S = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process of a workload: its module, its arguments, where it runs; ``tells`` when its units count."""

    module: str
    arguments: tuple[str, ...]
    side: str
    tells: bool = False


_LAB = "unveil.lab.workloads"
ACTORS = 4
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
    "embedding": (
        Program(module=f"{_LAB}.embedding", arguments=("store", address("a")), side="a"),
        Program(module=f"{_LAB}.embedding", arguments=("job", address("a")), side="b", tells=True),
    ),
    "rollouts": (
        Program(module=f"{_LAB}.rollouts", arguments=("learner", address("a"), str(ACTORS)), side="a", tells=True),
        *(
            Program(module=f"{_LAB}.rollouts", arguments=("actor", address("a"), str(number)), side="b")
            for number in range(ACTORS)
        ),
    ),
    "shuffle": (
        Program(module=f"{_LAB}.shuffle", arguments=("0", address("a")), side="a", tells=True),
        Program(module=f"{_LAB}.shuffle", arguments=("1", address("a")), side="b"),
    ),
}
"""By name; one entry a workload."""
NEEDS_TORCH = {"training", "long_steps", "serving", "rollouts"}


class Running:
    """A workload that runs while it is entered, and works already then.

    Raises:
        UnreadableError: on entering: it cannot run here, or did not do one unit in a minute and a half.
    """

    def __init__(self, workload: str, place: Place) -> None:
        self.workload, self.place = workload, place
        self.log: Path = (place.scratch / f"{workload}.units").resolve()
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def alive(self) -> bool:
        """Tell whether all its programs still run."""
        return all(process.poll() is None for process in self._started)

    def __enter__(self) -> Self:
        check(self.workload)
        for path in self.log.parent.glob(f"{self.workload}.*"):
            path.unlink()
        try:
            for number, program in enumerate(WORKLOADS[self.workload]):
                output = self.log if program.tells else self.log.with_suffix(f".{number}")
                started = self.place.start(program.module, list(program.arguments), side=program.side, log=output)
                self._started.append(started)
            deadline = time.monotonic() + START_S
            while not (self.log.exists() and self.log.stat().st_size):
                if not self.alive or time.monotonic() > deadline:
                    told = self.log.with_suffix(".errors").read_text(errors="replace").strip().splitlines()
                    why = f": {told[-1]}" if told else ""
                    raise UnreadableError(f"the {self.workload} workload did not start working{why}")
                time.sleep(0.2)
            time.sleep(WARM_S)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
        self._started.clear()


def check(workload: str) -> None:
    """Raise UnreadableError where a workload cannot run here."""
    if workload in NEEDS_TORCH and find_spec("torch") is None:
        raise UnreadableError(f"the {workload} workload needs PyTorch", hint="pip install 'unveil[lab]'")
