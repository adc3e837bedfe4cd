"""Stream: the samples of one source of one tier, as far back as a window may still ask for them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np

from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.windows.stretch import Stretch

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How old, at the end of a window, a sample from before the window may be that still goes into it. A source that is
# read once in five seconds has its say through it; a source that stopped must not look alive for longer than this.
CARRY_NS = {Tier.FAST: 0, Tier.MEDIUM: 6_000_000_000, Tier.SLOW: 30_000_000_000}
_ORDER = {tier: index for index, tier in enumerate(Tier)}


class Stream:
    """Samples of one tier whose layouts follow each other, in order of time.

    Attributes:
        layout, metrics: of the newest samples.
        rank: where the stream stands among all, whichever came first: by tier, then by name.
        until_ns: from when on another stream has taken all its metrics over.
    """

    __slots__ = ("_carry_ns", "_columns", "_stretches", "_times", "layout", "metrics", "rank", "tier", "until_ns")

    def __init__(self, first: SampleBlock) -> None:
        self.tier = first.tier
        self.until_ns: int | None = None
        self._carry_ns = CARRY_NS[first.tier]
        self._times: list[int] = []  # of all stretches; numpy would take longer to find one among so few
        self._stretches: list[Stretch] = []  # one for each layout
        self._columns: dict[tuple[Layout, Layout], NDArray[np.intp]] = {}
        self._go_over(first.layout)

    @property
    def newest_ns(self) -> int | None:
        """Return the time of the newest sample, None when there is none."""
        return self._times[-1] if self._times else None

    def __len__(self) -> int:
        """Return how many samples it holds."""
        return len(self._times)

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
        if block.layout is not self.layout and block.layout.channels != self.layout.channels:
            self._go_over(block.layout)  # else the same shape again, e.g. from a recording
        times = block.times_ns.tolist()
        repeated = int(bool(self._times) and times[0] == self._times[-1])
        if repeated == len(times):
            return
        if not self._stretches or self._stretches[-1].layout is not self.layout:
            self._stretches.append(Stretch(self.layout))
        self._stretches[-1].append(block.times_ns[repeated:], block.values[repeated:])
        self._times += times[repeated:]

    def clear(self) -> None:
        """Drop all samples."""
        self._times.clear()
        self._stretches.clear()

    def cut(self, start_ns: int, end_ns: int) -> SampleBlock | None:
        """Return the samples of start <= time <= end in the layout of the last of them, None when there are none.

        Where fewer than two lie in there, up to two of the newest older ones are taken along (see ``CARRY_NS``).
        """
        times = self._times
        stop = bisect_right(times, end_ns)
        if not stop or (self.until_ns is not None and end_ns >= self.until_ns):
            return None
        allowed = bisect_left(times, min(start_ns, end_ns - self._carry_ns))
        begin = max(allowed, min(bisect_left(times, start_ns), stop - 2))
        if begin >= stop:
            return None
        if len(self._stretches) == 1:  # mostly
            return self._stretches[0].block(self.tier, begin, stop)
        parts: list[SampleBlock] = []
        offset = 0
        for stretch in self._stretches:
            low, high = max(begin - offset, 0), min(stop - offset, len(stretch))
            if low < high:
                parts.append(stretch.block(self.tier, low, high))
            offset += len(stretch)
        layout = parts[-1].layout
        return SampleBlock(
            tier=self.tier,
            layout=layout,
            times_ns=np.concatenate([part.times_ns for part in parts]),
            values=np.concatenate([self._remapped(part.layout, layout, part.values) for part in parts]),
        )

    def forget(self, before_ns: int, *, keep: int) -> None:
        """Drop the samples older than a time, except the *keep* newest of them."""
        if not self._times or self._times[0] >= before_ns:  # mostly
            return
        surplus = bisect_left(self._times, before_ns) - keep
        if surplus <= 0:
            return
        del self._times[:surplus]
        while surplus > 0:
            dropped = min(surplus, len(self._stretches[0]))
            if dropped == len(self._stretches[0]):
                del self._stretches[0]
            else:
                self._stretches[0].drop(dropped)
            surplus -= dropped
        if self._columns:
            live = {stretch.layout for stretch in self._stretches}
            self._columns = {pair: each for pair, each in self._columns.items() if live.issuperset(pair)}

    def _go_over(self, layout: Layout) -> None:
        self.layout, self.metrics = layout, metrics_of(layout)
        self.rank = _ORDER[self.tier], min(self.metrics)

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
