"""Slider: samples in, windows out. The grid of windows is a matter of sample times alone, never of when they came."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING

from unveil.records.sample import Tier
from unveil.records.window import Window
from unveil.windows.stream import CARRY_NS, Stream, metrics_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.records.sample import SampleBlock

_PATIENCE_NS = 30_000_000_000  # a window that the fast tier does not cover within this time is never made


class Slider:
    """Cuts the samples of all tiers into overlapping windows.

    The first fast sample is the origin; window *k* spans ``origin + k * stride`` to that plus *length*, both ends
    included. It is made once a fast sample at or after its end is there, from samples up to its end only. So the
    same samples give the same windows, bit by bit, however they were parcelled out to ``push``, as long as a push
    holds what all tiers have up to some time.

    Where the fast tier has a gap, the windows that still hold fast samples are made from what is there and say what
    they lack (``ticks_missed``); those without any are not made, and the numbering goes on without a hole. When the
    clock of a tier goes back, that tier begins anew; when it is the fast tier, so does the grid.

    Memory is bounded by time: nothing older than a minute is kept, whether or not windows come out.
    """

    def __init__(
        self, length_ns: int = 3_000_000_000, stride_ns: int = 1_000_000_000, *, tick_ns: int = 100_000_000
    ) -> None:
        """Make a slider.

        Args:
            length_ns: length of a window.
            stride_ns: time from one window to the next.
            tick_ns: time from one fast tick to the next that the sampler aims at; for counting missed ones.

        Raises:
            ValueError: a time is not positive, or a window is longer than 30 s.
        """
        if min(length_ns, stride_ns, tick_ns) <= 0 or length_ns > _PATIENCE_NS:
            raise ValueError("length, stride and tick are positive, the length at most 30 s")
        self._length, self._stride, self._tick = length_ns, stride_ns, tick_ns
        self._streams: list[Stream] = []
        self._ticks: list[int] = []  # times, rising
        self._numbers: list[int] = []  # which tick after the origin each of them is
        self._origin = 0
        self._end: int | None = None  # of the next window; None before the first fast sample
        self._index = 0

    def push(self, blocks: Iterable[SampleBlock], *, wall_s: float) -> tuple[Window, ...]:
        """Take blocks and return the windows that they complete, oldest first.

        Args:
            blocks: of any tiers; those of one tier in order of time.
            wall_s: wall clock at the newest fast sample, seconds since the epoch. Only a label.
        """
        done: list[Window] = []
        for block in blocks:
            if not len(block.times_ns) or not block.layout.channels:
                continue
            stream = self._stream_of(block)
            newest = stream.newest_ns
            if newest is not None and int(block.times_ns[0]) < newest:
                if block.tier is Tier.FAST:
                    done += self._drain(wall_s)
                    self._restart(int(block.times_ns[-1]))
                stream.clear()
            stream.push(block)
            if block.tier is Tier.FAST:
                self._add_ticks(block.times_ns.tolist())
        done += self._drain(wall_s)
        self._forget()
        return tuple(done)

    def _stream_of(self, block: SampleBlock) -> Stream:
        """Return the stream that a block continues, a new one when there is none.

        Where a source was moved in with those of another stream of its tier (it was too dear to be read so often),
        the stream that it left behind ends.
        """
        for known in self._streams:  # the usual case
            if known.layout is block.layout:
                return known
        stream = next((stream for stream in self._streams if stream.takes(block)), None)
        if stream is None:
            stream = Stream(block)
            self._streams.append(stream)
        metrics = metrics_of(block.layout)
        for other in self._streams:
            if other is not stream and other.tier is block.tier and other.metrics <= metrics:
                other.until_ns = int(block.times_ns[0])
        return stream

    def _restart(self, now_ns: int) -> None:
        """Begin a new grid; samples of other tiers that lie in its future are of the old clock."""
        self._ticks, self._numbers, self._end = [], [], None
        for stream in self._streams:
            if (stream.newest_ns or 0) > now_ns + _PATIENCE_NS:
                stream.clear()

    def _add_ticks(self, times_ns: list[int]) -> None:
        if self._end is None:
            self._origin = times_ns[0]
            self._end = self._origin + self._length
        if self._ticks and times_ns[0] <= self._ticks[-1]:  # several fast sources
            times_ns = sorted({*self._ticks, *times_ns})
            self._ticks, self._numbers = [], []
        self._ticks += times_ns
        self._numbers += [self._number(time_ns) for time_ns in times_ns]

    def _number(self, time_ns: int) -> int:
        """Return which tick a sample belongs to: it is at most a quarter period early or three quarters late for it.

        Lateness is what really happens, earliness only comes from the origin having been late itself.
        """
        return (time_ns - self._origin + self._tick // 4) // self._tick

    def _drain(self, wall_s: float) -> list[Window]:
        done: list[Window] = []
        while self._end is not None and self._ticks and self._ticks[-1] >= self._end:
            end = self._end
            first, beyond = bisect_left(self._ticks, end - self._length), bisect_left(self._ticks, end)
            covered_ns = self._ticks[beyond]
            if (first == beyond and covered_ns > end) or covered_ns - end > _PATIENCE_NS:
                self._end += -(-(covered_ns - end) // self._stride) * self._stride
                continue
            done.append(self._window(end, wall_s - (self._ticks[-1] - end) / 1e9))
            self._end += self._stride
        return done

    def _window(self, end: int, wall_s: float) -> Window:
        start = end - self._length
        blocks = [stream.cut(start, end) for stream in sorted(self._streams, key=attrgetter("rank"))]
        window = Window(
            index=self._index,
            start_ns=start,
            end_ns=end,
            wall_s=round(wall_s, 3),
            blocks=tuple(block for block in blocks if block is not None),
            ticks_missed=self._missed(start, end),
        )
        self._index += 1
        return window

    def _missed(self, start: int, end: int) -> int:
        """Return how many ticks after *start*, up to *end*, did not happen."""
        first, last = self._number(start), self._number(end)
        low, high = bisect_right(self._numbers, first), bisect_right(self._numbers, last)
        return max(0, last - first - len(set(self._numbers[low:high])))

    def _forget(self) -> None:
        """Drop what no coming window can ask for."""
        if self._end is not None:
            # One tick more than the window: a late sample may belong to the tick at its start.
            gone = bisect_left(self._ticks, self._end - self._length - self._tick)
            del self._ticks[:gone], self._numbers[:gone]
        for stream in self._streams:
            oldest = (stream.newest_ns or 0) - 2 * _PATIENCE_NS
            if self._end is not None:
                start = self._end - self._length
                stream.forget(start, keep=2)
                oldest = max(oldest, min(start, self._end - CARRY_NS[stream.tier]))
            stream.forget(oldest, keep=0)
        if not all(map(len, self._streams)):
            self._streams = [stream for stream in self._streams if len(stream)]
