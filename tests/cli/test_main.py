"""Every command explains itself, and every error is one line with an exit code, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from unveil.cli.main import COMMANDS, main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert f"usage: unveil {command}" in text
    assert f"example:\n  unveil {command}" in text


def test_without_a_command_the_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(f"    {command} " in text for command in COMMANDS)


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.metadata import version

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"unveil {version('unveil')}\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["fly"], 3, "invalid choice: 'fly'"),
        (["watch", "--fly"], 3, "unrecognized arguments: --fly"),
        (["statsu"], 3, "did you mean `unveil status`?"),
        (["runs", "apply", "r1", "--y"], 3, "unrecognized arguments: --y"),
        (["runs"], 3, "ACTION"),
        (["runs", "show"], 3, "RUN"),
        (["replay", "/nonexistent.parquet"], 2, "/nonexistent.parquet"),
        (["kb", "lint", "/nonexistent"], 2, "/nonexistent does not exist"),
        (["kb", "lint", "--kb", "/nonexistent"], 2, "/nonexistent"),
        (["kb", "lint", "/etc/passwd"], 2, "/etc/passwd is not in the knowledge base"),
        (["kb", "lint", "--explain", "K999"], 2, "no check 'K999'"),
        (["kb", "test", "no_such_fingerprint"], 2, "no fingerprint 'no_such_fingerprint'"),
        (["snapshot", "--host-root", "/nonexistent"], 2, "holds neither proc nor sys"),
        (["doctor", "--host-root", "/nonexistent"], 2, "holds neither proc nor sys"),
        (["watch", "--host-root", "/nonexistent", "--state-dir", "/nonexistent"], 2, "holds neither proc nor sys"),
        (["record", "/tmp/x.parquet", "--for", "0s"], 3, "a second at least"),
        (["record", "/nonexistent/x.parquet", "--for", "1s"], 2, "/nonexistent"),
        (["record", "/tmp/x.parquet", "--for", "soon"], 3, "not a length of time"),
        (["status", "--state-dir", "/nonexistent"], 1, "no watcher listens at /nonexistent"),
        (["episodes", "--state-dir", "/nonexistent"], 1, "no watcher listens"),
        (["silence", "--state-dir", "/nonexistent"], 1, "no watcher listens"),
        (["runs", "list", "--state-dir", "/nonexistent"], 1, "no watcher listens"),
        (["status", "--state-dir", "/etc/passwd"], 2, "/etc/passwd is not a directory"),
        (["watch", "--state-dir", "/etc/passwd"], 2, "/etc/passwd is not a directory"),
    ],
)
def test_an_error_is_one_line_with_its_exit_code(
    words: list[str], code: int, says: str, few: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("UNVEIL_KB", str(few))
    assert main(words) == code
    one_line(capfd.readouterr().err, says)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["runs", "aply", "r1"], 3, "did you mean `unveil runs apply`?"),
        (["kb", "test", "no_such_fingerprint"], 2, "no fingerprint 'no_such_fingerprint'"),
        (["watch", "--profile", "reckless", "--state-dir", "/nonexistent"], 2, "profile cannot be 'reckless'"),
    ],
)
def test_a_process_ends_with_the_code_and_the_line_of_its_error(
    words: list[str], code: int, says: str, few: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "unveil", *words], env=dict(os.environ, UNVEIL_KB=str(few)), capture_output=True,
        text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == code, ended.stderr
    one_line(ended.stderr, says)


def one_line(said: str, says: str) -> None:
    """Hold an error to one line that begins with our name, and a hint."""
    lines = said.splitlines()
    assert lines[0].startswith("unveil: ")
    assert says in said
    assert "Traceback" not in said
    assert len(lines) <= 2, "one line, and a hint"


@pytest.mark.parametrize("reader", ["head -1", "true"])  # the second is gone before there is anything to read
@pytest.mark.parametrize("words", ["kb lint --list-checks", "kb test --verbose"])
def test_a_reader_that_had_enough_is_no_error(words: str, reader: str, few: Path) -> None:
    program = f"{sys.executable} -m unveil {words} | {reader}; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(
        ["bash", "-c", program], env=dict(os.environ, UNVEIL_KB=str(few)), capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0
    assert ended.stderr == ""


@pytest.mark.parametrize(
    ("target", "code", "said"), [(">/dev/full", 2, "unveil: No space left on device\n"), (">&-", 0, "")]
)
def test_a_result_that_nobody_can_take_is_no_traceback(target: str, code: int, said: str) -> None:
    program = f"{sys.executable} -m unveil kb lint --list-checks {target}"
    ended = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (code, said)


def test_what_is_no_recording_is_not_taken_for_the_first_part_of_one(tmp_path: Path) -> None:
    notes = tmp_path / "notes.parquet"
    notes.write_text("somebody's notes")
    assert main(["record", str(notes), "--resume", "--for", "1s", "--quiet"]) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["notes.parquet"]
    assert notes.read_text() == "somebody's notes"
