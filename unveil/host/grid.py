"""Grid: which tick is this, how late is it, and how many were missed."""

from __future__ import annotations

_CALIBRATED_EVERY = 64


class Grid:
    """Numbers ticks by their time.

    Deadlines are the engine's; all that is known here is that they are one interval apart. Their phase is that of the
    earliest tick among the last ones: a tick can be late, never early.

    Attributes:
        number: of the last tick; -1 before the first.
        late_ns: how late it was, never negative.
        missed: ticks that never came, since the first.
    """

    __slots__ = ("_interval", "_least", "_left", "_origin", "late_ns", "missed", "number")

    def __init__(self, interval_ns: int) -> None:
        self.number = -1
        self.late_ns = 0
        self.missed = 0
        self._interval = interval_ns
        self._origin = 0
        self._least = interval_ns
        self._left = _CALIBRATED_EVERY

    def place(self, now_ns: int) -> int:
        """Return the number of the tick at a time (monotonic clock, nanoseconds)."""
        if self.number < 0:
            self._origin, self.number = now_ns, 0
            return 0
        interval = self._interval
        since = now_ns - self._origin
        number = max(self.number, (since + interval // 4) // interval)
        late = since - number * interval
        if late < 0:  # earlier than any before: so they were all late
            self._origin += late
            late = 0
        if number > self.number:
            self.missed += number - self.number - 1
            self.number = number
        self.late_ns = late
        self._least = min(self._least, late)
        self._left -= 1
        if not self._left:
            self._origin += self._least
            self._least, self._left = interval, _CALIBRATED_EVERY
        return number
