"""Knowledge bases to change, and a piece of the demo's recording."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.host.recording import RecordingWriter
from unveil.host.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable

DEMO = Path(__file__).parents[2] / "unveil/demo/recording.parquet"


@pytest.fixture
def one_kb(tmp_path: Path, build_kb: Callable[..., Path]) -> Path:
    """Give a fresh one of the fingerprint that the demo's recording shows."""
    return build_kb(tmp_path / "kb")


@pytest.fixture
def kb(few: Path, tmp_path: Path) -> Path:
    """Give a copy of the few that may be changed."""
    return Path(shutil.copytree(few, tmp_path / "kb"))


@pytest.fixture(scope="session")
def piece(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the demo's recording from 100 s to 130 s, without labels; its fault begins 10 s later."""
    path = tmp_path_factory.mktemp("piece") / "piece.parquet"
    replay = Replay(DEMO)
    with closing(RecordingWriter(path, {})) as writer:
        for number, tick in enumerate(replay):
            if tick.facts is not None:
                writer.write_facts(tick.facts)
            if 100 <= number < 130:
                writer.write(tick.blocks, wall_s=tick.wall_s)
    return path
