"""Arrays on disk come back as they were, or not at all."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.engine.model_files import MAGIC, load_arrays, save_arrays
from unveil.errors import UnreadableError

if TYPE_CHECKING:
    from pathlib import Path

ARRAYS = {"names": np.frombuffer(b"cpu.busy", dtype=np.uint8), "scale": np.linspace(0, 1, 7), "n": np.array(3)}


def test_arrays_come_back_as_they_were_and_are_their_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    assert load_arrays(path) is None
    save_arrays(path, ARRAYS)
    found = load_arrays(path)
    assert found is not None
    assert {name: array.tobytes() for name, array in found.items()} == {n: a.tobytes() for n, a in ARRAYS.items()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["model.npz"], "no half-written file is left"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    path = tmp_path_factory.mktemp("files") / "model.npz"
    save_arrays(path, ARRAYS)
    return path, path.read_bytes()


@settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_flipped_bit_gives_arrays_back(written: tuple[Path, bytes], data: st.DataObject) -> None:
    path, whole = written
    damaged = bytearray(whole)
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    with pytest.raises(UnreadableError):
        load_arrays(path)


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_part_of_a_file_gives_arrays_back(written: tuple[Path, bytes], data: st.DataObject) -> None:
    path, whole = written
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(UnreadableError):
        load_arrays(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"notes of somebody", MAGIC, MAGIC + bytes(32), bytes(1000)])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(UnreadableError):
        load_arrays(path)


def test_a_folder_or_a_file_larger_than_any_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="cannot be read"):
        load_arrays(tmp_path)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(UnreadableError, match="larger"):
        load_arrays(large)


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pickle"):
        save_arrays(tmp_path / "model.npz", {"x": np.array([object()])})
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_arrays(path, ARRAYS)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="pickle"):
        save_arrays(path, {"x": np.array([object()])})
    assert path.read_bytes() == before
