"""Every command explains itself, and every error is one line with an exit code, never a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unveil.cli.main import COMMANDS, main


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
        (["runs"], 3, "ACTION"),
        (["runs", "show"], 3, "RUN"),
        (["replay", "/nonexistent.parquet"], 2, "/nonexistent.parquet"),
        (["kb", "lint", "/nonexistent"], 2, "/nonexistent does not exist"),
        (["kb", "lint", "--kb", "/nonexistent"], 2, "/nonexistent"),
        (["kb", "lint", "--explain", "K999"], 2, "no check 'K999'"),
        (["kb", "test", "no_such_fingerprint"], 2, "no fingerprint 'no_such_fingerprint'"),
        (["snapshot", "--host-root", "/nonexistent"], 2, "holds neither proc nor sys"),
        (["doctor", "--host-root", "/nonexistent"], 2, "holds neither proc nor sys"),
        (["record", "/nonexistent/x.parquet", "--for", "1s"], 2, "/nonexistent"),
        (["record", "/tmp/x.parquet", "--for", "soon"], 3, "not a length of time"),
        (["status", "--state-dir", "/nonexistent"], 1, "no watcher listens at /nonexistent"),
        (["episodes", "--state-dir", "/nonexistent"], 1, "no watcher listens"),
        (["silence", "--state-dir", "/nonexistent"], 1, "no watcher listens"),
        (["runs", "list", "--state-dir", "/nonexistent"], 1, "no watcher listens"),
        (["watch", "--profile", "reckless", "--state-dir", "/nonexistent"], 2, "profile cannot be 'reckless'"),
    ],
)
def test_an_error_is_one_line_with_its_exit_code(words: list[str], code: int, says: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "unveil", *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == code, ended.stderr
    lines = ended.stderr.splitlines()
    assert lines[0].startswith("unveil: ")
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(lines) <= 2, "one line, and a hint"


def test_a_reader_that_had_enough_is_no_error() -> None:
    program = f"{sys.executable} -m unveil kb lint --list-checks | head -1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0
    assert ended.stderr == ""
