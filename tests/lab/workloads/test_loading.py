"""The data-loading job's shards are the same each time, and kept."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from unveil.lab.workloads import loading

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_shards_are_the_same_each_time_and_not_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "SHARDS", 2)
    monkeypatch.setattr(loading, "SHARD_BYTES", 1 << 16)
    paths = loading.shards(tmp_path / "one")
    contents = [path.read_bytes() for path in paths]
    assert contents == [path.read_bytes() for path in loading.shards(tmp_path / "other")]
    assert contents[0] != contents[1]
    assert [len(zlib.decompress(content)) for content in contents] == [1 << 16] * 2
    assert len(contents[0]) < 1 << 16, "there is something to decompress"
    paths[0].write_bytes(b"kept")
    assert loading.shards(tmp_path / "one")[0].read_bytes() == b"kept"
