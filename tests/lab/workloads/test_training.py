"""What a training job reads, fills and writes; tests/lab/test_lab.py records a workload that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.lab.workloads import training

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_data_set_is_made_once_and_again_when_it_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "DATA_MB", 1)
    path = tmp_path / "dataset.bin"
    assert training.data_set(path) == path.stat().st_size == 1 << 20
    content = path.read_bytes()
    training.data_set(path)
    assert path.read_bytes() == content
    path.write_bytes(content[:-1])
    training.data_set(path)
    assert path.stat().st_size == 1 << 20
    assert [each.name for each in tmp_path.iterdir()] == ["dataset.bin"]


def test_an_arena_is_fresh_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with training.arena(1) as memory:
        assert len(memory) == 1 << 20
        assert memory[:4096] == bytes(4096)
        memory[::4096] = b"\x01" * 256


def test_a_checkpoint_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "CHECKPOINT_MB", 2)
    training.checkpoint(tmp_path / "checkpoint.bin")
    assert (tmp_path / "checkpoint.bin").stat().st_size == 2 << 20
