"""Slider: samples in, windows out. The grid of windows is a matter of sample times alone, never of when they came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.records.sample import Tier
from unveil.records.window import Window
from unveil.windows.stream import CARRY_NS, Stream, metrics_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

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
        self._ticks: NDArray[np.int64] = np.empty(0, dtype=np.int64)
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
            if newest is not None and block.times_ns[0] < newest:
                if block.tier is Tier.FAST:
                    done += self._drain(wall_s)
                    self._restart(int(block.times_ns[-1]))
                stream.clear()
            stream.push(block)
            if block.tier is Tier.FAST:
                self._add_ticks(block.times_ns)
        done += self._drain(wall_s)
        self._forget()
        return tuple(done)

    def _stream_of(self, block: SampleBlock) -> Stream:
        """Return the stream that a block continues, a new one when there is none.

        Where a source was moved in with those of another stream of its tier (it was too dear to be read so often),
        the stream that it left behind ends.
        """
        stream = next((stream for stream in self._streams if stream.takes(block)), None)
        if stream is not None and stream.layout is block.layout:
            return stream
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
        self._ticks, self._end = self._ticks[:0], None
        for stream in self._streams:
            if (stream.newest_ns or 0) > now_ns + _PATIENCE_NS:
                stream.clear()

    def _add_ticks(self, times_ns: NDArray[np.int64]) -> None:
        if self._end is None:
            self._origin = int(times_ns[0])
            self._end = self._origin + self._length
        ordered = not len(self._ticks) or times_ns[0] > self._ticks[-1]
        self._ticks = np.concatenate([self._ticks, times_ns])
        if not ordered:  # several fast sources
            self._ticks = np.unique(self._ticks)

    def _drain(self, wall_s: float) -> list[Window]:
        done: list[Window] = []
        while self._end is not None and len(self._ticks) and self._ticks[-1] >= self._end:
            end = self._end
            first, beyond = np.searchsorted(self._ticks, (end - self._length, end), side="left")
            covered_ns = int(self._ticks[beyond])
            if (first == beyond and covered_ns > end) or covered_ns - end > _PATIENCE_NS:
                self._end += -(-(covered_ns - end) // self._stride) * self._stride
                continue
            done.append(self._window(end, wall_s - (int(self._ticks[-1]) - end) / 1e9))
            self._end += self._stride
        return done

    def _window(self, end: int, wall_s: float) -> Window:
        start = end - self._length
        blocks = (stream.cut(start, end) for stream in sorted(self._streams, key=lambda stream: stream.rank))
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
        """Return how many ticks after *start*, up to *end*, did not happen.

        A sample belongs to the tick it is at most a quarter period early or three quarters late for: lateness is
        what really happens, earliness only comes from the origin having been late itself.
        """
        slack = self._tick // 4
        numbers = (self._ticks - self._origin + slack) // self._tick
        first, last = ((time - self._origin + slack) // self._tick for time in (start, end))
        low, high = np.searchsorted(numbers, (first, last), side="right")
        return max(0, int(last - first) - len(np.unique(numbers[low:high])))

    def _forget(self) -> None:
        """Drop what no coming window can ask for."""
        if self._end is not None:
            # One tick more than the window: a late sample may belong to the tick at its start.
            self._ticks = self._ticks[np.searchsorted(self._ticks, self._end - self._length - self._tick) :]
        for stream in self._streams:
            if (newest := stream.newest_ns) is None:
                continue
            if self._end is not None:
                start = self._end - self._length
                stream.forget(start, keep=2)
                stream.forget(min(start, self._end - CARRY_NS[stream.tier]), keep=0)
            stream.forget(newest - 2 * _PATIENCE_NS, keep=0)
        self._streams = [stream for stream in self._streams if stream.newest_ns is not None]
