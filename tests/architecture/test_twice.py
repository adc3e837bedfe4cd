"""What CI tries a second time: tests that failed beside others, and nothing that ended in another way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TWICE = Path(__file__).parents[2] / ".ci/twice"
HELD_UP = """
import os, pytest

def check():
    assert "PYTEST_XDIST_WORKER" not in os.environ

def test_plain():
    check()

@pytest.mark.xdist_group("of-some.kind")
def test_grouped():
    check()

@pytest.mark.parametrize("text", ["a b@c", "$(exit)\\n"])
def test_with_arguments(text):
    check()

def test_good():
    pass
"""
BAD = "import pytest\n@pytest.mark.parametrize('x', range({}))\ndef test_bad(x):\n    assert 0\n"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def twice(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    """Return how it ends in a folder with one file of tests, and what it says."""
    (folder / ".ci").mkdir()
    shutil.copy(TWICE, folder / ".ci")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_some.py").write_text(text)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    command = ["bash", folder / ".ci/twice", "-q", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    return done.returncode, done.stdout + done.stderr


def test_tests_that_failed_beside_others_may_pass_alone(tmp_path: Path) -> None:
    status, said = twice(tmp_path, HELD_UP, "-n", "1", "--dist", "loadgroup")
    assert status == 0, said
    assert "alone on the machine: 4 test(s) that failed" in said


@pytest.mark.parametrize(("tests", "why"), [(1, "second attempt, alone"), (6, "6 tests failed: too many")])
def test_what_fails_again_has_failed_and_so_have_many(tmp_path: Path, tests: int, why: str) -> None:
    status, said = twice(tmp_path, BAD.format(tests))
    assert status == 1, said
    assert why in said


@pytest.mark.parametrize(("rest", "status"), [("pytest.exit('held up', 2)", 2), ("__import__('os')._exit(9)", 9)])
def test_tests_that_did_not_run_to_their_end_have_failed(tmp_path: Path, rest: str, status: int) -> None:
    ended, said = twice(tmp_path, f"{BAD.format(1)}def test_rest():\n    {rest}\n")
    assert ended == status, said
    assert "attempt" not in said
