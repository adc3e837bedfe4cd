"""A workload works before it is entered, or says why it does not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from unveil.errors import UnreadableError
from unveil.lab import running
from unveil.lab.place import SIDES
from unveil.lab.running import NEEDS_TORCH, WORKLOADS, Program, Running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unveil.lab.place import Place


def test_each_workload_has_one_program_that_tells_and_its_modules_are_there() -> None:
    assert WORKLOADS.keys() >= NEEDS_TORCH
    for programs in WORKLOADS.values():
        assert sum(program.tells for program in programs) == 1
        assert all(program.side in SIDES and importlib.util.find_spec(program.module) for program in programs)


@pytest.fixture
def outside(build: Callable[[int], Place], monkeypatch: pytest.MonkeyPatch) -> Place:
    """Give a place whose programs are started as ordinary ones, in no container."""

    def start(_place: Place, module: str, arguments: list[str], *, side: str, log: Path) -> subprocess.Popen[bytes]:
        assert side == "a"
        with log.open("ab") as output, log.with_suffix(".errors").open("ab") as errors:
            return subprocess.Popen([sys.executable, "-c", module, *arguments], stdout=output, stderr=errors)

    place = build(2)
    monkeypatch.setattr(type(place), "start", start)
    monkeypatch.setattr(running, "WARM_S", 0)
    return place


def program(code: str) -> tuple[Program, ...]:
    return (Program(module=code, arguments=(), side="a", tells=True),)


def test_a_workload_runs_while_it_is_entered(outside: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORKLOADS, "loading", program("import time; print('one', flush=True); time.sleep(60)"))
    with Running("loading", outside) as entered:
        assert entered.alive
        assert entered.log.read_text() == "one\n"
        process = entered._started[0]
    assert process.returncode is not None


def test_a_workload_that_ends_at_once_is_told_with_its_last_words(
    outside: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORKLOADS, "loading", program("raise SystemExit('no memory left')"))
    with pytest.raises(UnreadableError, match="did not start working: no memory left"), Running("loading", outside):
        raise AssertionError("it was entered")


def test_without_torch_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "find_spec", lambda _name: None)
    with pytest.raises(UnreadableError, match="needs PyTorch"):
        running.check("training")
    running.check("embedding")
