"""Questions about the past are answered from the journal alone, with or without a watcher."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from unveil.engine.history import MAX_ROWS, History
from unveil.errors import BadInputError, RefusedError, UnreadableError
from unveil.records.match import EpisodeState

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def here(rig: Callable[..., Any], make_episode: Callable[..., Any]) -> Any:
    made = rig()
    made.journal.put_episodes((make_episode(1), make_episode(2, EpisodeState.CLEARED)))
    return made


def test_ids_may_be_shortened_to_what_only_one_has(here: Any) -> None:
    run = here.planned()
    history = History(here.folder / "journal.db")
    assert history.call("run", id=run.id[:5])["run"]["id"] == run.id
    with pytest.raises(BadInputError, match="or more than one"):
        history.call("episode", id="e0000")
    told = history.call("episode", id="e000000000001")
    assert [each["id"] for each in told["runs"]] == [run.id]
    assert [each["id"] for each in history.call("episodes", open_only=True)] == ["e000000000001"]
    assert history.call("runs", active_only=True) == []
    assert history.call("audit")["broken_link"] is None
    assert history.call("knowledge") is None
    assert json.loads(json.dumps(history.call("runs"))) == history.call("runs")
    history.close()


@pytest.mark.slow
def test_the_runs_of_an_episode_are_all_told_however_many_came_after(here: Any) -> None:
    first = here.planned()
    for number in range(3, 206):
        here.now += 1
        here.driver.propose(here.drawn(episode=number), actor="uid:0")
    history = History(here.folder / "journal.db")
    assert [each["id"] for each in history.call("episode", id="e000000000001")["runs"]] == [first.id]
    history.close()


def test_events_are_asked_for_from_where_one_has_read_to(here: Any) -> None:
    run = here.planned()
    here.journal.append_run_events(run.id, tuple((float(n), {"event": str(n)}) for n in range(3)))
    history = History(here.folder / "journal.db")
    events = history.call("run", id=run.id)["events"]
    assert [event["event"] for event in events] == ["0", "1", "2"]
    rest = history.call("run", id=run.id, after_event=events[1]["number"])["events"]
    assert [event["event"] for event in rest] == ["2"]
    history.close()


def test_what_only_a_watcher_knows_is_refused_and_nonsense_is_bad_input(here: Any) -> None:
    history = History(here.folder / "journal.db")
    with pytest.raises(RefusedError, match="needs a running watcher"):
        history.call("status")
    with pytest.raises(BadInputError, match="no window"):
        history.call("window", watch=1, index=5)
    assert history.call("windows", limit=10 * MAX_ROWS) == []
    assert history.call("windows", limit=-1) == []
    history.close()


def test_no_journal_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no journal"):
        History(tmp_path / "journal.db")
