"""Record a live host: the same observation as the watcher's, written down instead of judged."""

from __future__ import annotations

import signal
import socket
import time
from contextlib import closing, contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from unveil.engine.observation import Observation
from unveil.host.recording import RecordingWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from unveil.records.fact import FactTable
    from unveil.records.metric import Channel

TICK_NS = 100_000_000
TICKS = 10


def record(
    path: Path,
    *,
    host_root: Path,
    gpu: bool,
    seconds: float | None,
    note: str = "",
    resume: bool = False,
    channels: Callable[[Channel], bool] | None = None,
    facts: Callable[[FactTable], FactTable] | None = None,
    host: str = "",
    on_second: Callable[[int], None] | None = None,
) -> int:
    """Record until *seconds* have passed, or SIGINT or SIGTERM comes; return how many seconds were recorded.

    Args:
        channels: which channels to keep; all when None.
        facts: what to keep of a table of facts; all when None.
        host: name to write down instead of this host's own.
        on_second: called after each second with how many there are.

    Raises:
        BadInputError: the file is there already, or cannot be written.
    """
    metadata = {
        "host": host or socket.gethostname(),
        "started_s": time.time(),
        "note": note,
        "written_by": f"unveil {version('unveil')}",
    }
    taken = 0
    with (
        _stopping() as stopping,
        closing(Observation(host_root, gpu=gpu)) as observation,
        closing(RecordingWriter(path, metadata, resume=resume, channels=channels)) as writer,
    ):
        next_ns = time.monotonic_ns() + TICK_NS
        tick = 0
        while not stopping and (seconds is None or taken < seconds):
            time.sleep(max(0, next_ns - time.monotonic_ns()) / 1e9)
            now_ns = time.monotonic_ns()
            observation.tick(now_ns)
            next_ns += ((now_ns - next_ns) // TICK_NS + 1) * TICK_NS
            tick += 1
            if tick % TICKS == 0:
                writer.write_facts(observation.facts if facts is None else facts(observation.facts))
                writer.write(observation.collect(now_ns), wall_s=time.time())
                taken += 1
                if on_second is not None:
                    on_second(taken)
            elif tick % TICKS == TICKS // 2 and observation.facts_due(now_ns):
                observation.refresh_facts(now_ns)
    return taken


@contextmanager
def _stopping() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM instead of dying of them; put the handlers back at the end."""
    got: list[int] = []
    earlier = {
        number: signal.signal(number, lambda sent, _frame: got.append(sent))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield got
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
