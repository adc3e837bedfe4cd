"""What the watcher costs a workload beside it: ``python -m unveil.benchmarks.slowdown --pairs 20``

Runs fixed pieces of work on all CPUs (arithmetic, copies of memory, bytes through TCP) in pairs: once while the real
watcher runs and once while it is stopped (SIGSTOP), in alternating order, so that what else happens on the host hits
both alike. Prints the median slowdown of each kind with its 95 % interval from a bootstrap over the pairs. Wanted is
0.2 % at most; an interval that is wider than that says that this machine is too noisy to tell.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager
from multiprocessing import get_context
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from unveil.benchmarks.running import Running, running, said
from unveil.cli import draw
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WANTED = 0.002
_SETTLE_S = 0.3  # a watcher that goes on after a stop takes up its ticks anew
_BLOCK = 1 << 20
_BOOTSTRAPS = 4000


def arithmetic(amount: float) -> None:
    """Compute for about *amount* seconds of an ordinary CPU."""
    total = 0
    for number in range(int(12_000_000 * amount)):
        total += number & 7


def memory(amount: float) -> None:
    """Copy memory that no cache holds for about *amount* seconds."""
    source, target = np.ones(1 << 22), np.empty(1 << 22)
    for _ in range(int(60 * amount)):
        np.copyto(target, source)


def network(amount: float) -> None:
    """Send bytes through a TCP connection of the loopback for about *amount* seconds."""
    blocks = int(1000 * amount)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        with receiver:
            thread = threading.Thread(target=_drain, args=(receiver, blocks * _BLOCK))
            thread.start()
            payload = bytes(_BLOCK)
            for _ in range(blocks):
                sender.sendall(payload)
            thread.join()


def _drain(receiver: socket.socket, size: int) -> None:
    buffer = bytearray(_BLOCK)
    while size > 0:
        size -= receiver.recv_into(buffer)


KINDS: dict[str, Callable[[float], None]] = {"arithmetic": arithmetic, "memory": memory, "network": network}


def took(work: Callable[[float], None], amount: float, processes: int) -> float:
    """Return the wall-clock seconds that a piece of work takes in several processes at once."""
    start = get_context("fork")
    several = [start.Process(target=work, args=(amount,)) for _ in range(processes)]
    began = time.perf_counter()
    for process in several:
        process.start()
    for process in several:
        process.join()
    return time.perf_counter() - began


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Keep a process from running."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        time.sleep(_SETTLE_S)


def pair(work: Callable[[float], None], watcher: Running, amount: float, processes: int, *, first: bool) -> float:
    """Return the slowdown of one pair: time with the watcher over time without, less one.

    Args:
        first: whether the one with the watcher comes first.
    """

    def without() -> float:
        with stopped(watcher.pid):
            return took(work, amount, processes)

    if first:
        with_it = took(work, amount, processes)
        return with_it / without() - 1
    alone = without()
    return took(work, amount, processes) / alone - 1


def interval(slowdowns: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median, by a bootstrap over the pairs; its seed is fixed."""
    drawn = np.random.default_rng(1).choice(np.asarray(slowdowns), (_BOOTSTRAPS, len(slowdowns)))
    low, high = np.quantile(np.median(drawn, axis=1), (0.025, 0.975))
    return float(low), float(high)


def report(found: dict[str, list[float]]) -> int:
    """Print the table; return 1 when a slowdown is surely beyond what is wanted."""
    rows = []
    worse = False
    for kind, slowdowns in found.items():
        low, high = interval(slowdowns)
        worse = worse or low > WANTED
        verdict = "too much" if low > WANTED else "holds" if high <= WANTED else "cannot be told here"
        rows.append(
            (kind, len(slowdowns), f"{median(slowdowns):+.2%}", f"{low:+.2%} … {high:+.2%}", f"{WANTED:.1%}", verdict)
        )
    draw.table(("work", "pairs>", "median slowdown>", "95 % interval>", "wanted>", ""), rows)
    return 1 if worse else 0


def main(argv: list[str] | None = None) -> int:
    """Measure from the command line; further arguments go to `unveil watch`."""
    parser = argparse.ArgumentParser(
        prog="python -m unveil.benchmarks.slowdown",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pairs", type=int, default=20, help="of each kind (default 20)")
    parser.add_argument("--seconds", type=float, default=2.0, help="about so long takes one piece of work (default 2)")
    parser.add_argument("--work", action="append", choices=tuple(KINDS), help="default: all kinds")
    asked, rest = parser.parse_known_args(argv)
    kinds = asked.work or list(KINDS)
    processes = os.cpu_count() or 1
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    try:
        with running(*rest) as watcher, draw.progress("pairs", total=asked.pairs * len(kinds)) as advance:
            watcher.quiet()
            for number in range(asked.pairs):
                for kind in kinds:
                    found[kind].append(
                        pair(KINDS[kind], watcher, asked.seconds, processes, first=number % 2 == 0)
                    )  # fmt: skip
                    advance(sum(map(len, found.values())))
    except UnveilError as error:
        return said(error, "slowdown")
    return report(found)


if __name__ == "__main__":
    sys.exit(main())
