"""The benchmark that holds told step times against true ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.benchmarks.progress import Score, main, of_amounts, of_recording, recordings, report
from unveil.host.recording import RecordingWriter
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TICK_NS = 100_000_000
BEGAN_S = 1_800_000_000.0


def recorded(folder: Path, step_s: float, said_s: float) -> Path:
    """Write the recording of a job that steps, and what it said of itself; return its path."""
    layout = Layout((Channel("network.tx_bytes", (("nic", "eth0"),)),))
    moments = np.arange(900) * 0.1
    sent = np.cumsum(np.where((moments % step_s) / step_s < 0.3, 1e6, 1e4))
    path = folder / "training.parquet"
    writer = RecordingWriter(path)
    for second in range(90):
        rows = slice(10 * second, 10 * second + 10)
        times = (np.arange(10) + 10 * second + 1) * TICK_NS
        block = SampleBlock(tier=Tier.FAST, layout=layout, times_ns=times, values=sent[rows, None])
        writer.write((block,), wall_s=BEGAN_S + second)
    writer.close()
    units = (f'{{"at": {BEGAN_S + at:.3f}, "phase": "train", "s": {said_s}}}\n' for at in np.arange(0, 90, said_s))
    path.with_suffix(".units").write_text("".join(units))
    return path


def test_a_step_time_is_held_against_what_the_workload_said(tmp_path: Path) -> None:
    told = of_recording(recorded(tmp_path, 0.73, 0.73))
    assert told.windows > 80
    assert told.right == told.told > 30
    assert told.holds
    (tmp_path / "wrong").mkdir()
    wrong = of_recording(recorded(tmp_path / "wrong", 0.73, 0.8))
    assert (wrong.told, wrong.right, wrong.holds) == (told.told, 0, False)


def test_a_host_without_steps_for_which_one_is_told_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    regular = of_amounts("regular", np.where(np.arange(900) % 9 < 3, 1e6, 1e4).tolist())
    assert (regular.right, regular.holds) == (0, False)
    assert report((regular, Score("idle", windows=9, reason="quiet"))) == 1
    said = capsys.readouterr().out
    assert "0.900 s" in said
    assert "quiet" in said


def test_all_recordings_of_a_folder_are_meant(tmp_path: Path) -> None:
    for name in ("b.parquet", "deep/a.parquet", "b.units"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    alone = tmp_path / "alone.parquet"
    assert recordings([alone, tmp_path]) == (alone, tmp_path / "b.parquet", tmp_path / "deep" / "a.parquet")


def test_stepping_work_is_summed_up_apart_from_what_has_no_rhythm(capsys: pytest.CaptureFixture[str]) -> None:
    steps = Score("training", windows=100, told=80, right=78, true_s=0.2)
    assert report((steps, Score("serving", windows=50))) == 0
    *_, stepping, others = (line.split() for line in capsys.readouterr().out.splitlines() if line.strip())
    assert tuple(stepping[5:8]) == ("80", "(80%)", "97.5%")
    assert "0" in others


def test_a_path_that_is_no_recording_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "gone.parquet")]) == 2
    assert "gone.parquet" in capsys.readouterr().err
