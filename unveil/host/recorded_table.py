"""The table that a recording is: blocks of samples and facts as rows and columns, and back. Pure, knows no file.

A row is one sample of one tier; a column named ``str(channel)`` is one channel, null where the row's layout lacks it,
NaN where it is there and absent. Beside the channels stand

========= ====================================================================================================
second    number of the tick of the recording (blocks and facts that came together), from 0 without gaps
wall_s    wall clock of that tick, seconds since the epoch
tier      fast, medium or slow; null in a row that is no sample
block     number of the block a sample came in: boundaries are part of the recording
layout    number of the layout of the block
time_ns   CLOCK_MONOTONIC of the sample; null in the one row that stands for a block without samples
event     JSON, in rows that are no samples: ``{"facts": …}`` from now on, or ``{"layout": …}`` that follows
========= ====================================================================================================
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.host.fact_json import decode_facts, encode_facts
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from unveil.records.fact import FactTable

FIXED = ("second", "wall_s", "tier", "block", "layout", "time_ns", "event")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tick:
    """What came together in one second.

    Attributes:
        blocks: as they were recorded, in their order; blocks of one layout share one ``Layout`` object.
        facts: the table that is valid from this tick on, None while the one of before is.
    """

    blocks: tuple[SampleBlock, ...]
    facts: FactTable | None
    wall_s: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChannelColumn:
    """One channel over the rows of a table: *values* (float64) where *present*, null elsewhere."""

    values: NDArray[np.float64]
    present: NDArray[np.bool_]


@dataclass(slots=True)
class Row:
    """What stands beside the channels in one row; None is null."""

    second: int
    wall_s: float
    tier: str | None = None
    block: int | None = None
    layout: int | None = None
    time_ns: int | None = None
    event: str | None = None


class TableWriter:
    """Collects ticks as rows.

    Numbers go on from one table to the next; each table tells the layouts it uses, so that it stands for itself.

    Args:
        keep: which channels to record; all of them when None. Blocks keep their times even when no channel is left.
    """

    def __init__(self, keep: Callable[[Channel], bool] | None = None) -> None:
        self._keep = keep
        self._numbers: dict[Layout, int] = {}  # of layouts, by identity
        self._kept: dict[Layout, tuple[list[int], Layout]] = {}
        self._names: dict[Channel, str] = {}
        self._taken: set[str] = set(FIXED)
        self._second = self._block = self._next_layout = 0
        self._told: set[int] = set()
        self._rows: list[Row] = []
        self._blocks: list[tuple[int, SampleBlock]] = []  # the row where it begins, and the block

    def go_on_after(self, *, second: int, block: int, layout: int) -> None:
        """Begin numbering after these numbers, which stand in a recording already."""
        self._second, self._block, self._next_layout = second + 1, block + 1, layout + 1

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, blocks: Sequence[SampleBlock], facts: FactTable | None, wall_s: float) -> None:
        """Append a tick."""
        stamp = Row(self._second, wall_s)
        begin = len(self._rows)
        if facts is not None:
            self._rows.append(replace(stamp, event=_json({"facts": encode_facts(facts)})))
        for block in blocks:
            self._add_block(self._reduced(block), stamp)
        if len(self._rows) == begin:
            self._rows.append(stamp)
        self._second += 1

    def take(self) -> tuple[list[Row], dict[str, ChannelColumn]]:
        """Return the rows and channel columns collected so far, and begin a new table."""
        count = len(self._rows)
        columns: dict[str, ChannelColumn] = {}
        for begin, block in self._blocks:
            rows = slice(begin, begin + len(block.times_ns))
            for index, channel in enumerate(block.layout.channels):
                name = self._names[channel]
                if name not in columns:
                    columns[name] = ChannelColumn(values=np.zeros(count), present=np.zeros(count, dtype=bool))
                columns[name].values[rows] = block.values[:, index]
                columns[name].present[rows] = True
        taken = self._rows, columns
        self._rows, self._blocks, self._told = [], [], set()
        return taken

    def _add_block(self, block: SampleBlock, stamp: Row) -> None:
        number = self._numbers.get(block.layout)
        if number is None:
            number = self._numbers[block.layout] = self._next_layout
            self._next_layout += 1
        if number not in self._told:
            self._told.add(number)
            told = [
                [self._name(channel), channel.metric, [list(label) for label in channel.labels]]
                for channel in block.layout.channels
            ]
            self._rows.append(replace(stamp, event=_json({"layout": number, "columns": told})))
        sample = replace(stamp, tier=str(block.tier), block=self._block, layout=number)
        self._block += 1
        self._blocks.append((len(self._rows), block))
        if len(block.times_ns) == 0:
            self._rows.append(sample)
        self._rows.extend(replace(sample, time_ns=int(time_ns)) for time_ns in block.times_ns)

    def _reduced(self, block: SampleBlock) -> SampleBlock:
        if self._keep is None:
            return block
        kept = self._kept.get(block.layout)
        if kept is None:
            columns = [index for index, channel in enumerate(block.layout.channels) if self._keep(channel)]
            kept = columns, Layout(tuple(block.layout.channels[index] for index in columns))
            self._kept[block.layout] = kept
        return replace(block, layout=kept[1], values=block.values[:, kept[0]])

    def _name(self, channel: Channel) -> str:
        """Return the column of a channel: ``str(channel)``, made unique where hostile labels make two look alike."""
        name = self._names.get(channel)
        if name is None:
            plain = name = str(channel).encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
            again = 1
            while name in self._taken:
                again += 1
                name = f"{plain} ({again})"
            self._taken.add(name)
            self._names[channel] = name
        return name


class TableReader:
    """Turns tables back into ticks; keeps the layouts from one table to the next."""

    def __init__(self) -> None:
        self._layouts: dict[int, tuple[Layout, tuple[str, ...]]] = {}

    def ticks(self, rows: Mapping[str, NDArray[Any]], channel: Callable[[str], NDArray[np.float64]]) -> Iterator[Tick]:
        """Yield the ticks of a table, which holds whole ticks only.

        Args:
            rows: the fixed columns; null is -1 in *block* and *layout*, None in *tier* and *event*, and *timed* tells
                where *time_ns* is not null.
            channel: returns the values of a channel's column by its name, NaN where absent.

        Raises:
            KeyError, ValueError, TypeError, IndexError: the table is not one that ``TableWriter`` made.
        """
        events = [(row, json.loads(text)) for row, text in enumerate(rows["event"]) if text is not None]
        for _, event in events:
            if "layout" in event:
                self._learn(event)
        facts = {row: decode_facts(event["facts"]) for row, event in events if "facts" in event}
        matrices = self._matrices(rows, channel)
        edges = _edges(rows["second"])
        for begin, end in pairwise(edges):
            yield Tick(
                blocks=tuple(_blocks(rows, matrices, begin, end)),
                facts=next((facts[row] for row in range(begin, end) if row in facts), None),
                wall_s=float(rows["wall_s"][begin]),
            )

    def _learn(self, event: Mapping[str, Any]) -> None:
        number = int(event["layout"])
        if number not in self._layouts:
            names = tuple(name for name, _, _ in event["columns"])
            channels = tuple(
                Channel(metric, tuple((key, value) for key, value in labels)) for _, metric, labels in event["columns"]
            )
            self._layouts[number] = Layout(channels), names

    def _matrices(
        self, rows: Mapping[str, NDArray[Any]], channel: Callable[[str], NDArray[np.float64]]
    ) -> dict[int, tuple[Layout, NDArray[np.float64], NDArray[np.int64]]]:
        """Return for each layout of the table: itself, its rows as one matrix, and where each row went."""
        matrices = {}
        for number in np.unique(rows["layout"][rows["layout"] >= 0]):
            layout, names = self._layouts[int(number)]
            chosen = np.flatnonzero(rows["layout"] == number)
            matrix = np.empty((len(chosen), len(names)))
            for column, name in enumerate(names):
                matrix[:, column] = channel(name)[chosen]
            where = np.full(len(rows["layout"]), -1)
            where[chosen] = np.arange(len(chosen))
            matrices[int(number)] = layout, matrix, where
        return matrices


def _blocks(
    rows: Mapping[str, NDArray[Any]],
    matrices: Mapping[int, tuple[Layout, NDArray[np.float64], NDArray[np.int64]]],
    begin: int,
    end: int,
) -> Iterator[SampleBlock]:
    edges = _edges(rows["block"][begin:end]) + begin
    for first, last in pairwise(edges):
        if rows["block"][first] < 0:
            continue
        layout, matrix, where = matrices[int(rows["layout"][first])]
        count = int(last - first) if rows["timed"][first] else 0
        start = int(where[first])
        yield SampleBlock(
            tier=Tier(rows["tier"][first]),
            layout=layout,
            times_ns=rows["time_ns"][first : first + count].astype(np.int64),
            values=matrix[start : start + count],
        )


def _edges(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return where runs of equal numbers begin, and the end."""
    if not len(numbers):
        return np.zeros(1, dtype=np.int64)
    return np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [len(numbers)]]).astype(np.int64)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))  # ASCII: lone surrogates of hostile names survive as escapes
