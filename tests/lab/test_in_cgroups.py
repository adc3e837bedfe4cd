"""Faults in cgroups, of both versions, laid on plain files and taken away again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.lab import in_cgroups
from unveil.lab.changes import Changes, ImpossibleError
from unveil.lab.faults import FAULTS
from unveil.lab.place import Place, container

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.lab.uses import Uses


def test_where_there_is_no_controller_a_fault_is_impossible(tmp_path: Path, uses: Uses) -> None:
    nowhere = Place(folders={"net_cls": tmp_path}, scratch=tmp_path, changes=Changes(tmp_path / "journal"))
    for inject in (in_cgroups.cpu_quota, in_cgroups.memory_limit):
        with pytest.raises(ImpossibleError, match=r"no \w+ controller"), inject(nowhere, uses):
            raise AssertionError("it was injected")


@pytest.mark.parametrize(
    ("fault", "version", "file", "inside", "after"),
    [
        ("cpu_quota", 2, "cpu.max", "22500 100000", "max 100000"),
        ("cpu_quota", 1, "cpu.cfs_quota_us", "22500", "-1"),
        ("cpu_quota", 1, "cpu.cfs_period_us", "100000", "50000"),
        ("memory_limit", 2, "memory.high", f"{(100 + 30 + 24) << 20}", "max"),
        ("memory_limit", 1, "memory.limit_in_bytes", f"{(100 + 30 + 24) << 20}", "-1"),
        ("memory_limit", 1, "memory.oom_control", "1", "0"),
    ],
)
def test_a_container_is_bounded_by_what_it_used_and_free_again(
    fault: str, version: int, file: str, inside: str, after: str, build: Callable[[int], Place], uses: Uses
) -> None:
    place = build(version)
    path, idle = (place.scratch / container(side) / file for side in "ab")
    untouched = idle.read_text()
    with suppress(KeyboardInterrupt), FAULTS[fault].inject(place, uses):
        assert path.read_text() == inside
        assert idle.read_text() == untouched, "nothing runs there"
        raise KeyboardInterrupt
    assert path.read_text() == after


def test_block_io_is_limited_on_the_side_that_moves_any(
    build: Callable[[int], Place], uses: Uses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_cgroups, "whole_disk", lambda _folder: "254:0")
    place = build(2)
    with in_cgroups.io_throttle(place, replace(uses, written={"a": 0.0, "b": 1e6})):
        assert (place.scratch / container("b") / "io.max").read_text() == "254:0 wbps=400000"
        assert not (place.scratch / container("a") / "io.max").exists()
    assert (place.scratch / container("b") / "io.max").read_text() == "254:0 wbps=max"


def test_a_folder_on_no_disk_has_none() -> None:
    with pytest.raises(ImpossibleError, match="on no block device"):
        in_cgroups.whole_disk(Path("/proc"))


def test_where_there_is_no_cache_none_can_be_taken(build: Callable[[int], Place], uses: Uses) -> None:
    nothing = replace(uses, cached={"a": 1 << 20, "b": 0})
    with pytest.raises(ImpossibleError, match="page cache"), in_cgroups.memory_limit(build(1), nothing):
        raise AssertionError("it was injected")
