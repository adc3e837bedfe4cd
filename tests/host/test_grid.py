from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.host.grid import Grid

MS = 1_000_000
TICK = 100 * MS


def test_punctual_ticks_are_numbered_one_by_one_and_never_late() -> None:
    grid = Grid(TICK)
    assert [grid.place(5 + n * TICK) for n in range(5)] == [0, 1, 2, 3, 4]
    assert (grid.late_ns, grid.missed) == (0, 0)


def test_a_late_tick_keeps_its_number_and_tells_how_late() -> None:
    grid = Grid(TICK)
    grid.place(0)
    assert grid.place(TICK + 60 * MS) == 1
    assert grid.late_ns == 60 * MS
    assert grid.place(2 * TICK) == 2
    assert (grid.late_ns, grid.missed) == (0, 0)


def test_missed_ticks_are_counted() -> None:
    grid = Grid(TICK)
    grid.place(0)
    assert grid.place(5 * TICK + 3 * MS) == 5
    assert (grid.late_ns, grid.missed) == (3 * MS, 4)


def test_a_late_first_tick_does_not_make_the_others_late_for_ever() -> None:
    grid = Grid(TICK)
    grid.place(80 * MS)
    for number in range(1, 200):
        grid.place(number * TICK)
    assert grid.late_ns == 0


def test_two_ticks_in_one_interval_have_one_number() -> None:
    grid = Grid(TICK)
    assert [grid.place(0), grid.place(1), grid.place(TICK)] == [0, 0, 1]


@settings(max_examples=100)
@given(st.lists(st.integers(1, 3 * TICK), min_size=1, max_size=200))
def test_numbers_never_go_back_and_lateness_is_never_negative(steps: list[int]) -> None:
    grid, now, last, missed = Grid(TICK), 0, -1, 0
    for step in steps:
        now += step
        number = grid.place(now)
        assert number >= last
        assert grid.late_ns >= 0
        assert grid.missed >= missed
        last, missed = number, grid.missed
