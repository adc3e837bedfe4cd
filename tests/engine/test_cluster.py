"""A backtest on a cluster: a real scheduler and real workers on this machine give what one process gives."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from unveil.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LABELS = "apiVersion: unveil/v1\nkind: RecordingLabels\nintervals: [{from: 0, label: some_dirt}]\n"


@pytest.fixture
def labelled(recording: Path, tmp_path: Path) -> Path:
    """Give a folder of three recordings with labels."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name in ("one", "other", "third"):
        shutil.copy(recording, folder / f"{name}.parquet")
        (folder / f"{name}.labels.yml").write_text(LABELS)
    return folder


def dask(tmp_path: Path, *words: str) -> subprocess.Popen[bytes]:
    with (tmp_path / f"{words[0]}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words], cwd=tmp_path, stdout=log, stderr=log, env={**os.environ}
        )


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """Start a scheduler and two workers, as an operator does."""
    pytest.importorskip("distributed", exc_type=ImportError)
    started = [dask(tmp_path, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", "scheduler.json")]
    file = tmp_path / "scheduler.json"
    try:
        end = time.monotonic() + 60
        while not file.exists() or not file.read_text().endswith("}"):
            assert time.monotonic() < end, (tmp_path / "scheduler.log").read_text()
            time.sleep(0.2)
        address = json.loads(file.read_text())["address"]
        started += [
            dask(tmp_path, "worker", address, "--nthreads", "1", "--nworkers", "2", "--no-dashboard",
                 "--local-directory", str(tmp_path / "scratch"))
        ]  # fmt: skip
        end = time.monotonic() + 60
        while (tmp_path / "worker.log").read_text().count("Registered to") < 2:
            assert time.monotonic() < end, (tmp_path / "worker.log").read_text()
            time.sleep(0.2)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(30)


@pytest.mark.slow
def test_a_cluster_gives_what_one_process_gives(
    scheduler: str, labelled: Path, kb: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(labelled)
    command = ["kb", "backtest", ".", "--kb", str(kb), "--json"]
    assert main([*command, "--jobs", "1"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main([*command, "--scheduler", scheduler]) == 0
    assert json.loads(capsys.readouterr().out) == alone
    assert alone["recordings"] == ["one.parquet", "other.parquet", "third.parquet"]
    (labelled / "other.labels.yml").unlink()
    assert main([*command, "--scheduler", scheduler]) == 2
    assert "other.parquet has no labels beside it" in capsys.readouterr().err


def test_without_dask_the_command_that_installs_it_is_told(
    labelled: Path, kb: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["kb", "backtest", str(labelled), "--kb", str(kb), "--scheduler", "tcp://127.0.0.1:8786"]) == 3
    said = capsys.readouterr().err
    assert "python -m pip install 'unveil[dask]'" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_an_address_where_nobody_answers_is_bad_input(
    labelled: Path, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", exc_type=ImportError)
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        assert main(["kb", "backtest", str(labelled), "--kb", str(kb), "--scheduler", address]) == 2
        assert f"no scheduler answers at {address}" in capsys.readouterr().err
