"""Stream: the samples of one source of one tier, as far back as a window may still ask for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How old, at the end of a window, a sample from before the window may be that still goes into it. A source that is
# read once in five seconds has its say through it; a source that stopped must not look alive for longer than this.
CARRY_NS = {Tier.FAST: 0, Tier.MEDIUM: 6_000_000_000, Tier.SLOW: 30_000_000_000}


class Stream:
    """Blocks of one tier whose layouts follow each other, in order of time."""

    __slots__ = ("_blocks", "_columns", "layout", "metrics", "tier", "until_ns")

    def __init__(self, first: SampleBlock) -> None:
        self.tier = first.tier
        self.layout = first.layout
        self.metrics = metrics_of(first.layout)
        self.until_ns: int | None = None  # from when on another stream has taken all its metrics over
        self._blocks: list[SampleBlock] = []
        self._columns: dict[tuple[Layout, Layout], NDArray[np.intp]] = {}

    @property
    def rank(self) -> tuple[int, str]:
        """Return where the stream stands among all, whichever came first: by tier, then by name."""
        return list(Tier).index(self.tier), min(self.metrics)

    @property
    def newest_ns(self) -> int | None:
        """Return the time of the newest sample, None when there is none."""
        return int(self._blocks[-1].times_ns[-1]) if self._blocks else None

    def takes(self, block: SampleBlock) -> bool:
        """Return whether a block continues this stream.

        A metric has one source, so two layouts of a tier that share a metric are one source that changed shape (a
        veth came, a cgroup went), and two that share none are two sources (the sampler and the child that asks the
        GPUs), whose columns must not push each other out.
        """
        if block.tier is not self.tier:
            return False
        return block.layout is self.layout or not self.metrics.isdisjoint(metrics_of(block.layout))

    def push(self, block: SampleBlock) -> None:
        """Append a block that starts later than the newest sample; a repeated first sample is left out."""
        self.until_ns = None
        if block.layout is not self.layout:
            if block.layout.channels == self.layout.channels:  # the same shape again, e.g. from a recording
                block = replace(block, layout=self.layout)
            else:
                self.layout, self.metrics = block.layout, metrics_of(block.layout)
        if self._blocks and block.times_ns[0] == self._blocks[-1].times_ns[-1]:
            block = _rows(block, 1, len(block.times_ns))
        if len(block.times_ns):
            self._blocks.append(block)

    def clear(self) -> None:
        """Drop all samples."""
        self._blocks.clear()

    def cut(self, start_ns: int, end_ns: int) -> SampleBlock | None:
        """Return the samples of start <= time <= end in the layout of the last of them, None when there are none.

        Where fewer than two lie in there, up to two of the newest older ones are taken along (see ``CARRY_NS``).
        """
        blocks = [block for block in self._blocks if block.times_ns[0] <= end_ns]
        if not blocks or (self.until_ns is not None and end_ns >= self.until_ns):
            return None
        times = np.concatenate([block.times_ns for block in blocks])
        stop = int(np.searchsorted(times, end_ns, side="right"))
        oldest_ns = min(start_ns, end_ns - CARRY_NS[self.tier])
        inside, allowed = np.searchsorted(times, (start_ns, oldest_ns), side="left")
        begin = max(int(allowed), min(int(inside), stop - 2))
        if begin >= stop:
            return None
        layout = blocks[-1].layout
        parts: list[NDArray[np.float64]] = []
        offset = 0
        for block in blocks:
            count = len(block.times_ns)
            low, high = max(begin - offset, 0), min(stop - offset, count)
            if low < high:
                parts.append(self._remapped(block.layout, layout, block.values[low:high]))
            offset += count
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return SampleBlock(tier=self.tier, layout=layout, times_ns=times[begin:stop], values=values)

    def forget(self, before_ns: int, *, keep: int) -> None:
        """Drop the samples older than a time, except the *keep* newest of them."""
        older = sum(int(np.searchsorted(block.times_ns, before_ns, side="left")) for block in self._blocks)
        surplus = older - keep
        while surplus > 0:
            count = len(self._blocks[0].times_ns)
            if count <= surplus:
                del self._blocks[0]
            else:  # copied, so that the rest of a big block does not hold on to all of it
                self._blocks[0] = _rows(self._blocks[0], surplus, count, copy=True)
            surplus -= count
        if self._columns:
            live = {block.layout for block in self._blocks}
            self._columns = {pair: each for pair, each in self._columns.items() if live.issuperset(pair)}

    def _remapped(self, old: Layout, new: Layout, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return samples in another layout: channels that it lacks vanish, those that it adds were absent."""
        if old is new:
            return values
        columns = self._columns.get((old, new))
        if columns is None:
            absent = len(old.channels)
            columns = np.array([old.column.get(channel, absent) for channel in new.channels], dtype=np.intp)
            self._columns[old, new] = columns
        padded = np.concatenate([values, np.full((len(values), 1), np.nan)], axis=1)
        return padded[:, columns]


def metrics_of(layout: Layout) -> frozenset[str]:
    """Return the metrics that a layout has channels of."""
    return frozenset(channel.metric for channel in layout.channels)


def _rows(block: SampleBlock, low: int, high: int, *, copy: bool = False) -> SampleBlock:
    times, values = block.times_ns[low:high], block.values[low:high]
    return replace(block, times_ns=times.copy() if copy else times, values=values.copy() if copy else values)
