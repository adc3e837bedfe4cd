"""What a watcher says of itself."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from unveil.engine.status import Cost, Lateness, resident_bytes

if TYPE_CHECKING:
    from collections.abc import Callable


def test_before_a_tick_nothing_was_late() -> None:
    assert Lateness().quantile(0.99) == 0.0


@given(late=st.lists(st.floats(0, 1e4), min_size=1, max_size=200), share=st.floats(0, 1))
def test_a_quantile_is_one_of_the_values_with_about_its_share_below(late: list[float], share: float) -> None:
    lateness = Lateness()
    for each in late:
        lateness.add(each, 2)
    assert (lateness.taken, lateness.missed) == (len(late), 2 * len(late))
    found = lateness.quantile(share)
    assert found in late
    assert sum(each < found for each in late) <= share * len(late)


def test_only_the_last_ten_minutes_are_kept() -> None:
    lateness = Lateness()
    lateness.add(1e6, 0)
    for _ in range(6000):
        lateness.add(1.0, 0)
    assert lateness.quantile(1.0) == 1.0
    assert lateness.taken == 6001


def test_a_process_has_some_memory() -> None:
    assert 5e6 < resident_bytes() < 5e9


def test_the_status_is_plain_json_and_names_what_is_wrong(watch: Callable[..., Any]) -> None:
    watcher = watch()
    status = watcher.status()
    assert json.loads(json.dumps(status)) == status
    assert (status["pid"], status["window"], status["problems"]) == (os.getpid(), None, [])
    assert status["knowledge"]["fingerprints"] == 1
    assert status["gpu"] is None
    watcher.complain("something")
    watcher.complain("something")
    watcher.journal._db.execute("PRAGMA query_only = ON")
    watcher.journalling.episodes((), watcher.clock())
    assert watcher.status()["problems"] == ["something (2 times)"], "nothing was to be written"
    watcher.journalling.attempt(lambda: watcher.journal.end_watch(1, at_s=0.0), watcher.clock())
    problems = watcher.status()["problems"]
    assert "cannot be written" in problems[0]
    assert "no run can start" in problems[0]
    assert problems[1:] == ["something (2 times)"]
    watcher.journal._db.execute("PRAGMA query_only = OFF")


def test_the_cost_is_that_of_the_time_since_the_oldest_mark_not_of_the_start() -> None:
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    cost = Cost()
    time.sleep(0.2)
    assert 0.0 < cost.share() < 0.5
