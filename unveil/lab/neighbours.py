"""Neighbours: other tenants in a container of their own, who come and go, or who take what the workload needs."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from unveil.lab.changes import ImpossibleError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from unveil.lab.changes import Changes
    from unveil.lab.place import Place
    from unveil.lab.uses import Uses

HOG = "while True: sum(range(100000))"
STREAM = (
    "import numpy\na = numpy.ones(1 << 24)\nb = numpy.empty_like(a)\n"
    "while True: numpy.multiply(a, 1.0001, out=b); numpy.copyto(a, b)"
)
MODEST = ("-m", "unveil.lab.workloads.neighbour")
LARGE, SMALL = 4, 0.25
"""Weights of a neighbour beside one of the workload's containers: who asked for four CPUs, or for a quarter of one."""


@contextmanager
def running(place: Place, *arguments: str, count: int = 1) -> Iterator[None]:
    """Have so many Pythons run in the neighbour's container.

    Raises:
        ImpossibleError: one of them ended by itself, so that the fault was not there, or not all the time.
    """
    started: list[subprocess.Popen[bytes]] = []
    ended: list[int] = []
    try:
        started.extend(place.start_neighbour(*arguments) for _ in range(count))  # as far as it gets
        yield
        ended = [code for process in started if (code := process.poll()) is not None]
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
    if ended:
        raise ImpossibleError(f"a neighbour ended before it was told to, with {ended[0]}")


@contextmanager
def nobody(_place: Place, _uses: Uses) -> Iterator[None]:
    """Change nothing."""
    yield


@contextmanager
def busy_but_healthy(place: Place, _uses: Uses) -> Iterator[None]:
    """Let a modest neighbour do ordinary things, now and then: what an honest detector leaves alone."""
    with ExitStack() as stack:
        _weigh(stack.enter_context(place.changes.scope()), place, SMALL)
        stack.enter_context(running(place, *MODEST))
        yield


@contextmanager
def cpu_hogs(place: Place, _uses: Uses) -> Iterator[None]:
    """Let a large tenant compute on every CPU."""
    with _large(place, HOG):
        yield


@contextmanager
def memory_hogs(place: Place, _uses: Uses) -> Iterator[None]:
    """Let a large tenant stream through memory on every CPU."""
    with _large(place, STREAM):
        yield


@contextmanager
def _large(place: Place, program: str) -> Iterator[None]:
    with ExitStack() as stack:
        _weigh(stack.enter_context(place.changes.scope()), place, LARGE)
        stack.enter_context(running(place, "-c", program, count=os.cpu_count() or 1))
        yield


def _weigh(changes: Changes, place: Place, weight: float) -> None:
    """Weigh the neighbour's container against each of the workload's."""
    folder = place.folder("cpu", "neighbour")
    for name, plain in (("cpu.weight", 100), ("cpu.shares", 1024)) if folder is not None else ():
        if folder is not None and (folder / name).exists():
            changes.write(folder / name, str(int(weight * plain)))
