"""The child that fits: it writes a whole model or says in one line why not."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.detection.model import TrainingSet, trained_model
from unveil.engine.model_files import load_arrays, save_arrays

if TYPE_CHECKING:
    from pathlib import Path


def child(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "unveil.engine.training_child", *arguments],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip


@pytest.mark.slow
def test_a_training_set_becomes_a_model_the_same_for_the_same_seed(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).normal(size=(120, 6)).astype(np.float32)
    names = tuple(f"memory.f{number}.mean" for number in range(6))
    given = TrainingSet(names=names, residuals=noise, floor=np.full(6, 0.01), regime=3)
    save_arrays(tmp_path / "set", given.arrays())
    for target in ("one", "two"):
        ended = child(str(tmp_path / "set"), str(tmp_path / target), "5")
        assert ended.returncode == 0, ended.stderr
    one, two = load_arrays(tmp_path / "one"), load_arrays(tmp_path / "two")
    assert one is not None
    assert two is not None
    assert {name: array.tobytes() for name, array in one.items()} == {n: a.tobytes() for n, a in two.items()}
    model = trained_model(one)
    assert (model.names, model.windows, model.regime) == (names, 120, 3)


def test_no_set_a_damaged_one_and_one_of_something_else_are_each_one_line(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"unveil arrays 1\n" + bytes(100))
    save_arrays(tmp_path / "other", {"format": np.array(1)})
    for name, why in (("absent", "no training set"), ("damaged", "checksum"), ("other", "no training set")):
        ended = child(str(tmp_path / name), str(tmp_path / "model"))
        assert ended.returncode == 2
        assert why in ended.stderr
        assert ended.stderr.count("\n") == 1, ended.stderr
        assert not (tmp_path / "model").exists()
