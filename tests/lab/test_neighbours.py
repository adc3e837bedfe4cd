"""Neighbours end with their fault, and weigh what they did."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.lab.neighbours import busy_but_healthy, cpu_hogs, nobody
from unveil.lab.place import NEIGHBOUR, container

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.lab.place import Place
    from unveil.lab.uses import Uses

CHILDREN = Path("/proc/thread-self/children")


@pytest.mark.parametrize(
    ("inject", "count", "weight"), [(busy_but_healthy, 1, "25"), (cpu_hogs, os.cpu_count(), "400")]
)
def test_a_neighbour_ends_with_its_fault_and_weighs_what_it_did(
    inject: Callable[..., object], count: int, weight: str, build: Callable[[int], Place], uses: Uses
) -> None:
    place = build(2)
    path = place.scratch / container(NEIGHBOUR) / "cpu.weight"
    before = CHILDREN.read_text().split()
    with inject(place, uses):  # type: ignore[attr-defined]  # a context manager each
        assert len(CHILDREN.read_text().split()) == len(before) + count
        assert path.read_text() == weight
    assert CHILDREN.read_text().split() == before
    assert path.read_text() == "100"


def test_nobody_changes_nothing(build: Callable[[int], Place], uses: Uses) -> None:
    before = CHILDREN.read_text()
    with nobody(build(2), uses):
        assert CHILDREN.read_text() == before
