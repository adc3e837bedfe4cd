"""Parts of a recording: ordinary tables with a row for each column, read as the recording that they will be."""

from __future__ import annotations

import os
from pathlib import Path
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
    from collections.abc import Callable, Iterable, Iterator

LAYOUT = Layout((Channel("cpu.context_switches"), Channel("cpu.user"), Channel("cpu.psi_some")))


class Killed(BaseException):
    """What stands for SIGKILL: nothing in the writer answers it."""


def write(
    path: Path, seconds: Iterable[int], *, resume: bool = False, part_s: int = 30, broken: float = 0.0
) -> RecordingWriter:
    writer = RecordingWriter(path, {"host": "h1"}, resume=resume, part_s=part_s)
    for number in seconds:
        ticks = number * 10 + np.arange(10)
        values = np.column_stack([1e9 + ticks + broken, ticks / 100, np.where(ticks % 4, ticks / 1e6, np.nan)])
        times = (ticks * 100_000_000).astype(np.int64)
        block = SampleBlock(tier=Tier.FAST, layout=LAYOUT, times_ns=times, values=values)
        writer.write((block,), wall_s=1e9 + number / 3)
    return writer


def test_a_part_has_a_row_for_each_column(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(3)).flush()
    (part,) = parts_of(path)
    lines = {row["column"]: row for row in pq.read_table(part).to_pylist()}
    assert lines["cpu.context_switches"]["steps"] == [10**9] + [1] * 29
    assert (lines["cpu.user"]["form"], lines["cpu.user"]["steps"]) == ("/1e2", [0] + [1] * 29)
    assert lines["second"]["form"] == "1"
    assert lines["event"]["event"].startswith('{"layout":')
    written = pq.ParquetFile(part).metadata.row_group(0)
    columns = {column["path_in_schema"]: column for column in written.to_dict()["columns"]}
    assert "BYTE_STREAM_SPLIT" in columns["steps.list.element"]["encodings"]


def test_a_part_and_the_finished_file_read_alike(tmp_path: Path, recorded) -> None:
    path = tmp_path / "r.parquet"
    writer = write(path, range(3))
    writer.flush()
    part = recorded(path)
    writer.close()
    assert not parts_of(path)
    assert recorded(path) == part
    table = pq.read_table(path)
    assert [str(table.schema.field(str(channel)).type) for channel in LAYOUT.channels] == ["int64", "double", "double"]


def test_whole_numbers_in_one_part_and_not_in_another_are_doubles_at_the_end(tmp_path: Path, recorded) -> None:
    path = tmp_path / "r.parquet"
    writer = write(path, range(2))
    writer.flush()
    write(path, range(2, 4), resume=True, broken=0.5).flush()
    parts = recorded(path)
    write(path, range(4, 5), resume=True).close()
    assert recorded(path)[:4] == parts
    assert str(pq.read_schema(path).field("cpu.context_switches").type) == "double"


def test_wide_parts_of_an_earlier_version_are_read_and_gone_on_with(tmp_path: Path, recorded) -> None:
    path, one = tmp_path / "r.parquet", tmp_path / "one.parquet"
    for number in (1, 2):
        write(one, range(2 * number - 2, 2 * number)).close()
        one.replace(part_path(path, number))
    early = recorded(path)
    assert len(early) == 4
    writer = write(path, range(4, 6), resume=True)
    writer.flush()
    parts = recorded(path)
    assert parts[:4] == early
    writer.close()
    assert recorded(path) == parts
    assert [tick.wall_s for tick in read_recording(path).ticks()] == [1e9 + number / 3 for number in range(6)]


def test_damage_in_a_part_is_said_and_never_a_traceback_or_another_value(tmp_path: Path, share_refused) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(3)).flush()
    (part,) = parts_of(path)
    assert share_refused(path, part, 13) > 0.5


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


def test_a_writer_killed_before_any_of_its_changes_to_files_loses_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded
) -> None:
    whole, left, begun = tmp_path / "whole.parquet", 0, 0
    write(whole, range(5)).close()
    expected = recorded(whole)

    def mortal(change: Callable) -> Callable:
        def changed(*arguments: object, **keywords: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return change(*arguments, **keywords)

        return changed

    def noted(seconds: range) -> Iterator[int]:
        nonlocal begun
        for number in seconds:
            begun = number
            yield number

    for changes in range(1000):
        path = tmp_path / str(changes) / "r.parquet"
        path.parent.mkdir()
        left, begun = changes, 0
        with monkeypatch.context() as patch:
            for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink"), (Path, "open")):
                patch.setattr(owner, name, mortal(getattr(owner, name)))
            try:
                write(path, noted(range(3)), part_s=2, resume=True).close()
                write(path, noted(range(3, 4)), part_s=2, resume=True).close()  # after a finished file
            except Killed:
                pass
            else:
                break
        seen = recorded(path) if path.exists() or parts_of(path) else []
        assert seen == expected[: len(seen)]
        assert len(seen) >= begun - 1, "two seconds are a part: the last and the one before"
        write(path, range(len(seen), 5), part_s=2, resume=True).close()
        assert [file.name for file in path.parent.iterdir()] == ["r.parquet"]
        assert recorded(path) == expected
    assert changes > 20


@pytest.mark.parametrize("event", ["[" * 100_000, '{"layout":1e999,"columns":[]}', "[]", '{"facts":3}', "{}", "{"])
def test_an_event_that_is_none_is_damage(tmp_path: Path, event: str) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(1)).flush()
    (part,) = parts_of(path)
    table = pq.read_table(part)
    lines = [line | ({"event": event} if line["event"] else {}) for line in table.to_pylist()]
    pq.write_table(type(table).from_pylist(lines, table.schema), part)
    with pytest.raises(UnreadableError):
        list(read_recording(path).ticks())


@pytest.mark.parametrize("wide", [False, True])
def test_a_part_that_is_damaged_while_it_is_recorded_is_said_at_the_end_and_stays(tmp_path: Path, wide: bool) -> None:
    path = tmp_path / "r.parquet"
    writer = write(path, range(1))
    writer.flush()
    if wide:  # as a finished file is, that a recording goes on after
        writer.close()
        writer = write(path, range(0), resume=True)
    (part,) = parts_of(path)
    whole = part.read_bytes()
    part.write_bytes(whole[:40] + b"damage" + whole[46:])
    with pytest.raises(UnreadableError, match="part-0001 is no recording, or is damaged"):
        writer.close()
    assert not path.exists()
    part.write_bytes(whole)
    write(path, range(1, 2), resume=True).close()
    assert len(list(read_recording(path).ticks())) == 2


def test_a_long_recording_has_several_groups_of_rows_and_each_row_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded
) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(7), part_s=1)
    parts = recorded(path)
    monkeypatch.setattr("unveil.host.recording._ROWS_OF_GROUP", 22)
    write(path, range(0), resume=True).close()
    assert [pq.ParquetFile(path).metadata.row_group(group).num_rows for group in range(3)] == [22, 22, 22]
    assert recorded(path) == parts
    assert len(parts) == 7


def test_numbers_go_on_after_a_part_in_which_nothing_was_sampled(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    writer = write(path, range(2))
    writer.flush()
    writer.write((), wall_s=1e9 + 1)
    writer.flush()
    other = Layout((Channel("cpu.psi_some"), Channel("cpu.user")))
    block = SampleBlock(tier=Tier.SLOW, layout=other, times_ns=np.arange(1), values=np.array([[0.25, 7.0]]))
    late = RecordingWriter(path, {"note": "late"}, resume=True)
    late.write((block,), wall_s=1e9 + 2)
    late.close()
    recording = read_recording(path)
    assert recording.metadata == {"host": "h1", "note": "late"}
    blocks = [block for tick in recording.ticks() for block in tick.blocks]
    assert [block.layout.channels for block in blocks] == [LAYOUT.channels, LAYOUT.channels, other.channels]
    assert blocks[2].values.tolist() == [[0.25, 7.0]]


def test_a_format_of_the_future_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(1)).close()
    table = pq.read_table(path)
    future = table.replace_schema_metadata({"unveil.recording": '{"format":3,"metadata":{}}'})
    pq.write_table(future, path)
    with pytest.raises(UnreadableError, match="format 3, this version reads 1 and 2") as caught:
        read_recording(path)
    assert "newer" in str(caught.value.hint)
