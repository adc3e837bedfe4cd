"""How a part of a recording is packed: half a minute of hundreds of columns in the space of a few. Pure, knows no file.

In a table of half a minute most of the bytes are not data: each column of Parquet has a footer, a page header and a
frame of zstd, some 230 bytes, also where its channel stands still. So a part has a row for each column of the table of
``recorded_table`` and these columns:

========= ====================================================================================================
column    its name, ``event`` once for each event
form      how its values were made whole numbers: ``1`` they are; ``/1e2`` they are hundredths, to be divided;
          ``*1e-2`` hundredths, to be multiplied, which differs in the last bit; ``bits`` these are the bits of
          doubles. Taken is the first that gives back every bit
steps     whole numbers: the first value, then differences (modulo 2^64), of the rows whose layout has the
          column; -2^63 is null. Of an event, the row where it stands; of ``tier`` 0 fast, 1 medium, 2 slow
event     JSON, null in all other rows
========= ====================================================================================================

Written as a byte-stream split the upper bytes of the steps are zeros, for which zstd wants nothing, and its lower ones
are coded by how often each occurs. ``python -m unveil.benchmarks.recording`` prints what that is worth.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.host.recorded_table import ChannelColumn, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

WHOLE = "1"
FORMS = (WHOLE, *(f"{form}{digits}" for digits in (2, 3, 6, 9) for form in ("/1e", "*1e-")))
BITS = "bits"

_EXACT = 2.0**53  # whole numbers up to this are exact as doubles
_NAN_BITS = np.float64("nan").view(np.int64)
_NULL = np.iinfo(np.int64).min
_TIERS = ("fast", "medium", "slow")  # by the numbers that stand in files
_NUMBERED = ("second", "block", "layout", "time_ns", "tier")  # columns that every part has, beside ``wall_s``


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Packed:
    """One row of a part: a column of the recording, or an event."""

    column: str
    form: str
    steps: NDArray[np.int64]
    event: str | None = None


def whole_numbers(values: NDArray[np.float64]) -> tuple[str, NDArray[np.int64]]:
    """Return the form in which each bit of *values* survives as a whole number, and the numbers; NaN is -2^63."""
    absent = np.isnan(values)
    bits = values.view(np.int64)
    if (bits[absent] == _NAN_BITS).all():
        found = values[~absent]
        for form in FORMS:
            whole = _tried(found, form)
            if whole is not None:
                numbers = np.full(len(values), _NULL)
                numbers[~absent] = whole
                return form, numbers
    return BITS, bits


def doubles(numbers: NDArray[np.int64], form: str) -> NDArray[np.float64]:
    """Return the values that ``whole_numbers`` was given.

    Raises:
        ValueError: there is no such form.
    """
    if form == BITS:
        return numbers.view(np.float64)
    if form not in FORMS:
        raise ValueError(f"no form of numbers: {form}")
    values = _scaled(numbers, form)
    values[numbers == _NULL] = np.nan
    return values


def pack(rows: Sequence[Row], columns: Mapping[str, ChannelColumn]) -> Iterator[Packed]:
    """Yield the rows of a part: what ``TableWriter.take`` returns, packed."""
    for name in _NUMBERED[:-1]:
        yield _packed(name, WHOLE, _with_nulls(getattr(row, name) for row in rows))
    yield _packed("tier", WHOLE, _with_nulls(row.tier and _TIERS.index(row.tier) for row in rows))
    yield _packed("wall_s", *whole_numbers(np.array([row.wall_s for row in rows], dtype=np.float64)))
    for index, row in enumerate(rows):
        if row.event is not None:
            yield Packed(column="event", form=WHOLE, steps=np.array([index]), event=row.event)
    for name, column in columns.items():
        yield _packed(name, *whole_numbers(column.values[column.present]))


def unpack(packed: Iterable[Packed]) -> tuple[list[Row], dict[str, ChannelColumn]]:
    """Return what ``pack`` was given.

    Raises:
        KeyError, ValueError, TypeError, IndexError: these are no rows that ``pack`` made.
    """
    events: dict[int, str] = {}
    lines: dict[str, Packed] = {}
    for line in packed:
        if line.event is not None:
            (row,) = line.steps.tolist()
            events[row] = line.event
        elif line.column in lines:
            raise ValueError(f"{line.column} is there twice")
        else:
            lines[line.column] = line
    walls = _values(lines.pop("wall_s"))
    if not events.keys() <= set(range(len(walls))):
        raise ValueError("an event stands in no row")
    fixed = {name: _numbers(lines.pop(name)) for name in _NUMBERED}
    numbers = {name: [None if number == _NULL else number for number in fixed[name].tolist()] for name in fixed}
    tiers: dict[int | None, str | None] = {None: None, **dict(enumerate(_TIERS))}
    rows = [
        Row(second, wall_s, tiers[tier], block, layout, time_ns, events.get(index))
        for index, (second, wall_s, tier, block, layout, time_ns) in enumerate(
            zip(
                numbers["second"], walls.tolist(), numbers["tier"], numbers["block"], numbers["layout"],
                numbers["time_ns"], strict=True,
            )
        )
    ]  # fmt: skip
    return rows, _channel_columns(fixed, events.values(), lines)


def _channel_columns(
    fixed: Mapping[str, NDArray[np.int64]], events: Iterable[str], channels: Mapping[str, Packed]
) -> dict[str, ChannelColumn]:
    layouts: dict[str, list[int]] = {}  # which have a column
    for event in map(json.loads, events):
        for name, _, _ in event.get("columns", ()):
            layouts.setdefault(name, []).append(event["layout"])
    if layouts.keys() != channels.keys():
        raise ValueError(f"columns without layout, or without values: {sorted(layouts.keys() ^ channels.keys())[:3]}")
    sampled = fixed["time_ns"] != _NULL
    masks: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    columns = {}
    for name, line in channels.items():
        having = tuple(layouts[name])
        if having not in masks:
            masks[having] = np.isin(fixed["layout"], having) & sampled
        present = masks[having]
        if len(line.steps) != np.count_nonzero(present):  # numpy would take one value for all
            raise ValueError(f"{len(line.steps)} values of {name}")
        values = np.zeros(len(sampled))
        values[present] = _values(line)
        columns[name] = ChannelColumn(values=values, present=present)
    return columns


def _numbers(line: Packed) -> NDArray[np.int64]:
    if line.form != WHOLE:
        raise ValueError(f"{line.column} of form {line.form}")
    return np.cumsum(line.steps)


def _values(line: Packed) -> NDArray[np.float64]:
    return doubles(np.cumsum(line.steps), line.form)


def _packed(column: str, form: str, numbers: NDArray[np.int64]) -> Packed:
    return Packed(column=column, form=form, steps=np.diff(numbers, prepend=np.int64(0)))


def _with_nulls(numbers: Iterable[Any]) -> NDArray[np.int64]:
    return np.array([_NULL if number is None else number for number in numbers], dtype=np.int64)


def _tried(found: NDArray[np.float64], form: str) -> NDArray[np.int64] | None:
    with np.errstate(over="ignore"):
        scaled = found if form == WHOLE else np.rint(found * 10.0 ** int(form[-1]))
    if not (np.abs(scaled) <= _EXACT).all():
        return None
    whole = scaled.astype(np.int64)
    same = _scaled(whole, form).view(np.int64) == found.view(np.int64)  # bits: -0.0 is no whole number
    return whole if same.all() else None


def _scaled(numbers: NDArray[np.int64], form: str) -> NDArray[np.float64]:
    values = numbers.astype(np.float64)
    if form == WHOLE:
        return values
    factor = float(form[1:])
    return values * factor if form[0] == "*" else values / factor
