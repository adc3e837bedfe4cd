"""Recordings: samples and facts in a Parquet file, written so that a crash loses the last half minute at most.

The table is that of ``recorded_table``. Encodings were measured on a busy host (500 moving channels, 3 minutes,
10 Hz): plain doubles with zstd 515 kB, dictionaries 803 kB, byte-stream split 534 kB; whole numbers as INT64 with
DELTA_BINARY_PACKED bring it to 413 kB. So a column is INT64 (null where absent) when every value of it is a whole
number that a double holds exactly, and DOUBLE otherwise; each bit of each value survives, NaN included.

A Parquet file without its footer is nothing. So a recording grows as parts, ``NAME.part-0001`` and on, each a whole
file that appears by rename; ``close`` merges them into NAME and removes them. Parts that a crash left are read as the
recording they are, and a writer with *resume* goes on after them. Parts are packed as ``packing`` tells: as the wide
table that NAME is they would be six times as large. Those of earlier versions were, and are read, too.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.errors import BadInputError, UnreadableError, UnveilError
from unveil.host.fact_json import decode_facts, encode_facts
from unveil.host.packing import WHOLE
from unveil.host.recorded_arrow import (
    fitted,
    float_values,
    packed_options,
    packed_table,
    unpacked_table,
    wide_options,
    wide_table,
)
from unveil.host.recorded_table import FIXED, TableReader, TableWriter, Tick
from unveil.host.recording_parts import half_written, part_number, part_path, parts_of, writing_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from unveil.records.fact import FactTable
    from unveil.records.metric import Channel
    from unveil.records.sample import SampleBlock

_WIDE, _PACKED = 1, 2  # formats
_KEY = b"unveil.recording"
_ROWS_OF_GROUP = 8192  # about ten minutes: a group has a footer for each of hundreds of channels


class RecordingWriter:
    """Writes a recording.

    Args:
        path: of the finished file.
        metadata: what a reader should know (host, kernel, command); plain JSON values.
        channels: which channels to keep; all when None.
        resume: go on after a recording, finished or not, of the same path.
        part_s: seconds that a part holds, which is what a crash may cost.

    Raises:
        BadInputError: the path is there, or parts of it are, and *resume* was not asked for; or its folder is not.
        UnreadableError: what is there and should be resumed is no recording.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        metadata: Mapping[str, Any] | None = None,
        *,
        channels: Callable[[Channel], bool] | None = None,
        resume: bool = False,
        part_s: int = 30,
    ) -> None:
        self._path = Path(path)
        self._metadata = dict(metadata or {})
        self._table = TableWriter(channels)
        self._part_s = part_s
        self._ticks = 0
        self._began_s = 0.0  # wall clock of the first second that is not on disk
        self._facts: FactTable | None = None  # to go with the next tick
        self._facts_seen: FactTable | None = None
        self._facts_json: dict[str, Any] | None = None
        self._closed = False
        if not os.access(self._path.parent, os.W_OK | os.X_OK):
            raise BadInputError(f"the folder {self._path.parent} is not there, or not writable")
        parts = parts_of(self._path)
        if (self._path.exists() or parts) and not resume:
            raise BadInputError(
                f"{self._path if self._path.exists() else parts[0]} is there already",
                hint="resume it, remove it, or choose another name",
            )
        if resume:
            self._go_on(parts)

    def write(self, blocks: Sequence[SampleBlock], *, wall_s: float) -> None:
        """Append what came together in one second, with the facts of ``write_facts`` since the last call.

        Raises:
            UnveilError: the part that fell due cannot be written (disk full).
        """
        self._table.add(blocks, self._facts, wall_s)
        self._facts = None
        if self._ticks == 0:
            self._began_s = wall_s
        self._ticks += 1
        if (
            self._ticks >= self._part_s or wall_s - self._began_s >= self._part_s
        ):  # seconds may take long on a busy host
            self.flush()

    def write_facts(self, table: FactTable) -> None:
        """Record a table of facts, valid from the next ``write`` on. One that says what the last one said is not."""
        if table is self._facts_seen:  # the usual case, every second
            return
        self._facts_seen = table
        encoded = encode_facts(table)
        if encoded != self._facts_json:
            self._facts, self._facts_json = table, encoded

    def flush(self) -> None:
        """Put what was written so far on disk, as a part of its own.

        Raises:
            UnveilError: the disk does not take it.
        """
        if not len(self._table):
            return
        rows, columns = self._table.take()
        self._ticks = 0
        parts = parts_of(self._path)
        number = part_number(parts[-1]) + 1 if parts else 1
        part = part_path(self._path, number)
        with _disk(part):
            _write(part, [packed_table(rows, columns)], self._metadata, format_=_PACKED)

    def close(self) -> None:
        """Merge the parts into the finished file. Safe to call twice.

        Raises:
            UnveilError: the disk does not take it, or a part is damaged; the parts stay.
        """
        if self._closed:
            return
        self.flush()
        parts = parts_of(self._path)
        with _disk(self._path):
            _write(self._path, _merged(parts), self._metadata)
            for part in parts:
                part.unlink()
        self._closed = True

    def _go_on(self, parts: tuple[Path, ...]) -> None:
        finished = self._path.exists()
        last = {"second": -1, "block": -1, "layout": -1}
        for file in (self._path,) if finished else parts:  # before anything is moved: what is damaged stays as it is
            with _readable(file):
                opened = _open(file)
                self._metadata = _metadata(opened, file) | self._metadata
                for table in _tables(opened, file, columns=list(last)):
                    for name, column in zip(last, table.columns, strict=True):
                        last[name] = max(last[name], *(column.drop_null().to_pylist() or [-1]))
        for left in half_written(self._path):
            left.unlink()
        if finished:  # its parts, if any, were merged into it. It becomes the first part
            for part in parts:
                part.unlink()
            self._path.replace(part_path(self._path, 1))
        self._table.go_on_after(**last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording on disk.

    Attributes:
        metadata: as the writer was given it.
        files: the finished file, or the parts that a crash left.
        complete: whether it was finished.
    """

    path: Path
    metadata: Mapping[str, Any]
    files: tuple[Path, ...]
    complete: bool

    def ticks(self) -> Iterator[Tick]:
        """Yield second after second, as recorded.

        Raises:
            UnreadableError: a file is damaged.
        """
        reader = TableReader()
        for path in self.files:
            with _readable(path):
                for table in _tables(_open(path), path):
                    yield from _ticks(reader, table)

    def facts(self) -> Iterator[tuple[float, FactTable]]:
        """Yield each table of facts with the wall clock from which on it was valid, without reading the samples.

        Raises:
            UnreadableError: a file is damaged.
        """
        for path in self.files:
            with _readable(path):
                for table in _tables(_open(path), path, columns=["wall_s", "event"]):
                    yield from _facts(table)


def read_recording(path: str | os.PathLike[str]) -> Recording:
    """Open a recording, finished or left by a crash.

    Raises:
        UnreadableError: it is not there, no recording, or damaged.
    """
    where = Path(path)
    files = (where,) if where.exists() else parts_of(where)
    if not files:
        raise UnreadableError(f"there is no recording {where}")
    for file in files:
        with _readable(file):
            metadata = _metadata(_open(file), file)
    return Recording(path=where, metadata=metadata, files=files, complete=files[0] == where)


# ---- files --------------------------------------------------------------------------------------------------------


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn whatever a damaged or foreign file makes go wrong into one error."""
    import pyarrow as pa

    try:
        yield
    except (
        pa.ArrowException, OSError, LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError,
    ) as error:  # fmt: skip
        why = str(error).partition("\n")[0] or type(error).__name__
        raise UnreadableError(
            f"{path} is no recording, or is damaged: {why}", hint="unveil record makes recordings"
        ) from error


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnveilError(f"{path} cannot be written: {error}", hint="what was flushed before is safe") from error


def _open(path: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(path, page_checksum_verification=True)


def _metadata(file: Any, path: Path) -> dict[str, Any]:
    return dict(_held(file, path)["metadata"])


def _held(file: Any, path: Path) -> dict[str, Any]:
    held = (file.metadata.metadata or {}).get(_KEY)
    if held is None:
        raise UnreadableError(f"{path} is a Parquet file, but no recording", hint="unveil record makes recordings")
    value: dict[str, Any] = json.loads(held)
    if value["format"] not in (_WIDE, _PACKED):
        raise UnreadableError(
            f"{path} has format {value['format']}, this version reads {_WIDE} and {_PACKED}",
            hint="read it with the version of unveil that wrote it, or a newer one",
        )
    return value


def _tables(file: Any, path: Path, *, columns: list[str] | None = None) -> Iterator[Any]:
    """Yield the row groups of a file as wide tables, with some columns or all."""
    if _held(file, path)["format"] == _PACKED:
        table = unpacked_table(file.read())
        yield table if columns is None else table.select(columns)
    else:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, columns=columns)


def _write(
    path: Path, tables: Sequence[Any] | Iterator[Any], metadata: Mapping[str, Any], *, format_: int = _WIDE
) -> None:
    """Write tables of one schema as row groups; the file appears whole and on disk, or not at all."""
    import pyarrow.parquet as pq

    writing = writing_path(path)
    tables = iter(tables)
    first = next(tables)
    options = packed_options() if format_ == _PACKED else wide_options(first.schema)
    held = json.dumps({"format": format_, "metadata": dict(metadata)}, separators=(",", ":"))
    with writing.open("wb") as sink:
        with pq.ParquetWriter(
            sink, first.schema, compression="zstd", write_statistics=False, write_page_checksum=True,
            store_schema=False, **options,
        ) as out:  # fmt: skip
            out.add_key_value_metadata({_KEY: held.encode()})
            out.write_table(first)
            for table in tables:
                out.write_table(table)
        sink.flush()
        os.fsync(sink.fileno())
    writing.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _merged(parts: Sequence[Path]) -> Iterator[Any]:
    """Yield the row groups of the finished file: the parts' columns in one schema, many parts in one group."""
    import pyarrow as pa

    if not parts:
        yield wide_table([], {})
        return
    kinds: dict[str, Any] = {field.name: field.type for field in wide_table([], {}).schema}
    for part in parts:
        with _readable(part):
            for name, kind in _kinds(_open(part), part):
                if kinds.setdefault(name, kind) != kind:
                    kinds[name] = pa.float64()  # whole numbers in one part and not in another
    schema = pa.schema(kinds.items())
    waiting: list[Any] = []
    for part in parts:
        with _readable(part):
            for table in _tables(_open(part), part):
                waiting.append(fitted(table, schema))
                if sum(len(one) for one in waiting) >= _ROWS_OF_GROUP:
                    yield pa.concat_tables(waiting).combine_chunks()
                    waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _kinds(file: Any, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the channels of a part with the types that they have in its wide table."""
    import pyarrow as pa

    if _held(file, path)["format"] == _PACKED:
        table = file.read(columns=["column", "form"])
        for name, form in zip(*(column.to_pylist() for column in table.columns), strict=True):
            if name not in FIXED:
                yield name, pa.int64() if form == WHOLE else pa.float64()
    else:
        for field in file.schema_arrow:
            if field.name not in FIXED:
                yield field.name, field.type


def _ticks(reader: TableReader, table: Any) -> Iterator[Tick]:
    rows: dict[str, NDArray[Any]] = {
        name: table.column(name).fill_null(-1).to_numpy() for name in ("second", "block", "layout", "time_ns")
    }
    rows["wall_s"] = table.column("wall_s").to_numpy()
    rows["timed"] = table.column("time_ns").is_valid().to_numpy()
    for name in ("tier", "event"):
        rows[name] = np.array(table.column(name).to_pylist(), dtype=object)
    return reader.ticks(rows, lambda name: float_values(table.column(name)))


def _facts(table: Any) -> Iterator[tuple[float, FactTable]]:
    for wall_s, text in zip(table.column("wall_s").to_pylist(), table.column("event").to_pylist(), strict=True):
        if text is not None and "facts" in (event := json.loads(text)):
            yield wall_s, decode_facts(event["facts"])
