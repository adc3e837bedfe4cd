"""What was said is kept: across a close, a kill and a full life of windows."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from unveil.errors import UnreadableError, UnwritableError
from unveil.records.knowledge import KnowledgeState
from unveil.records.match import EpisodeState
from unveil.records.run import RunState, Step
from unveil.records.silence import Silence
from unveil.records.verdict import State
from unveil.remediation.lifecycle import Cause, advance, new_run
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unveil.records.match import Episode
    from unveil.records.run import Run
    from unveil.records.window import WindowSummary


def test_windows_and_episodes_come_back_as_they_were_written(
    journal: Journal, window: Callable[..., WindowSummary], episode: Episode
) -> None:
    watch = journal.begin_watch(at_s=999, version="0", host="h")
    first, second = window(0, watch=watch), window(1, watch=watch, matched=True)
    journal.append_second(first, ())
    journal.append_second(second, (episode,))
    queries = Queries(journal.path)
    assert queries.windows(limit=10) == (second, first)
    assert queries.windows(limit=10, before=(watch, 1)) == (first,)
    assert queries.window(watch, 1) == second
    assert queries.count_windows(watch) == (2, 0, 1)
    assert queries.episodes() == (episode,)
    assert queries.episode("e01") == episode
    queries.close()


def test_a_window_written_twice_is_refused_and_takes_its_episodes_with_it(
    journal: Journal, window: Callable[..., WindowSummary], episode: Episode
) -> None:
    journal.append_second(window(0), ())
    with pytest.raises(sqlite3.IntegrityError):
        journal.append_second(window(0), (episode,))
    queries = Queries(journal.path)
    assert queries.episodes() == ()
    queries.close()


def test_windows_that_are_written_together_are_all_there_or_none(
    journal: Journal, window: Callable[..., WindowSummary], episode: Episode
) -> None:
    later = replace(episode, last_s=episode.last_s + 1)
    journal.append_seconds(((window(0), (episode,)), (window(1), (later,)), (window(2), ())))
    with pytest.raises(sqlite3.IntegrityError):
        journal.append_seconds(((window(3), ()), (window(2), ())))
    queries = Queries(journal.path)
    assert [each.index for each in queries.windows(limit=10)] == [2, 1, 0]
    assert queries.episodes() == (later,)
    queries.close()


def test_an_episode_that_cleared_is_no_longer_among_the_open_ones(journal: Journal, episode: Episode) -> None:
    journal.put_episodes((episode,))
    journal.put_episodes((replace(episode, state=EpisodeState.CLEARED, cleared_s=1010.0),))
    queries = Queries(journal.path)
    assert queries.episodes(open_only=True) == ()
    assert queries.episodes()[0].cleared_s == 1010.0
    queries.close()


def test_steps_are_chained_and_an_altered_one_shows(journal: Journal, run: Run) -> None:
    journal.put_run(run)
    approved = replace(run, steps=(*run.steps, Step(at_s=1003, state=RunState.APPROVED, cause="y", actor="uid:0")))
    journal.put_run(approved)
    journal.put_run(replace(approved, saved={"file:/x": "1\n"}))  # no new step: nothing is written twice
    queries = Queries(journal.path)
    stored = queries.run("r01")
    assert stored is not None
    assert stored.steps == approved.steps
    assert stored.saved == {"file:/x": "1\n"}
    assert queries.runs(states=(RunState.APPROVED,)) == (stored,)
    assert queries.runs(states=(RunState.KEPT,)) == ()
    assert queries.broken_link() is None
    with sqlite3.connect(journal.path) as other:
        other.execute("UPDATE run_steps SET actor = 'uid:1000' WHERE seq = 2")
    other.close()
    assert queries.broken_link() == 2
    queries.close()


@pytest.mark.parametrize(
    ("harm", "broken"),
    [
        ("UPDATE run_steps SET state = 'kept' WHERE seq = 2", 2),
        ("UPDATE run_steps SET state = 'nonsense' WHERE seq = 2", 2),
        ("DELETE FROM run_steps WHERE seq = 1", 2),
        ("DELETE FROM run_steps WHERE seq = 2", 1),  # the end of the chain
        ("DELETE FROM run_steps", 0),
    ],
)
def test_the_audit_answers_whatever_was_done_to_the_steps(journal: Journal, run: Run, harm: str, broken: int) -> None:
    journal.put_run(replace(run, steps=(*run.steps, Step(at_s=3, state=RunState.APPROVED, cause="y", actor="uid:0"))))
    with sqlite3.connect(journal.path) as other:
        other.execute(harm)
    other.close()
    queries = Queries(journal.path)
    assert queries.broken_link() == broken
    queries.close()


@pytest.mark.parametrize(
    ("harm", "broken"),
    [
        ("UPDATE runs SET plan = replace(plan, '\"reversible\":true', '\"reversible\":false')", 1),
        ('UPDATE runs SET saved = \'{"file:/x":"2"}\'', 3),
        ("UPDATE run_steps SET evidence = '' WHERE seq = 1", 1),
    ],
)
def test_a_plan_or_a_saved_value_that_was_altered_shows_at_the_step_that_stood_on_it(
    journal: Journal, run: Run, harm: str, broken: int
) -> None:
    run = new_run("r0123456789ab", run.plan, "uid:0", 1.0)
    run = advance(run, RunState.APPROVED, Cause.OPERATOR, "uid:0", 2.0)
    run = advance(replace(run, saved={"file:/x": "1"}), RunState.APPLYING, Cause.STARTED, "uid:0", 3.0)
    journal.put_run(run)
    queries = Queries(journal.path)
    assert queries.broken_link() is None
    assert "saved=" in queries.runs()[0].steps[2].evidence
    with sqlite3.connect(journal.path) as other:
        other.execute(harm)
    other.close()
    assert queries.broken_link() == broken
    queries.close()


def test_a_row_that_is_no_record_is_said_and_keeps_no_other_question_from_its_answer(
    journal: Journal, run: Run, episode: Episode
) -> None:
    journal.put_run(run)
    journal.put_episodes((episode,))
    queries = Queries(journal.path)
    for harm in ("UPDATE runs SET plan = '{}'", "UPDATE runs SET plan = '{'", "UPDATE run_steps SET state = 'x'"):
        with sqlite3.connect(journal.path) as other:
            other.execute(harm)
        other.close()
        with pytest.raises(UnreadableError, match="cannot be read"):
            queries.runs()
    assert queries.episodes() == (episode,)
    queries.close()


def test_damaged_pages_under_a_writer_are_said_and_it_still_closes(
    tmp_path: Path, window: Callable[..., WindowSummary], run: Run
) -> None:
    journal = Journal(tmp_path / "journal.db")
    for index in range(200):
        journal.append_second(window(index), ())
    queries = Queries(journal.path)
    journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with journal.path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    journal._db.execute("PRAGMA shrink_memory")  # what it holds in memory is well
    with pytest.raises(UnwritableError, match="cannot be written"):
        journal.append_second(window(200), ())
    with pytest.raises(UnwritableError, match="cannot be written"):
        journal.put_run(run)
    with pytest.raises(UnreadableError, match="cannot be read"):
        queries.windows(limit=300)
    queries.close()
    journal.close()


def test_what_a_killed_process_had_written_is_there(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    program = (
        "import os, sys; from pathlib import Path; from unveil.store.journal import Journal;"
        "journal = Journal(Path(sys.argv[1])); journal.begin_watch(at_s=1, version='0', host='h');"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == -9
    queries = Queries(path)
    assert queries.watches() == [(1, 1.0, None)]
    queries.close()


def test_the_newest_word_on_the_knowledge_base_counts(journal: Journal) -> None:
    good = KnowledgeState(generation=1, digest="a", at_s=1, fingerprints=6, remediations=6)
    stale = replace(good, at_s=2, stale_since_s=2.0, problems=("x.yml:1:1: error",))
    journal.put_knowledge(good)
    journal.put_knowledge(stale)
    queries = Queries(journal.path)
    assert queries.knowledge() == stale
    queries.close()


def test_a_silence_ends_by_itself_or_by_replacement(journal: Journal) -> None:
    silence = Silence(id="s1", fingerprint="*", entity="*", until_s=20, reason="r", actor="uid:0", created_s=10)
    journal.put_silence(silence)
    queries = Queries(journal.path)
    assert queries.silences(at_s=15) == (silence,)
    assert queries.silences(at_s=20) == ()
    journal.put_silence(replace(silence, until_s=12))
    assert queries.silences(at_s=15) == ()
    queries.close()


def test_pruning_keeps_the_notable_and_the_runs(
    journal: Journal, window: Callable[..., WindowSummary], run: Run
) -> None:
    journal.append_second(window(0), ())
    journal.append_second(window(1, state=State.ANOMALOUS), ())
    journal.append_second(window(2, matched=True), ())
    journal.append_second(window(3), ())
    journal.put_run(run)
    journal.append_run_events(run.id, ((1.0, {"event": "old"}), (1500.0, {"event": "new"})))
    assert journal.prune(now_s=2002.5, ordinary_s=1000, notable_s=5000, max_bytes=1 << 30) == 1
    queries = Queries(journal.path)
    assert [each.index for each in queries.windows(limit=10)] == [3, 2, 1]
    assert journal.prune(now_s=2002.5, ordinary_s=100, notable_s=1000, max_bytes=1 << 30) == 3
    assert queries.run("r0") is not None
    assert [event["event"] for _, _, event in queries.run_events(run.id)] == ["new"]
    queries.close()


def test_pruning_by_size_takes_the_oldest_tenth(journal: Journal, window: Callable[..., WindowSummary]) -> None:
    for index in range(50):
        journal.append_second(window(index), ())
    assert journal.prune(now_s=1060, ordinary_s=1000, notable_s=1000, max_bytes=1) == 5
    queries = Queries(journal.path)
    assert queries.count_windows(1) == (45, 5, 49)
    queries.close()


def test_a_journal_that_was_removed_or_replaced_is_no_longer_in_place(journal: Journal) -> None:
    assert journal.in_place()
    text = journal.path.read_bytes()
    journal.path.rename(journal.path.with_name("away"))
    assert not journal.in_place()
    journal.path.write_bytes(text)
    assert not journal.in_place()
    journal.path.with_name("away").replace(journal.path)
    assert journal.in_place()


def test_what_no_window_stands_on_any_more_is_forgotten(journal: Journal, window: Callable[..., WindowSummary]) -> None:
    old, kept, newest = (journal.begin_watch(at_s=at_s, version="0", host="h") for at_s in (10, 20, 30))
    journal.append_second(replace(window(0, watch=kept), wall_s=4000.0), ())
    for generation in (1, 2):
        journal.put_knowledge(
            KnowledgeState(generation=generation, digest="", fingerprints=0, remediations=0, at_s=generation)
        )
    for name, until_s in (("s1", 50.0), ("s2", 9000.0)):
        journal.put_silence(
            Silence(id=name, fingerprint="*", entity="*", until_s=until_s, reason="r", actor="uid:0", created_s=10)
        )
    journal.prune(now_s=5000, ordinary_s=2000, notable_s=2000, max_bytes=1 << 30)
    queries = Queries(journal.path)
    assert [number for number, _, _ in queries.watches()] == [kept, newest]
    assert old not in (kept, newest)
    state = queries.knowledge()
    assert state is not None
    assert state.generation == 2
    assert [silence.id for silence in queries.silences(at_s=0.0)] == ["s2"]
    queries.close()
