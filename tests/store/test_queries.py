"""Questions to a journal: by page, by the beginning of an id, and never more than what was asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from unveil.records.mark import Mark, MarkKind
from unveil.records.run import RunState, Step
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.records.match import Episode
    from unveil.records.run import Run
    from unveil.records.window import WindowSummary
    from unveil.store.journal import Journal


@pytest.fixture
def queries(journal: Journal) -> Iterator[Queries]:
    found = Queries(journal.path)
    yield found
    found.close()


def test_windows_come_in_pages_across_watches(
    journal: Journal, queries: Queries, window: Callable[..., WindowSummary]
) -> None:
    for watch in (1, 2):
        for index in range(3):
            journal.append_second(window(index, watch=watch), ())
    places = [(each.watch, each.index) for each in queries.windows(limit=100)]
    assert places == [(2, 2), (2, 1), (2, 0), (1, 2), (1, 1), (1, 0)]
    page = queries.windows(limit=2, before=(2, 0))
    assert [(each.watch, each.index) for each in page] == [(1, 2), (1, 1)]
    assert queries.window(1, 7) is None
    assert queries.count_windows(3) == (0, 0, -1)


def test_the_beginning_of_an_id_finds_the_one_run_that_has_it(journal: Journal, queries: Queries, run: Run) -> None:
    journal.put_run(run)
    journal.put_run(replace(run, id="r0ffff"))
    assert queries.run("r01") == run
    assert queries.run("r0") is None, "two begin so"
    assert queries.run("r9") is None


@pytest.mark.parametrize("pattern", ["*", "", "r?", "[r]*", "r0%", "'; DROP TABLE runs; --"])
def test_an_id_is_no_pattern_and_no_statement(journal: Journal, queries: Queries, run: Run, pattern: str) -> None:
    journal.put_run(run)
    assert queries.run(pattern) is None
    assert queries.run("r0") == run


def test_runs_can_be_asked_for_by_state_newest_first(journal: Journal, queries: Queries, run: Run) -> None:
    later = Step(at_s=2000.0, state=RunState.PLANNED, cause="planned", actor="uid:0")
    journal.put_run(run)
    journal.put_run(replace(run, id="r1", steps=(later,)))
    assert [each.id for each in queries.runs()] == ["r1", run.id]
    assert queries.runs(states=(RunState.KEPT,)) == ()
    assert len(queries.runs(states=(RunState.PLANNED, RunState.KEPT), limit=1)) == 1


def test_events_of_a_run_continue_where_one_left_off(journal: Journal, queries: Queries, run: Run) -> None:
    journal.append_run_events(run.id, tuple((float(number), {"event": str(number)}) for number in range(5)))
    journal.append_run_events("r_other", ((9.0, {"event": "other"}),))
    first = queries.run_events(run.id, limit=2)
    assert [event["event"] for _, _, event in first] == ["0", "1"]
    rest = queries.run_events(run.id, after=first[-1][0])
    assert [event["event"] for _, _, event in rest] == ["2", "3", "4"]


def test_an_empty_journal_has_an_answer_to_everything(journal: Journal, queries: Queries) -> None:
    assert queries.windows(limit=5) == ()
    assert queries.episodes() == ()
    assert queries.runs() == ()
    assert queries.silences(at_s=0) == ()
    assert queries.knowledge() is None
    assert queries.broken_link() is None
    assert queries.watches() == []


def test_marks_are_told_in_their_order_and_the_newest_verdict_counts(
    journal: Journal, queries: Queries, episode: Episode
) -> None:
    journal.put_episodes((episode, replace(episode, id="e1", last_s=2000.0)))
    first = Mark(episode=episode.id, fingerprint="f", kind=MarkKind.FALSE_POSITIVE, text="no", actor="uid:0", at_s=1.0)
    journal.append_mark(first)
    assert queries.hits() == {"f": (2, 2000.0, 1)}
    second = replace(first, kind=MarkKind.TRUE_POSITIVE, text="yes, after all", at_s=2.0)
    journal.append_mark(second)
    journal.append_mark(replace(first, episode="e1", kind=MarkKind.NOTE))
    assert queries.marks(episode.id) == (first, second)
    assert len(queries.marks()) == 3
    assert queries.hits() == {"f": (2, 2000.0, 0)}


def test_windows_can_be_asked_for_by_time(
    journal: Journal, queries: Queries, window: Callable[..., WindowSummary]
) -> None:
    for index in range(10):
        journal.append_second(window(index), ())
    assert [each.index for each in queries.windows_until(1004.5, limit=2)] == [4, 3]
    assert queries.windows_until(0.0, limit=2) == ()
