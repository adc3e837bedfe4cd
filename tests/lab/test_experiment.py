"""A fault is laid on and taken away by a thread of its own; tests/lab/test_lab.py records a whole experiment."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from unveil.lab.changes import ImpossibleError
from unveil.lab.experiment import Injection, Lengths
from unveil.lab.faults import FAULTS, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.lab.place import Place
    from unveil.lab.uses import Uses


def test_a_fault_is_there_until_it_is_stopped(
    build: Callable[[int], Place], uses: Uses, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, gone, by = threading.Event(), threading.Event(), []

    @contextmanager
    def inject(_place: Place, told: Uses) -> Iterator[None]:
        assert told is uses
        by.append(threading.current_thread())
        there.set()
        yield
        by.append(threading.current_thread())
        gone.set()

    monkeypatch.setitem(FAULTS, "none", Fault(title="", label="", inject=inject))
    injection = Injection("none", build(2), uses)
    assert there.wait(60)
    assert not gone.is_set()
    injection.stop()
    injection.close()
    assert gone.is_set()
    assert 0 < injection.begin <= injection.active <= injection.end
    assert by[0] is by[1] is not threading.current_thread()


def test_an_interrupt_waits_until_a_fault_is_taken_away(
    build: Callable[[int], Place], uses: Uses, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = threading.Event()

    @contextmanager
    def inject(_place: Place, _uses: Uses) -> Iterator[None]:
        yield
        gone.set()

    monkeypatch.setitem(FAULTS, "none", Fault(title="", label="", inject=inject))
    injection = Injection("none", build(2), uses)
    join, asked = injection._thread.join, []

    def interrupted(timeout: float | None = None) -> None:
        asked.append(timeout)
        if len(asked) < 3:
            raise KeyboardInterrupt
        join(timeout)

    monkeypatch.setattr(injection._thread, "join", interrupted)
    monkeypatch.setattr(injection._thread, "is_alive", lambda: len(asked) < 3)
    with pytest.raises(KeyboardInterrupt):
        injection.close()
    assert gone.is_set()


def test_a_fault_that_is_impossible_is_told_to_who_asked(build: Callable[[int], Place], uses: Uses) -> None:
    injection = Injection("slow_link", build(2), uses)
    with pytest.raises(ImpossibleError, match="next to nothing"):
        injection.close()
    assert injection.failed


def test_a_recording_is_as_long_as_its_three_stretches() -> None:
    assert Lengths(healthy=1, faulty=2, after=3).total == 6
