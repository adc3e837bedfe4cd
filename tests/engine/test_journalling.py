"""A disk that takes nothing costs windows, never the watch; what must not be lost is written later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.journalling import Journalling
from unveil.records.attribution import Attribution
from unveil.records.knowledge import KnowledgeState
from unveil.records.match import EpisodeState
from unveil.records.verdict import State, Verdict
from unveil.records.window import WindowSummary
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def window(index: int) -> WindowSummary:
    return WindowSummary(
        watch=1, index=index, wall_s=1000.0 + index, ticks_missed=0,
        verdict=Verdict(window=index, state=State.NORMAL),
        attribution=Attribution(window=index, features=(), subsystems={}),
    )  # fmt: skip


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "journal.db")
    yield journal
    journal.close()


@pytest.fixture
def queries(journal: Journal) -> Iterator[Queries]:
    queries = Queries(journal.path)
    yield queries
    queries.close()


def test_windows_go_missing_and_are_counted_while_episodes_and_knowledge_are_owed(
    journal: Journal, queries: Queries, make_episode: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    pen = Journalling(journal)
    pen.second(window(0), ())
    assert pen.problem is None
    journal._db.execute("PRAGMA query_only = ON")
    pen.second(window(1), (make_episode(1, EpisodeState.PENDING),))
    pen.second(window(2), (make_episode(1),))
    pen.episodes((make_episode(2),), 1002.5)
    pen.knowledge(KnowledgeState(generation=2, digest="d", at_s=1002.5, fingerprints=1, remediations=1))
    pen.attempt(lambda: journal.end_watch(1, at_s=0.0), 1002.5)
    assert pen.problem is not None
    assert "cannot be written" in pen.problem
    assert "2 windows are missing" in pen.problem
    journal._db.execute("PRAGMA query_only = OFF")
    pen.second(window(3), ())
    assert pen.problem is None
    assert [each.index for each in queries.windows(limit=9)] == [3, 0]
    assert {each.id: each.state for each in queries.episodes()} == {
        make_episode(1).id: EpisodeState.FIRING,
        make_episode(2).id: EpisodeState.FIRING,
    }
    known = queries.knowledge()
    assert known is not None
    assert known.generation == 2
    told = [record.message for record in caplog.records if "journal" in record.name]
    assert len(told) == 2, "the beginning and the end are said, not every second"
    assert "2 windows are missing" in told[1]


def test_what_is_owed_is_bounded(
    journal: Journal, queries: Queries, make_episode: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unveil.engine.journalling.MOST_EPISODES", 20)
    pen = Journalling(journal)
    journal._db.execute("PRAGMA query_only = ON")
    first = make_episode(1)
    pen.episodes(tuple(replace(first, id=f"e{number:012x}") for number in range(23)), 1.0)
    journal._db.execute("PRAGMA query_only = OFF")
    pen.episodes((), 2.0)
    assert len(queries.episodes(limit=99_999)) == 20


def test_a_fault_of_ours_is_not_taken_for_a_full_disk(journal: Journal) -> None:
    pen = Journalling(journal)
    pen.second(window(0), ())
    with pytest.raises(Exception, match="UNIQUE"):
        pen.second(window(0), ())
    assert pen.problem is None
