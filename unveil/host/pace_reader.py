"""PaceReader: reads the sources of one pace when they are due, and has what was read parsed once a second.

The fast pace is all that most ticks do, so it is a bare ``pread`` for each file. The slower paces are read at the
ticks at which the second is judged: waking costs more than reading, as whatever was not touched for a while is no
longer in any cache, and that tick touches everything anyway. Where a pace has much to read, it is spread over several
seconds; together that makes one row, whose time is the middle between its first and its last reading. As each file is
always read at the same place in the row, a rate is as exact as the ticks are punctual.
"""

from __future__ import annotations

import os
from time import thread_time_ns
from typing import TYPE_CHECKING

from unveil.host.decoder import Decoder, Row
from unveil.host.source import SLOWER, SLOWEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.host.active_source import ActiveSource
    from unveil.host.kept_file import KeptFile
    from unveil.host.source import Pace
    from unveil.records.metric import Channel
    from unveil.records.sample import SampleBlock

SECOND = 10  # ticks, from one at which samples are judged to the next; those are the multiples of it
_SLOT_BYTES = 1 << 17  # text that is worth a tick of its own: a millisecond
_OPENING_BYTES = 256  # text that costs as much as to open a file
_MEASURED_FIRST = 10  # rows, then one in fifty ticks: to ask for the time costs a good part of what reading does
_MEASURED_EVERY = 50
_MOST_ROWS = 600  # a minute of the fast tier: when nobody collects, memory stays bounded

_pread = os.pread


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
        self._slots: list[list[tuple[ActiveSource, list[KeptFile]]]] = [[]]
        self._handles: list[tuple[int, int]] = []  # of all files, where all can be read by a bare pread
        self._surely_all: list[int] = []
        self._begun = 0  # rows with the files in use
        self._measured_every = max(1, _MEASURED_EVERY // ticks)
        self._measured = True  # this row
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
            self._measured = self._begun < _MEASURED_FIRST or self._begun % self._measured_every == 0
            self._begun += 1
            if self._handles and not self._measured and (texts := self._bare()) is not None:
                self._keep(Row(now_ns, texts, extra))
                self._base = self.due = number + 1
                return
            self._first_ns = now_ns
            self._texts = []
        while self._slot < len(self._slots) and number >= self._base + self._offsets[self._slot]:
            for source, files in self._slots[self._slot]:
                before = thread_time_ns() if self._measured else 0
                self._texts += [file.read() for file in files]
                if self._measured:
                    source.spent_ns += thread_time_ns() - before
            self._slot += 1
        if self._slot == len(self._slots):
            self._finish(number, now_ns, extra)
        self.due = self._base + self._offsets[self._slot]

    def _bare(self) -> list[bytes | None] | None:
        """Return the texts of all files, None where they are to be read one by one: some may not be whole, or fail."""
        try:
            texts: list[bytes | None] = [_pread(descriptor, size, 0) for descriptor, size in self._handles]
        except OSError:
            return None
        for text, most in zip(texts, self._surely_all, strict=True):
            if len(text) > most:  # type: ignore[arg-type]  # pread gives no None
                return None
        return texts

    def collect(self) -> list[SampleBlock]:
        """Parse what was read since the last time; several blocks when the channels changed in between."""
        done, self._done = self._done, []
        rows, self._rows = self._rows, []
        return done + self._decoder.decode(rows) if rows else done

    def _keep(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) > _MOST_ROWS:
            del self._rows[0]

    def _finish(self, number: int, now_ns: int, extra: tuple[float, ...]) -> None:
        self._keep(Row((self._first_ns + now_ns) // 2, self._texts, extra))
        self._take_handles()  # one may have been opened, closed or found to be longer
        if self._measured:
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
            (source, file, len(file.shape.text) + 1 + file.feed.beside + (0 if file.feed.kept else _OPENING_BYTES))
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
            slot[-1][1].append(file)
            filled += weight
        self._begun = 0
        self._take_handles()

    def _take_handles(self) -> None:
        if self._ticks > 1:
            return
        files = [file for source in self._sources for file in source.files]
        short = [file for file in files if len(file.shape.text) <= file.surely_all]  # else each was read twice
        handles = [handle for file in short if (handle := file.handle) is not None]
        self._handles = handles if len(handles) == len(files) else []
        self._surely_all = [file.surely_all for file in files]


def _offsets(pace: Pace, ticks: int) -> tuple[int, ...]:
    """Return the ticks of a period at which something may be read: those at which the second is judged.

    The seldom paces begin in seconds of their own, so that with little to read no two of them share one.
    """
    begin = {SLOWER: 1, SLOWEST: 3}.get(pace, 0)
    return tuple(range(begin * SECOND, ticks, SECOND)) or (0,)
