"""The journal's one writer: windows, episodes, runs, knowledge and silences, each appended before it takes effect.

A watcher that is killed finds everything that it had said. Steps of runs are on the disk (fsync) before they are
taken; windows survive the death of the process but, by choice, not of the machine: an fsync a second is not worth it.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from unveil.errors import UnwritableError
from unveil.records.codec import text
from unveil.records.digest import sha256
from unveil.records.verdict import State
from unveil.store.connection import open_journal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from unveil.records.knowledge import KnowledgeState
    from unveil.records.mark import Mark
    from unveil.records.match import Episode
    from unveil.records.reset import Reset
    from unveil.records.run import Run, Step
    from unveil.records.silence import Silence
    from unveil.records.window import WindowSummary

FIRST_DIGEST = "0" * 64
_INSERT_WINDOW = "INSERT INTO windows VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_FORGOTTEN = (
    ("episodes", "cleared_s < ?"),
    ("run_events", "at_s < ?"),
    ("knowledge", "at_s < ? AND seq < (SELECT max(seq) FROM knowledge)"),
    ("silences", "until_s < ?"),
    (
        "watches",
        (
            "started_s < ? AND id < (SELECT max(id) FROM watches) "
            "AND NOT EXISTS (SELECT 1 FROM windows WHERE watch = watches.id)"
        ),
    ),
)
_OURS = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError)  # wrong questions, not a wrong disk


def step_digest(previous: str, run: str, step: Step) -> str:
    """Return the digest that chains a step, and what it stands on, to the one journalled before it."""
    said = [previous, run, float(step.at_s), step.state, step.cause, step.actor, step.detail]
    said += [step.evidence] if step.evidence else []  # steps of older journals have none
    return sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()


def _row(window: WindowSummary) -> tuple[object, ...]:
    matched = sum(sighting.answer == "match" for sighting in window.sightings)
    return (
        window.watch, window.index, window.wall_s, window.verdict.state, window.verdict.severity,
        window.ticks_missed, matched, text(window),
    )  # fmt: skip


class Journal:
    """Append-only history in one SQLite file. Whatever writes raises UnwritableError when the disk does not take it,
    or the file is damaged: then nothing of it was kept, and the same can be tried again later.
    """

    def __init__(self, path: Path) -> None:
        self._db = open_journal(path, readonly=False)
        self.path = path
        self._file = path.stat()

    def close(self) -> None:
        """Fold the write-ahead log into the file, where there is room for it, and let it go."""
        with suppress(sqlite3.DatabaseError):  # no room: the log stays beside the file, and is read with it
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()

    def in_place(self) -> bool:
        """Return whether the file is still where it was opened: what is written to a removed one is lost."""
        try:
            there = self.path.stat()
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (self._file.st_dev, self._file.st_ino)

    @contextmanager
    def _told_as_ours(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, _OURS):
                raise
            full = isinstance(error, sqlite3.OperationalError)
            raise UnwritableError(
                f"the journal {self.path} cannot be written: {error}",
                hint="make room on its disk" if full else "stop the watcher and move the file away: it is damaged",
            ) from error

    @contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[None]:
        if durable:
            self._db.execute("PRAGMA synchronous = FULL")
        try:
            with self._told_as_ours():
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:  # SQLite ends it by itself for some errors, and not for others
                with suppress(sqlite3.DatabaseError):  # of a damaged file not even that
                    self._db.execute("ROLLBACK")
            if durable:
                self._db.execute("PRAGMA synchronous = NORMAL")

    def begin_watch(self, *, at_s: float, version: str, host: str) -> int:
        """Note that a watcher (or a replay) begins; return the number of this watch."""
        with self._transaction(durable=True):
            cursor = self._db.execute(
                "INSERT INTO watches (started_s, version, host) VALUES (?, ?, ?)", (at_s, version, host)
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def end_watch(self, watch: int, *, at_s: float) -> None:
        """Note that a watch ended in good order."""
        with self._transaction():
            self._db.execute("UPDATE watches SET ended_s = ? WHERE id = ?", (at_s, watch))

    def append_second(self, window: WindowSummary, episodes: tuple[Episode, ...]) -> None:
        """Keep one window and the episodes that it changed, together or not at all."""
        self.append_seconds(((window, episodes),))

    def append_seconds(self, seconds: Sequence[tuple[WindowSummary, tuple[Episode, ...]]]) -> None:
        """Keep windows, each with the episodes that it changed, oldest first: all of them or none."""
        rows = [_row(window) for window, _ in seconds]
        episodes = {episode.id: episode for _, changed in seconds for episode in changed}  # of each as it stands last
        if len(rows) == 1 and not episodes:  # nearly always: one statement is a transaction of its own
            with self._told_as_ours():
                self._db.execute(_INSERT_WINDOW, rows[0])
            return
        with self._transaction():
            self._db.executemany(_INSERT_WINDOW, rows)
            for episode in episodes.values():
                self._put_episode(episode)

    def put_episodes(self, episodes: tuple[Episode, ...]) -> None:
        """Keep episodes that changed outside a window, e.g. when a reload closed them."""
        with self._transaction():
            for episode in episodes:
                self._put_episode(episode)

    def _put_episode(self, episode: Episode) -> None:
        self._db.execute(
            "INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
            "state = excluded.state, last_s = excluded.last_s, cleared_s = excluded.cleared_s, "
            "episode = excluded.episode",
            (
                episode.id, episode.fingerprint, str(episode.entity), episode.state, episode.started_s,
                episode.last_s, episode.cleared_s, text(episode),
            ),
        )  # fmt: skip

    def put_run(self, run: Run) -> None:
        """Keep a run as it now stands: new steps are chained, and on the disk when this returns.

        Steps that are already journalled are never rewritten.
        """
        with self._transaction(durable=True):
            known = self._db.execute("SELECT count(*) FROM run_steps WHERE run = ?", (run.id,)).fetchone()[0]
            self._db.execute(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "state = excluded.state, plan = excluded.plan, saved = excluded.saved, written = excluded.written",
                (
                    run.id, run.plan.episode, run.plan.remediation, run.steps[0].at_s, run.state, text(run.plan),
                    text(run.saved), text(run.written),
                ),
            )  # fmt: skip
            for step in run.steps[known:]:
                self._append_step(run.id, step)

    def _append_step(self, run: str, step: Step) -> None:
        row = self._db.execute("SELECT digest FROM run_steps ORDER BY seq DESC LIMIT 1").fetchone()
        digest = step_digest(row[0] if row else FIRST_DIGEST, run, step)
        self._db.execute(
            "INSERT INTO run_steps (run, at_s, state, cause, actor, detail, digest, evidence) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (run, step.at_s, step.state, step.cause, step.actor, step.detail, digest, step.evidence),
        )

    def append_run_events(self, run: str, events: tuple[tuple[float, Mapping[str, object]], ...]) -> None:
        """Keep what the playbook reported, in order."""
        with self._transaction():
            self._db.executemany(
                "INSERT INTO run_events (run, at_s, event) VALUES (?, ?, ?)",
                [(run, at_s, json.dumps(event, separators=(",", ":"))) for at_s, event in events],
            )

    def put_knowledge(self, state: KnowledgeState) -> None:
        """Keep which knowledge base is in use from now on, or why it is stale."""
        with self._transaction():
            self._db.execute(
                "INSERT INTO knowledge (at_s, generation, stale, state) VALUES (?, ?, ?, ?)",
                (state.at_s, state.generation, state.stale_since_s is not None, text(state)),
            )

    def put_silence(self, silence: Silence) -> None:
        """Keep a silence; one with the same id is replaced (that is how a silence is ended early)."""
        with self._transaction(durable=True):
            self._db.execute(
                "INSERT OR REPLACE INTO silences VALUES (?, ?, ?)", (silence.id, silence.until_s, text(silence))
            )

    def append_mark(self, mark: Mark) -> None:
        """Keep what a person said of an episode."""
        with self._transaction(durable=True):
            self._db.execute(
                "INSERT INTO marks (episode, fingerprint, kind, mark) VALUES (?, ?, ?, ?)",
                (mark.episode, mark.fingerprint, mark.kind, text(mark)),
            )

    def put_reset(self, reset: Reset) -> None:
        """Keep a person's word that automation may go on."""
        with self._transaction(durable=True):
            self._db.execute("INSERT INTO resets (at_s, reset) VALUES (?, ?)", (reset.at_s, text(reset)))

    def prune(self, *, now_s: float, ordinary_s: float, notable_s: float, max_bytes: int) -> int:
        """Forget old windows and return how many.

        Args:
            ordinary_s: age up to which ordinary windows are kept.
            notable_s: age up to which anomalous and matching windows, cleared episodes, run events, former
                generations of the knowledge base, ended silences and watches without any window left are kept.
                Runs and their steps are kept for ever: they are the audit record, and small.
            max_bytes: above this size the oldest tenth of all windows goes, too.
        """
        with self._transaction():
            gone = self._db.execute(
                "DELETE FROM windows WHERE wall_s < ? OR (wall_s < ? AND state != ? AND matched = 0)",
                (now_s - notable_s, now_s - ordinary_s, State.ANOMALOUS),
            ).rowcount
            for table, edge in _FORGOTTEN:
                self._db.execute(f"DELETE FROM {table} WHERE {edge}", (now_s - notable_s,))  # noqa: S608  # constants
            if self._bytes() > max_bytes:
                limit = self._db.execute("SELECT count(*) / 10 FROM windows").fetchone()[0]
                gone += self._db.execute(
                    "DELETE FROM windows WHERE (watch, idx) IN "
                    "(SELECT watch, idx FROM windows ORDER BY wall_s LIMIT ?)",
                    (limit,),
                ).rowcount
        with suppress(sqlite3.DatabaseError):  # no room to move pages: next time
            self._db.execute("PRAGMA incremental_vacuum(2000)").fetchall()
        return gone

    def _bytes(self) -> int:
        pages, free, size = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)
