"""Ticks go on whatever the loop waits for, and say what ended them."""

from __future__ import annotations

import threading
import time

import pytest

from unveil.engine.status import Lateness
from unveil.engine.ticker import TICK_NS, Ticker


def test_the_first_tick_and_every_tenth_one_bring_a_second_to_judge() -> None:
    times: list[int] = []
    judged: list[int] = []
    lateness = Lateness()
    ticker = Ticker(times.append, lateness=lateness, wake=lambda: judged.append(len(times)))
    ticker.start()
    while len(judged) < 2:
        time.sleep(0.01)
    ticker.close()
    assert lateness.taken == len(times)
    if not lateness.missed:  # on a starved machine the grid, not the count, says when a second is over
        assert judged[:2] == [1, 11]
    assert ticker.seconds == len(judged) - 1 >= 2
    # A late one may have the next close behind it: the grid stands. None is made up for.
    assert all(third - first > 0.9 * TICK_NS for first, third in zip(times, times[2:], strict=False))


def test_seconds_wait_for_each_other_while_none_of_them_is_due() -> None:
    woken = threading.Event()
    ticker = Ticker(lambda _: None, lateness=Lateness(), wake=woken.set, due=lambda seconds: seconds >= 2)
    ticker.start()
    assert woken.wait(60)
    assert ticker.seconds >= 2
    ticker.close()


def test_a_caller_that_computes_all_the_time_holds_no_tick_up() -> None:
    lateness = Lateness()
    ticker = Ticker(lambda _: None, lateness=lateness, wake=lambda: None)
    ticker.start()
    end = time.monotonic() + 60
    while lateness.taken < 10 and time.monotonic() < end:
        sum(range(1000))
    ticker.close()
    assert lateness.taken >= 10


def test_what_ends_the_ticks_is_raised_where_somebody_looks() -> None:
    def read(_: int) -> None:
        raise ValueError("broken")

    seen = threading.Event()
    ticker = Ticker(read, lateness=Lateness(), wake=seen.set)
    ticker.check()
    ticker.start()
    assert seen.wait(60)
    with pytest.raises(ValueError, match="broken"):
        ticker.check()
    ticker.close()


def test_one_that_never_started_can_be_closed() -> None:
    Ticker(lambda _: None, lateness=Lateness(), wake=lambda: None).close()
