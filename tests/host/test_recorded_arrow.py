"""Parts of a recording: ordinary tables with a row for each column, read as the recording that they will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from unveil.errors import UnreadableError
from unveil.host.recording import RecordingWriter, read_recording
from unveil.host.recording_parts import part_path, parts_of
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from pathlib import Path

LAYOUT = Layout((Channel("cpu.context_switches"), Channel("cpu.user"), Channel("cpu.psi_some")))


def write(path: Path, seconds: range, *, resume: bool = False, broken: float = 0.0) -> RecordingWriter:
    writer = RecordingWriter(path, {"host": "h1"}, resume=resume)
    for number in seconds:
        ticks = number * 10 + np.arange(10)
        values = np.column_stack([1e9 + ticks + broken, ticks / 100, np.where(ticks % 4, ticks / 1e6, np.nan)])
        times = (ticks * 100_000_000).astype(np.int64)
        block = SampleBlock(tier=Tier.FAST, layout=LAYOUT, times_ns=times, values=values)
        writer.write((block,), wall_s=1e9 + number / 3)
    return writer


def seen(path: Path) -> list[tuple[float, bytes, bytes]]:
    """Return wall clock, times and values of each second."""
    return [
        (tick.wall_s, block.times_ns.tobytes(), block.values.tobytes())
        for tick in read_recording(path).ticks()
        for block in tick.blocks
    ]


def test_a_part_has_a_row_for_each_column(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(3)).flush()
    (part,) = parts_of(path)
    lines = {row["column"]: row for row in pq.read_table(part).to_pylist()}
    assert lines["cpu.context_switches"]["steps"] == [10**9] + [1] * 29
    assert (lines["cpu.user"]["form"], lines["cpu.user"]["steps"]) == ("/1e2", [0] + [1] * 29)
    assert lines["second"]["form"] == "1"
    assert lines["event"]["event"].startswith('{"layout":')


def test_a_part_and_the_finished_file_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    writer = write(path, range(3))
    writer.flush()
    part = seen(path)
    writer.close()
    assert not parts_of(path)
    assert seen(path) == part
    table = pq.read_table(path)
    assert [str(table.schema.field(str(channel)).type) for channel in LAYOUT.channels] == ["int64", "double", "double"]


def test_whole_numbers_in_one_part_and_not_in_another_are_doubles_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    writer = write(path, range(2))
    writer.flush()
    write(path, range(2, 4), resume=True, broken=0.5).flush()
    parts = seen(path)
    write(path, range(4, 5), resume=True).close()
    assert seen(path)[:4] == parts
    assert str(pq.read_schema(path).field("cpu.context_switches").type) == "double"


def test_wide_parts_of_an_earlier_version_are_read_and_gone_on_with(tmp_path: Path) -> None:
    path, one = tmp_path / "r.parquet", tmp_path / "one.parquet"
    for number in (1, 2):
        write(one, range(2 * number - 2, 2 * number)).close()
        one.replace(part_path(path, number))
    early = seen(path)
    assert len(early) == 4
    writer = write(path, range(4, 6), resume=True)
    writer.flush()
    parts = seen(path)
    assert parts[:4] == early
    writer.close()
    assert seen(path) == parts
    assert [tick.wall_s for tick in read_recording(path).ticks()] == [1e9 + number / 3 for number in range(6)]


def test_damage_in_a_part_is_said_and_never_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(3)).flush()
    (part,) = parts_of(path)
    whole = part.read_bytes()
    refused = 0
    for offset in range(4, len(whole), 23):
        damaged = bytearray(whole)
        damaged[offset] ^= 0x55
        part.write_bytes(damaged)
        try:
            list(read_recording(path).ticks())
        except UnreadableError:
            refused += 1
    assert refused > len(range(4, len(whole), 23)) // 2


@pytest.mark.parametrize("column", ["second", "cpu.user"])
def test_a_part_that_lacks_a_column_or_has_too_much_of_one_is_damaged(tmp_path: Path, column: str) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(3)).flush()
    (part,) = parts_of(path)
    table = pq.read_table(part)
    lines = table.to_pylist()
    for line in lines:
        line["steps"] += [1] * (line["column"] == column)
    pq.write_table(type(table).from_pylist(lines, table.schema), part)
    with pytest.raises(UnreadableError):
        list(read_recording(path).ticks())


def test_a_format_of_the_future_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(1)).close()
    table = pq.read_table(path)
    future = table.replace_schema_metadata({"unveil.recording": '{"format":3,"metadata":{}}'})
    pq.write_table(future, path)
    with pytest.raises(UnreadableError, match="format 3, this version reads 1 and 2") as caught:
        read_recording(path)
    assert "newer" in str(caught.value.hint)
