"""Neighbours end with their fault, and weigh what they did."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.lab.changes import ImpossibleError
from unveil.lab.neighbours import busy_but_healthy, cpu_hogs, nobody, running
from unveil.lab.place import NEIGHBOUR, container

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.lab.place import Place
    from unveil.lab.uses import Uses


def children() -> set[str]:
    """Return the processes that this one has started and not buried yet; other tests may have left some, too."""
    return set(Path("/proc/thread-self/children").read_text().split())


@pytest.mark.parametrize(
    ("inject", "count", "weight"), [(busy_but_healthy, 1, "25"), (cpu_hogs, os.cpu_count(), "400")]
)
def test_a_neighbour_ends_with_its_fault_and_weighs_what_it_did(
    inject: Callable[..., object], count: int, weight: str, build: Callable[[int], Place], uses: Uses
) -> None:
    place = build(2)
    path = place.scratch / container(NEIGHBOUR) / "cpu.weight"
    before = children()
    with inject(place, uses):  # type: ignore[attr-defined]  # a context manager each
        started = children() - before
        assert len(started) == count
        assert path.read_text() == weight
    assert not started & children()
    assert path.read_text() == "100"


def test_a_neighbour_that_ended_by_itself_was_no_fault(build: Callable[[int], Place]) -> None:
    before = children()
    with pytest.raises(ImpossibleError, match="ended before it was told to, with 3"):  # noqa: SIM117, PT012
        with running(build(2), "-c", "raise SystemExit(3)"):
            (child,) = children() - before
            while Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.01)
    assert child not in children()


def test_ctrl_c_is_for_the_lab_and_not_for_neighbours(build: Callable[[int], Place]) -> None:
    before = children()
    with running(build(2), "-c", "import time; time.sleep(60)"):
        (child,) = children() - before
        assert os.getpgid(int(child)) != os.getpgid(0)


def test_of_neighbours_that_could_not_all_be_started_none_is_left(
    build: Callable[[int], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = build(2)
    start, before = type(place).start_neighbour, children()

    def once(self: Place, *arguments: str) -> object:
        if children() - before:
            raise BlockingIOError("no more processes")
        return start(self, *arguments)

    monkeypatch.setattr(type(place), "start_neighbour", once)
    with pytest.raises(BlockingIOError), running(place, "-c", "import time; time.sleep(60)", count=2):
        raise AssertionError("it was entered")
    assert not children() - before


def test_nobody_changes_nothing(build: Callable[[int], Place], uses: Uses) -> None:
    before = children()
    with nobody(build(2), uses):
        assert not children() - before
