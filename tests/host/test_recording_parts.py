"""The names of a recording's files."""

from __future__ import annotations

from pathlib import Path

from unveil.host.recording_parts import half_written, part_number, part_path, parts_of, writing_path


def test_parts_are_found_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "r[1]*.parquet"
    for number in (2, 10_000, 1, 9_999):
        part_path(path, number).touch()
    for other in (
        "r[1]*.parquet.part-x",
        "r[1]*.parquet.part-",
        "r[1]*.parquet.part-0003.writing",
        "r1.parquet.part-0004",
    ):
        (tmp_path / other).touch()
    assert [part_number(part) for part in parts_of(path)] == [1, 2, 9_999, 10_000]


def test_half_written_files_are_those_of_this_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    mine = {writing_path(path), writing_path(part_path(path, 3))}
    for file in (*mine, part_path(path, 1), tmp_path / "r.parquet2.writing"):
        file.touch()
    assert set(half_written(path)) == mine


def test_a_path_that_is_no_part_has_the_number_nought() -> None:
    assert part_number(Path("r.parquet")) == part_number(Path("r.parquet.part-\u0663")) == 0
