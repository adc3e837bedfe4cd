"""`unveil kb backtest` on the recording that is shipped: a real fault, found in its time and nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from unveil.cli.kb_backtest import draw_against
from unveil.cli.kb_open import usable_knowledge
from unveil.cli.main import main
from unveil.engine import last_backtest
from unveil.host.replay import Replay
from unveil.knowledge.backtest import BacktestReport, Score

DEMO = Path(__file__).parents[2] / "unveil/demo/recording.parquet"
NAME = "reduced_huge_page_coverage"
EXPECTATIONS = f"""\
apiVersion: unveil/v1
kind: BacktestExpectations
expectations:
  - {{recording: "recording*", fingerprint: {NAME}, exactly: 1, first_within: 15s}}
  - {{fingerprint: dirty_writeback_stall, exactly: 0}}
"""


@pytest.mark.slow  # `make test` replays it, too: `unveil demo` in tests/docs
def test_all_that_is_shipped_finds_the_fault_of_the_demo_in_its_time_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expect = tmp_path / "expectations.yml"
    expect.write_text(EXPECTATIONS)
    assert main(["kb", "backtest", str(DEMO), "--expect", str(expect), "--unexpected", "fail", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    score = next(each for each in told["scores"] if each["fingerprint"] == NAME)
    assert (score["intervals"], score["found"], score["fires"], score["false_fires"]) == (1, 1, 1, 0)
    assert 3 <= score["first_s"][0] <= 15
    assert score["hit_rate"] > 0.9
    assert 0.3 < score["agreement"] < 1
    assert not score["contamination"]  # None where nothing alarms in healthy time
    assert (score["false_per_day"], score["false_low"]) == (0, 0)
    assert score["false_high"] == pytest.approx(3.689 * 86400 / told["healthy_s"], rel=1e-3)
    assert told["confusion"] == {NAME: {NAME: 1}}
    assert told["missed"] == told["unexpected"] == told["unmet"] == []
    (action,) = told["actions"]["recording.parquet"]
    assert (action["remediation"], action["outcome"]) == ("enable_huge_pages", "asks")


def test_the_labels_of_the_demo_are_what_its_maker_wrote_into_it() -> None:
    note = str(Replay(DEMO).metadata["note"])
    assert "After 110 s transparent huge pages are turned off" in note
    assert "after 150 s they are allowed again" in note
    assert "{from: 110, to: 150, label: reduced_huge_page_coverage" in DEMO.with_suffix(".labels.yml").read_text()


def test_what_is_missed_false_or_not_as_expected_is_a_finding(
    few: Path, piece: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(piece, tmp_path)
    label(tmp_path / piece.name, "{from: 0, to: 10, label: healthy}", "{from: 10, label: dirty_writeback_stall}")
    state = tmp_path / "state"
    state.mkdir()
    assert main(["kb", "backtest", str(tmp_path / piece.name), "--kb", str(few), "--state-dir", str(state)]) == 1
    kept = last_backtest.read(state)
    assert (kept[NAME]["intervals"], kept[NAME]["false_fires"] + kept[NAME]["other_fires"]) == (0, 1)
    assert {each.name: each.revision for each in usable_knowledge(few).fingerprints}[NAME] == kept[NAME]["revision"]
    said = capsys.readouterr().out
    assert "missed: piece.parquet: dirty_writeback_stall from 10 s" in said
    assert f"unexpected: piece.parquet: {NAME} on cgroup:/training at " in said
    assert "in the time of dirty_writeback_stall" in said


def test_a_table_of_nothing_is_left_out(
    few: Path, piece: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(piece, tmp_path)
    label(tmp_path / piece.name, "{from: 0, to: 10, label: healthy}", "{from: 10, fault: something_else}")
    kb = Path(shutil.copytree(few, tmp_path / "kb"))
    for file in (*(kb / "fingerprints").glob(f"*/{NAME}*"), *(kb / "playbooks").glob("enable_huge_pages/*.yml")):
        file.unlink()
    assert main(["kb", "backtest", str(tmp_path / piece.name), "--kb", str(kb)]) == 0
    said = capsys.readouterr().out
    assert "in the time of  " not in said
    assert "outcome" not in said
    assert "Nothing would have been done." in said


def test_labels_are_judged_before_anything_is_watched(
    few: Path, piece: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def watched(*_: object, **__: object) -> None:
        raise AssertionError("something is watched")

    monkeypatch.setattr("unveil.engine.backtesting.watch_all", watched)
    for name in ("right", "wrong"):
        shutil.copy(piece, tmp_path / f"{name}.parquet")
        label(tmp_path / f"{name}.parquet", f"{{from: 0, label: {NAME if name == 'right' else 'no_such'}}}")
    command = ["kb", "backtest", str(tmp_path), "--kb", str(few)]
    assert main(command) == 2
    assert "wrong.labels.yml:4:22: the knowledge base has no fingerprint 'no_such'" in capsys.readouterr().err
    (tmp_path / "wrong.labels.yml").unlink()
    assert main(command) == 2
    assert "wrong.parquet has no labels beside it" in capsys.readouterr().err


def label(recording: Path, *intervals: str) -> None:
    """Write the labels beside a recording."""
    lines = "".join(f"  - {each}\n" for each in intervals)
    head = "apiVersion: unveil/v1\nkind: RecordingLabels\nintervals:\n"
    recording.with_suffix(".labels.yml").write_text(head + lines)


@pytest.mark.parametrize(
    "wrong",
    [("absent.parquet",), (str(DEMO), str(DEMO)), (str(DEMO), "--expect", "absent.yml"), (str(DEMO), "--kb", "absent")],
)
def test_what_cannot_be_read_is_bad_input(wrong: tuple[str, ...], few: Path) -> None:
    assert main(["kb", "backtest", "--kb", str(few), *wrong]) == 2


@pytest.mark.parametrize("jobs", ["0", "many", "-1"])
def test_a_number_of_processes_is_one(jobs: str) -> None:
    assert main(["kb", "backtest", str(DEMO), "--jobs", jobs]) == 3


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_without_a_traceback(tmp_path: Path) -> None:
    for name in ("one", "other"):
        shutil.copy(DEMO, tmp_path / f"{name}.parquet")
        shutil.copy(DEMO.with_suffix(".labels.yml"), tmp_path / f"{name}.labels.yml")
    command = [sys.executable, "-m", "unveil", "kb", "backtest", "one.parquet", "other.parquet", "--jobs", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        end = time.monotonic() + 60
        while len(_reading(process.pid)) < 2:
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == ("", "")


def _reading(parent: int) -> list[str]:
    """Return the processes of a backtest that have begun to read a recording."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [child for child in children if "libarrow" in Path(f"/proc/{child}/maps").read_text()]


def test_figures_that_moved_since_a_revision_are_shown_then_and_now(capsys: pytest.CaptureFixture[str]) -> None:
    def figures(**given: float | None) -> Score:
        return replace(
            Score(
                fingerprint="f", intervals=2, found=1, first_s=(10.0,), fires=1, other_fires=0, false_fires=0,
                hit_rate=0.5, coverage=None, agreement=0.5, contamination=None, false_per_day=0.0, false_low=0.0,
                false_high=3.0,
            ),
            **given,  # type: ignore[arg-type]  # a figure each
        )  # fmt: skip

    def told(*scores: Score) -> BacktestReport:
        return BacktestReport(
            recordings=("a",), healthy_s=60.0, scores=scores, confusion={}, actions={}, missed=(), unexpected=()
        )

    draw_against(told(figures()), told(figures(found=2, hit_rate=0.75, agreement=None)), "main")
    said = " ".join(capsys.readouterr().out.split())
    assert "against main" in said
    assert "f 1 → 2 (+1) 10.0 0 0 50.0% → 75.0% (+25.0%) - 50.0% → -" in said
    draw_against(told(), told(figures()), "main")
    assert "f - → 1 - → 10.0" in " ".join(capsys.readouterr().out.split())
    draw_against(told(figures()), told(figures()), "main")
    assert "against main: every figure is the same" in capsys.readouterr().out
