"""Decoder: the rows that a pace has read, into blocks of samples.

All rows go through one batch. When a text among them looks different (a CPU went offline, a veth came), the rows are
looked at one by one: those before keep their layout, and from that row on the new one holds, so that no number is
taken for another one's.
"""

from __future__ import annotations

from time import thread_time_ns
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unveil.host.sparing import Sparing
from unveil.records.sample import Layout, SampleBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from unveil.host.active_source import ActiveSource
    from unveil.records.metric import Channel
    from unveil.records.sample import Tier


class Row(NamedTuple):
    """What was read for one sample: the texts, None where there was none, and values that come from no text."""

    time_ns: int
    texts: list[bytes | None]
    extra: tuple[float, ...] = ()


class Decoder:
    """Parses rows of the files that some sources have now.

    Attributes:
        layout: of the newest samples.
    """

    def __init__(
        self, tier: Tier, sources: Sequence[ActiveSource], extra: tuple[Channel, ...], layout: Layout | None = None
    ) -> None:
        """Make a decoder.

        Args:
            extra: channels of the values that each row brings along; they stand behind those of the texts.
            layout: the one before, which is kept if it still holds.
        """
        self._tier = tier
        self._extra = extra
        self._sources = tuple(sources)
        self._files = [(source, file) for source in sources for file in source.files]
        self._cuts = [(place, file.feed.cut) for place, (_, file) in enumerate(self._files) if file.feed.cut]
        self._shapes = [file.shape for _, file in self._files]
        self.layout = layout or Layout(extra)
        self._plan()

    def decode(self, rows: Sequence[Row]) -> list[SampleBlock]:
        """Return the samples of rows, oldest first; a block for each layout they had. Empty without channels."""
        before = thread_time_ns()
        for place, cut in self._cuts:
            for row in rows:
                if (text := row.texts[place]) is not None:
                    row.texts[place] = cut(text)
        blocks = self._decode(rows)
        cost = (thread_time_ns() - before) / len(rows)
        for source, share in self._shares:
            source.parse_ns = cost * share
        return [block for block in blocks if block.layout.channels]

    def _decode(self, rows: Sequence[Row]) -> list[SampleBlock]:
        if not any(self._renamed(place, rows[-1].texts[place]) for place in self._names):
            values = self._values(rows)
            if values is not None:
                return [self._block(rows, values)]
        blocks: list[SampleBlock] = []
        start = 0
        renewed: frozenset[Channel] = frozenset()
        for index, row in enumerate(rows):
            unlike = [
                place
                for place, (shape, text) in enumerate(zip(self._shapes, row.texts, strict=True))
                if text is not None and (not shape.fits(text) or self._renamed(place, text))
            ]
            if not unlike:
                continue
            blocks += self._run(rows[start:index], renewed)
            renewed = self._learn(row, unlike)
            start = index
        return blocks + self._run(rows[start:], renewed)

    def _renamed(self, place: int, text: bytes | None) -> bool:
        """Tell whether a text has other names than its shape, though it may fit it: of names numbers are compared."""
        names = self._files[place][1].feed.names
        return names is not None and text is not None and names(text) != self._names[place]

    def _run(self, rows: Sequence[Row], renewed: frozenset[Channel]) -> list[SampleBlock]:
        """Return the block of rows that all fit; channels whose device was exchanged skip its first sample."""
        values = self._values(rows) if rows else None
        if values is None:
            return []
        if renewed:
            values[0, [column for column, channel in enumerate(self.layout.channels) if channel in renewed]] = np.nan
        return [self._block(rows, values)]

    def _learn(self, row: Row, places: list[int]) -> frozenset[Channel]:
        """Take the shapes of texts that look different; return the channels whose device is another one now."""
        renewed: set[Channel] = set()
        for place in places:
            source, file = self._files[place]
            text = row.texts[place]
            if text is None:
                continue
            before = thread_time_ns()
            was = {reading.channel: reading.identity for reading in self._shapes[place].readings}
            self._shapes[place] = file.learn(text)
            source.learnt_ns += thread_time_ns() - before
            for reading in file.shape.readings:
                if was.get(reading.channel, reading.identity) != reading.identity:
                    renewed.add(reading.channel)
        self._plan()
        return frozenset(renewed)

    def _plan(self) -> None:
        self._batch = Sparing(self._shapes)
        feeds = [file.feed for _, file in self._files]
        shapes = enumerate(zip(feeds, self._shapes, strict=True))
        self._names = {place: feed.names(shape.text) for place, (feed, shape) in shapes if feed.names is not None}
        whole = self._batch.whole
        counts = {source: sum(file.shape.count for file in source.files) for source in self._sources}
        self._shares = [(source, count / max(1, whole.count)) for source, count in counts.items() if count]
        channels = whole.channels + self._extra
        if channels != self.layout.channels:
            self.layout = Layout(channels)

    def _values(self, rows: Sequence[Row]) -> NDArray[np.float64] | None:
        """Return the values of rows, NaN where a text is missing; None unless every text fits its shape."""
        missing: list[tuple[int, int]] = []
        texts: list[list[bytes]] = []
        for index, row in enumerate(rows):
            there = [text for text in row.texts if text is not None]
            if len(there) < len(row.texts):
                missing += [(index, place) for place, text in enumerate(row.texts) if text is None]
                full = zip(self._shapes, row.texts, strict=True)
                there = [shape.text if text is None else text for shape, text in full]
            texts.append(there)
        values = self._batch.decode(texts)
        if values is None:
            return None
        for index, place in missing:
            first, last = self._batch.whole.columns[place]
            values[index, first:last] = np.nan
        if self._extra:
            values = np.concatenate([values, np.array([row.extra for row in rows])], axis=1)
        return values

    def _block(self, rows: Sequence[Row], values: NDArray[np.float64]) -> SampleBlock:
        times = np.array([row.time_ns for row in rows], np.int64)
        return SampleBlock(tier=self._tier, layout=self.layout, times_ns=times, values=values)
