"""Windows of the past, from a journal on disk."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from unveil.engine.history import History
from unveil.engine.past_windows import strongest_unmatched, strongest_window, window_at
from unveil.errors import BadInputError
from unveil.records.attribution import Attribution
from unveil.records.entity import HOST
from unveil.records.match import Answer, Episode, EpisodeState, Match
from unveil.records.verdict import State, Verdict
from unveil.records.window import WindowSummary
from unveil.store.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Give a journal of 1200 windows, and an episode from second 20 to 30 that is strongest at second 27."""
    match = Match(window=20, wall_s=20.0, fingerprint="f", entity=HOST, answer=Answer.MATCH, clauses=(), bindings={})
    episode = Episode(
        id="e0123456789ab", fingerprint="f", revision="1", entity=HOST, state=EpisodeState.CLEARED, started_s=20.0,
        fired_s=23.0, last_s=30.0, cleared_s=45.0, windows=11, last=match,
    )  # fmt: skip
    journal = Journal(tmp_path / "journal.db")
    watch = journal.begin_watch(at_s=0.0, version="1", host="h")
    for index in range(1200):
        severity = 9.0 if index == 100 else float(index) if 20 <= index <= 27 else 1.0
        window = WindowSummary(
            watch=watch, index=index, wall_s=float(index), ticks_missed=0,
            verdict=Verdict(window=index, state=State.ANOMALOUS, severity=severity),
            attribution=Attribution(window=index, features=(), subsystems={}),
        )  # fmt: skip
        journal.append_second(window, (episode,) if index == 30 else ())
    journal.close()
    with closing(History(tmp_path / "journal.db")) as history:
        yield history


def test_a_window_is_found_at_its_place(history: History) -> None:
    found = window_at(history, "1:27")
    assert (found.watch, found.index, found.verdict.severity) == (1, 27, 27.0)


@pytest.mark.parametrize("place", ["27", "1:", "a:b", "1:27:3", "-1:2", "9:27", "1:5000"])
def test_what_is_no_place_or_not_there_is_bad_input(history: History, place: str) -> None:
    with pytest.raises(BadInputError):
        window_at(history, place)


def test_the_strongest_window_of_an_episode_is_found_though_hundreds_came_after_it(history: History) -> None:
    assert strongest_window(history, "e0123").index == 27


def test_an_episode_that_is_not_there_is_bad_input(history: History) -> None:
    with pytest.raises(BadInputError, match="no episode"):
        strongest_window(history, "e9")


def test_the_strongest_window_that_nothing_matches(history: History) -> None:
    found = strongest_unmatched(history)
    assert (found.index, found.verdict.severity) == (27, 27.0)
