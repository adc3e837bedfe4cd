"""`--help` of every command and action: an example to copy, and no line wider than the terminal."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest

from unveil.cli import kb
from unveil.cli.main import COMMANDS, main

if TYPE_CHECKING:
    from pathlib import Path

ACTIONS = {
    "kb": tuple(kb.ACTIONS),
    "runs": ("list", "show", "plan", "approve", "apply", "follow", "rollback", "cancel", "reset", "release"),
    "fleet": ("plan", "apply", "rollback", "show", "list"),
}
ASKED = [*((each,) for each in COMMANDS), *itertools.chain(*([(of, each) for each in ACTIONS[of]] for of in ACTIONS))]


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_every_help_has_an_example_and_fits_a_narrow_terminal(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    said, _, example = capsys.readouterr().out.partition("example:\n")
    assert all(len(line) <= 80 for line in said.splitlines())
    assert re.match(rf"  unveil {words[0]}\b", example)


def test_a_name_that_nobody_knows_gets_the_nearest(
    few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNVEIL_KB", str(few))
    for words in (
        ("kb", "test", "dirty_writeback_stal"),
        ("kb", "tune", "dirty_writeback_stal", "blocked"),
        ("kb", "scorecard", "dirty_writeback_stal"),
        ("kb", "explain", "dirty_writeback_stal"),
    ):
        assert main([*words]) == 2
        assert "did you mean dirty_writeback_stall?" in capsys.readouterr().err


def test_what_an_action_does_not_know_points_to_the_help_of_that_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kb", "backtest", "--colour", "red"]) == 3
    assert "`unveil kb backtest --help` shows an example" in capsys.readouterr().err


def test_a_recording_that_is_not_there_is_named(
    few: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNVEIL_KB", str(few))
    for words in (
        ("kb", "tune", "dirty_writeback_stall", "blocked", "--recordings", "/none"),
        ("kb", "backtest", "--recordings", "/none"),
        ("replay", "/none"),
        ("eval", "/none"),
    ):
        assert main([*words]) == 2
        assert "/none" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--markdown", "--html"])
def test_a_page_that_cannot_be_written_is_said_before_anything_is_watched(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "demo", flag, "/none/page"]) == 1
    assert "/none/page cannot be written" in capsys.readouterr().err
