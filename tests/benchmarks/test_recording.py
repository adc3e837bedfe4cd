"""The benchmark of recordings: what it says of a minute of one that is shipped."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from unveil.benchmarks import recording
from unveil.host.recording import RecordingWriter
from unveil.host.replay import Replay

DEMO = Path(__file__).parents[2] / "unveil/demo/recording.parquet"


def some_seconds(path: Path, seconds: int) -> Path:
    with closing(RecordingWriter(path)) as writer:
        for tick in islice(Replay(DEMO), seconds):
            if tick.facts is not None:
                writer.write_facts(tick.facts)
            writer.write(tick.blocks, wall_s=tick.wall_s)
    return path


def test_a_recording_is_written_once_more_and_every_bit_comes_back(tmp_path: Path) -> None:
    found = recording.written(some_seconds(tmp_path / "some.parquet", 40), "some", tmp_path)
    assert found.same
    assert found.seconds == 40
    assert found.parts < found.wide / 2, "what parts are packed for"
    assert found.parts + found.finished == pytest.approx(sum(found.pieces.values()), rel=0.01)


@pytest.mark.parametrize(("wanted", "code", "told"), [(1e9, 0, "within"), (1.0, 1, "OVER")])
def test_more_than_wanted_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wanted: float,
    code: int,
    told: str,
) -> None:
    path = some_seconds(tmp_path / "some.parquet", 2)
    monkeypatch.setattr(recording, "WANTED", wanted)
    assert recording.main([str(path), "--pieces"]) == code
    said = capsys.readouterr().out
    assert said.splitlines()[-1].startswith(told)
    assert "parts: steps" in said
