"""The tables of a recording as Arrow's: wide as ``recorded_table`` describes, or packed as ``packing`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.host.packing import WHOLE, Packed, pack, unpack, whole_numbers
from unveil.host.recorded_table import FIXED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from unveil.host.recorded_table import ChannelColumn, Row


def wide_table(rows: Sequence[Row], columns: Mapping[str, ChannelColumn]) -> Any:
    """Return a table with a column for each channel: whole numbers where all of its values are, else doubles."""
    import pyarrow as pa

    types = (pa.int32(), pa.float64(), pa.string(), pa.int32(), pa.int32(), pa.int64(), pa.string())
    arrays = {
        name: pa.array([getattr(row, name) for row in rows], kind) for name, kind in zip(FIXED, types, strict=True)
    }
    return pa.table(arrays | {name: _wide_column(column) for name, column in columns.items()})


def _wide_column(column: ChannelColumn) -> Any:
    import pyarrow as pa

    values, present = column.values, column.present
    if whole_numbers(values[present])[0] != WHOLE:
        return pa.array(values, mask=~present)
    absent = np.isnan(values)
    return pa.array(np.where(absent, 0, values).astype(np.int64), mask=absent | ~present)


def packed_table(rows: Sequence[Row], columns: Mapping[str, ChannelColumn]) -> Any:
    """Return a table with a row for each column."""
    import pyarrow as pa

    lines = list(pack(rows, columns))
    ends = np.cumsum([0, *(len(line.steps) for line in lines)])
    steps = pa.array(np.concatenate([line.steps for line in lines]))
    return pa.table(
        {
            "column": pa.array([line.column for line in lines], pa.string()),
            "form": pa.array([line.form for line in lines], pa.string()),
            "steps": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), steps),
            "event": pa.array([line.event for line in lines], pa.string()),
        }
    )


def unpacked_table(table: Any) -> Any:
    """Return the wide table that was packed.

    Raises:
        KeyError, ValueError, TypeError, IndexError: nothing was.
    """
    steps = table.column("steps").combine_chunks()
    edges = steps.offsets.to_numpy()
    numbers = steps.values.to_numpy()
    texts = (table.column(name).to_pylist() for name in ("column", "form", "event"))
    return wide_table(
        *unpack(
            Packed(column=column, form=form, steps=numbers[edges[row] : edges[row + 1]], event=event)
            for row, (column, form, event) in enumerate(zip(*texts, strict=True))
        )
    )


def fitted(table: Any, schema: Any) -> Any:
    """Return a table with the columns of a schema: missing ones null, whole numbers as doubles where it wants them."""
    import pyarrow as pa

    here = set(table.column_names)
    columns = [
        table.column(field.name).cast(field.type) if field.name in here else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def float_values(column: Any) -> NDArray[np.float64]:
    """Return a channel's column as doubles, NaN where it is null (a row whose layout lacks it, or an absent value)."""
    import pyarrow as pa

    if pa.types.is_floating(column.type):
        return np.asarray(column.fill_null(float("nan")).to_numpy(), dtype=np.float64)
    values = np.asarray(column.fill_null(0).to_numpy()).astype(np.float64)
    values[column.is_null().to_numpy()] = np.nan
    return values


def wide_options(schema: Any) -> dict[str, Any]:
    """Return how to write a wide table."""
    import pyarrow as pa

    whole = [field.name for field in schema if pa.types.is_integer(field.type)]
    return {
        "compression_level": 9,
        "use_dictionary": ["tier"],
        "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED"),
    }


def packed_options() -> dict[str, Any]:
    """Return how to write a packed table."""
    return {
        "compression_level": 9,
        "use_dictionary": ["form"],
        "column_encoding": {"steps.list.element": "BYTE_STREAM_SPLIT"},
    }
