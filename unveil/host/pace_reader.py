"""PaceReader: reads the sources of one pace when they are due, and has what was read parsed once a second.

The files of a pace are spread over several ticks, so that no tick carries them all; together they make one row. The
time of a row is the middle between its first and its last reading. As each file is always read at the same place in
the row, a rate is as exact as the ticks are punctual.
"""

from __future__ import annotations

from time import thread_time_ns
from typing import TYPE_CHECKING

from unveil.host.decoder import Decoder, Row
from unveil.host.source import FAST, MEDIUM, SLOW, SLOWER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from unveil.host.active_source import ActiveSource
    from unveil.host.source import Pace
    from unveil.records.metric import Channel
    from unveil.records.sample import SampleBlock

_SLOT_BYTES = 4096  # text that is worth a tick of its own
_OPENING_BYTES = 256  # text that costs as much as to open a file
_MEASURED_EVERY = 10  # ticks; asking for the time costs a good part of what reading a fast file does
_MOST_ROWS = 600  # a minute of the fast tier: when nobody collects, memory stays bounded


class PaceReader:
    """The sources of one pace.

    Attributes:
        due: number of the tick at which something is to be read next.
    """

    def __init__(self, pace: Pace, ticks: int, extra: tuple[Channel, ...] = ()) -> None:
        """Make a reader without sources.

        Args:
            ticks: period in ticks, at least one.
            extra: channels whose values ``read`` is given.
        """
        self.pace = pace
        self.due = 0
        self._ticks = ticks
        self._extra = extra
        self._decoder = Decoder(pace.tier, (), extra)
        self._sources: tuple[ActiveSource, ...] = ()
        self._next: tuple[ActiveSource, ...] | None = None
        self._slots: list[list[tuple[ActiveSource, list[Callable[[], bytes | None]]]]] = [[]]
        self._offsets = _offsets(pace, ticks)
        self._slot = 0  # that comes next
        self._base = 0  # tick at which the row's period begins
        self._first_ns = 0
        self._texts: list[bytes | None] = []
        self._rows: list[Row] = []
        self._done: list[SampleBlock] = []

    def use(self, sources: Sequence[ActiveSource]) -> None:
        """Read these sources, and the files they have now, from the next row on."""
        self._next = tuple(sources)

    def read(self, number: int, now_ns: int, extra: tuple[float, ...] = ()) -> None:
        """Read what is due at a tick.

        Args:
            number: of the tick.
            now_ns: its time.
            extra: values of the extra channels.
        """
        if self._slot == 0:
            if self._next is not None:
                self._change(self._next)
            self._first_ns = now_ns
            self._texts = []
        measured = self._ticks > 1 or number % _MEASURED_EVERY == 0
        while self._slot < len(self._slots) and number >= self._base + self._offsets[self._slot]:
            for source, reads in self._slots[self._slot]:
                before = thread_time_ns() if measured else 0
                self._texts += [read() for read in reads]
                if measured:
                    source.spent_ns += thread_time_ns() - before
            self._slot += 1
        if self._slot == len(self._slots):
            self._finish(number, now_ns, extra, measured=measured)
        self.due = self._base + self._offsets[self._slot]

    def collect(self) -> list[SampleBlock]:
        """Parse what was read since the last time; several blocks when the channels changed in between."""
        done, self._done = self._done, []
        rows, self._rows = self._rows, []
        return done + self._decoder.decode(rows) if rows else done

    def _finish(self, number: int, now_ns: int, extra: tuple[float, ...], *, measured: bool) -> None:
        self._rows.append(Row((self._first_ns + now_ns) // 2, self._texts, extra))
        if len(self._rows) > _MOST_ROWS:
            del self._rows[0]
        if measured:
            for source in self._sources:
                source.settle()
        self._slot = 0
        self._base = max(self._base + self._ticks, number - number % self._ticks)
        if number >= self._base + self._offsets[0] and self._ticks > 1:  # a whole period late: one row a tick is enough
            self._base += self._ticks

    def _change(self, sources: tuple[ActiveSource, ...]) -> None:
        """Take up other files, at the start of a row; rows of the old ones are parsed first."""
        self._done = self.collect()
        self._sources, self._next = sources, None
        self._decoder = Decoder(self.pace.tier, sources, self._extra, self._decoder.layout)
        weighed = [
            (source, file, len(file.shape.text) + 1 + (0 if file.feed.kept else _OPENING_BYTES))
            for source in sources
            for file in source.files
        ]
        total = sum(weight for _, _, weight in weighed)
        share = total / min(len(self._offsets), 1 + total // _SLOT_BYTES)
        self._slots = [[]]
        filled = 0
        for source, file, weight in weighed:
            if filled >= share * len(self._slots):
                self._slots.append([])
            slot = self._slots[-1]
            if not slot or slot[-1][0] is not source:
                slot.append((source, []))
            slot[-1][1].append(file.read)
            filled += weight


def _offsets(pace: Pace, ticks: int) -> tuple[int, ...]:
    """Return the ticks of a period at which something may be read: no two paces but the fast one share a tick.

    Ticks that are multiples of ten are left out: at one of ten the samples are parsed and judged.
    """
    if pace is FAST or ticks < 10:
        return (0,)
    if pace is MEDIUM:
        return tuple(range(1, ticks - 2, 2))  # 1 3 5 7
    if pace is SLOW:
        return tuple(tick for tick in range(2, ticks, 2) if tick % 10)  # 2 4 6 8 12 14 …
    if pace is SLOWER:
        return tuple(range(9, ticks, 20))  # 9 29 49
    return tuple(tick for tick in (19, 39, 69, 89) if tick < ticks)
