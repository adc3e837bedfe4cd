"""Ticker: the thread that reads the host ten times a second, whatever the rest of the watcher waits for.

The watch loop judges, writes and answers; now and then it waits: for a disk that takes its time over an fsync, for a
driver, for the answer to a large question. No sample may be lost or late for that. So the ticks have a thread of their
own, with absolute deadlines, which does nothing but read and say that another second is there.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.status import Lateness

TICK_NS = 100_000_000
TICKS = 10  # a second


class Ticker:
    """Ticks from `start` to `close`.

    Attributes:
        seconds: how many times there was a second's worth to judge; the first time with the first tick.
    """

    def __init__(
        self,
        read: Callable[[int], None],
        *,
        lateness: Lateness,
        wake: Callable[[], None],
        due: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """Make one.

        Args:
            read: reads what is due at a time (CLOCK_MONOTONIC, nanoseconds). What it raises ends the ticks.
            lateness: counts them.
            wake: called when there is something to be judged, and when the ticks have ended.
            due: asked with each second whether those that are there since the last wake are to be judged now.
        """
        self.seconds = 0
        self._read = read
        self._late = lateness.add
        self._wake = wake
        self._due = due
        self._failure: BaseException | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="ticks", daemon=True)

    def start(self) -> None:
        """Begin; the first tick is one interval away."""
        self._thread.start()

    def close(self) -> None:
        """End, after the tick under way."""
        self._stopping = True
        if self._thread.ident is not None:
            self._thread.join()

    def check(self) -> None:
        """Raise what ended the ticks."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._tick_on()
        except BaseException as error:  # noqa: BLE001  # it is raised again where it is seen: by `check`
            self._failure = error
        self._wake()

    def _tick_on(self) -> None:
        clock, sleep, read, late = time.monotonic_ns, time.sleep, self._read, self._late
        due_ns = clock() + TICK_NS
        number = second_at = waiting = 0
        while not self._stopping:
            sleep(max(0, due_ns - clock()) / 1e9)
            now_ns = clock()
            if now_ns < due_ns:
                continue
            read(now_ns)
            missed = (now_ns - due_ns) // TICK_NS
            late((now_ns - due_ns) / 1e6, missed)
            due_ns += (missed + 1) * TICK_NS
            number += missed
            if number >= second_at:
                second_at = number - number % TICKS + TICKS
                self.seconds += 1
                waiting += 1
                if self._due(waiting):
                    waiting = 0
                    self._wake()
            number += 1
