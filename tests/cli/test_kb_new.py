"""`unveil kb new`: two files that lint clean, never over what is there, from a journal where one is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unveil.cli.main import main
from unveil.records.attribution import Attribution, FeatureShare
from unveil.records.feature import FeatureId
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State, Verdict
from unveil.records.window import WindowSummary
from unveil.store.journal import Journal

ROOT = Path(__file__).parents[2]


def test_a_draft_lints_clean_and_passes(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "new", "slow_reclaim", "--subsystem", "memory", "--kb", str(kb)]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[:2] == [str(kb / f"fingerprints/memory/slow_reclaim{end}.yml") for end in ("", ".test")]
    assert main(["kb", "lint", "--kb", str(kb)]) == 0
    assert main(["kb", "test", "--kb", str(kb), "slow_reclaim", "--mutate"]) == 0


def test_a_name_that_is_taken_is_refused_and_nothing_is_written(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = kb / "fingerprints/memory/reduced_huge_page_coverage.yml"
    before = taken.read_bytes()
    assert main(["kb", "new", "reduced_huge_page_coverage", "--subsystem", "cpu", "--kb", str(kb)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert taken.read_bytes() == before
    assert not (kb / "fingerprints/cpu/reduced_huge_page_coverage.yml").exists()


def test_a_test_file_that_is_there_is_kept_and_the_draft_taken_back(kb: Path) -> None:
    stray = kb / "fingerprints/cpu/half_there.test.yml"
    stray.write_text("mine\n")
    assert main(["kb", "new", "half_there", "--subsystem", "cpu", "--kb", str(kb)]) == 1
    assert stray.read_text() == "mine\n"
    assert not (kb / "fingerprints/cpu/half_there.yml").exists()


@pytest.mark.parametrize("name", ["Slow", "a", "../escape", "x y", "and'"])
def test_what_is_no_name_is_bad_input(kb: Path, name: str) -> None:
    assert main(["kb", "new", name, "--subsystem", "memory", "--kb", str(kb)]) == 2


def test_a_draft_from_a_window_of_the_journal(kb: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state"
    journal = Journal(state / "journal.db")
    watch = journal.begin_watch(at_s=0.0, version="1", host="h")
    moved = FeatureShare(
        feature=FeatureId("memory.pgscan.rate"), subsystem=Subsystem.MEMORY, share=0.7, value=900.0, expected=10.0,
        sigma=12.0,
    )  # fmt: skip
    journal.append_second(
        WindowSummary(
            watch=watch, index=4, wall_s=4.0, ticks_missed=0, verdict=Verdict(window=4, state=State.ANOMALOUS),
            attribution=Attribution(window=4, features=(moved,), subsystems={}),
        ),
        (),
    )  # fmt: skip
    journal.close()
    command = ["kb", "new", "much_scanning", "--subsystem", "memory", "--kb", str(kb), "--state-dir", str(state)]
    assert main([*command, "--from-window", "1:5"]) == 2
    assert main([*command, "--from-window", f"{watch}:4", "--owner", "host team", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["problems"] == []
    text = Path(told["files"][0]).read_text()
    assert "pgscan_rate_up: {feature: memory.pgscan.rate, deviates: up, by_sigma: 6" in text
    assert 'owner: "host team"' in text
    assert main(["kb", "test", "--kb", str(kb), "much_scanning"]) == 0


@pytest.mark.slow
def test_a_draft_from_a_window_of_a_recording(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo = str(ROOT / "unveil/demo/recording.parquet")  # of whose window 118 huge pages have just been turned off
    assert main(["kb", "new", "small_pages", "--from-window", "118", "--recording", demo, "--kb", str(kb)]) == 0
    drafted = kb / "fingerprints/memory/small_pages.yml"  # where the window's attribution says
    assert str(drafted) in capsys.readouterr().out
    assert "A draft from window 118 of a recording" in drafted.read_text()
    assert main(["kb", "lint", str(drafted), "--kb", str(kb)]) == 0
    assert main(["kb", "test", "--kb", str(kb), "small_pages"]) == 0


@pytest.mark.parametrize("words", [(), ("--recording", "x.parquet")])
def test_a_draft_of_nothing_needs_to_know_where_it_belongs(kb: Path, words: tuple[str, ...]) -> None:
    assert main(["kb", "new", "nothing_known", "--kb", str(kb), *words]) == 3
