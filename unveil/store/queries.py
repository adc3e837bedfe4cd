"""What can be asked of a journal, by the watcher that writes it or by anyone who may read the file."""

from __future__ import annotations

import json
import sqlite3
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from unveil.errors import UnreadableError
from unveil.records.codec import decode
from unveil.records.knowledge import KnowledgeState
from unveil.records.mark import Mark, MarkKind
from unveil.records.match import Episode, EpisodeState
from unveil.records.reset import Reset
from unveil.records.run import Plan, Run, RunState, Step
from unveil.records.silence import Silence
from unveil.records.window import WindowSummary
from unveil.remediation.evidence import contradicted
from unveil.store.connection import open_journal
from unveil.store.journal import FIRST_DIGEST, step_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Given = ParamSpec("Given")
Told = TypeVar("Told")
_STATES = frozenset(RunState)


def _told(question: Callable[Concatenate[Queries, Given], Told]) -> Callable[Concatenate[Queries, Given], Told]:
    """Let a question that meets damaged pages, or a row that is no record, say so instead of failing like our fault."""

    @wraps(question)
    def ask(queries: Queries, /, *args: Given.args, **kwargs: Given.kwargs) -> Told:
        try:
            return question(queries, *args, **kwargs)
        except (sqlite3.ProgrammingError, sqlite3.DataError):
            raise  # a wrong question, not a wrong file
        except (sqlite3.DatabaseError, ValueError, TypeError, KeyError, AttributeError, StopIteration) as error:
            raise UnreadableError(
                f"the journal {queries.path} cannot be read: {error}",
                hint="when it is damaged: stop the watcher and move the file away",
            ) from error

    return ask


class Queries:
    """Read-only view. Cheap to open; sees what was committed up to each question.

    Whatever asks raises UnreadableError when the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._db = open_journal(path, readonly=True)
        self.path = path

    def close(self) -> None:
        """Let the file go."""
        self._db.close()

    @_told
    def watches(self) -> list[tuple[int, float, float | None]]:
        """Return (number, started, ended or None) of each watch, oldest first."""
        return self._db.execute("SELECT id, started_s, ended_s FROM watches ORDER BY id").fetchall()

    @_told
    def windows(self, *, limit: int, before: tuple[int, int] | None = None) -> tuple[WindowSummary, ...]:
        """Return the newest windows, newest first, or those before a (watch, index)."""
        return tuple(decode(WindowSummary, window) for window in self.plain_windows(limit=limit, before=before))

    @_told
    def plain_windows(self, *, limit: int, before: tuple[int, int] | None = None) -> list[dict[str, Any]]:
        """Return the same as they stand in the journal: for whoever hands them on, without making records of them."""
        rows = self._db.execute(
            "SELECT summary FROM windows WHERE (watch, idx) < (?, ?) ORDER BY watch DESC, idx DESC LIMIT ?",
            (*(before or (1 << 60, 0)), limit),
        )
        return [_record(summary) for (summary,) in rows]

    @_told
    def windows_until(self, wall_s: float, *, limit: int) -> tuple[WindowSummary, ...]:
        """Return the newest windows that ended at a wall clock time or before it, newest first."""
        rows = self._db.execute(
            "SELECT summary FROM windows WHERE wall_s <= ? ORDER BY wall_s DESC LIMIT ?", (wall_s, limit)
        )
        return tuple(decode(WindowSummary, json.loads(summary)) for (summary,) in rows)

    @_told
    def window(self, watch: int, index: int) -> WindowSummary | None:
        """Return one window, or None when it is not (or no longer) there."""
        row = self._db.execute("SELECT summary FROM windows WHERE watch = ? AND idx = ?", (watch, index)).fetchone()
        return None if row is None else decode(WindowSummary, json.loads(row[0]))

    @_told
    def count_windows(self, watch: int) -> tuple[int, int, int]:
        """Return (how many, lowest index, highest index) of a watch's windows; (0, 0, -1) when there is none."""
        count, low, high = self._db.execute(
            "SELECT count(*), min(idx), max(idx) FROM windows WHERE watch = ?", (watch,)
        ).fetchone()
        return (count, low, high) if count else (0, 0, -1)

    @_told
    def episodes(self, *, limit: int = 200, open_only: bool = False) -> tuple[Episode, ...]:
        """Return episodes, newest first."""
        rows = self._db.execute(
            "SELECT episode FROM episodes WHERE NOT ? OR state != ? ORDER BY last_s DESC, id LIMIT ?",
            (open_only, EpisodeState.CLEARED, limit),
        )
        return tuple(decode(Episode, json.loads(episode)) for (episode,) in rows)

    @_told
    def episode(self, prefix: str) -> Episode | None:
        """Return the one episode whose id begins so; None when there is none or more than one."""
        rows = self._db.execute("SELECT episode FROM episodes WHERE id GLOB ? LIMIT 2", (_glob(prefix),)).fetchall()
        return decode(Episode, json.loads(rows[0][0])) if len(rows) == 1 else None

    @_told
    def runs(
        self, *, limit: int = 200, states: tuple[RunState, ...] = (), episode: str | None = None
    ) -> tuple[Run, ...]:
        """Return runs, newest first: all, those in some states, those of an episode."""
        marks = ",".join("?" * len(states))
        rows = self._db.execute(
            "SELECT id, plan, saved, written FROM runs "  # noqa: S608  # marks only
            f"WHERE {f'state IN ({marks})' if states else 'TRUE'} AND (? IS NULL OR episode = ?) "
            "ORDER BY created_s DESC, id LIMIT ?",
            (*states, episode, episode, limit),
        ).fetchall()
        return tuple(self._run(*row) for row in rows)

    @_told
    def count_runs(self) -> dict[RunState, int]:
        """Return how many runs there are in each state that some are in."""
        return {
            RunState(state): count
            for state, count in self._db.execute("SELECT state, count(*) FROM runs GROUP BY state")
        }

    @_told
    def run(self, prefix: str) -> Run | None:
        """Return the one run whose id begins so; None when there is none or more than one."""
        rows = self._db.execute(
            "SELECT id, plan, saved, written FROM runs WHERE id GLOB ? LIMIT 2", (_glob(prefix),)
        ).fetchall()
        return self._run(*rows[0]) if len(rows) == 1 else None

    def _run(self, run: str, plan: str, saved: str, written: str) -> Run:
        steps = self._db.execute(
            f"SELECT at_s, state, cause, actor, detail, {self._evidence()} FROM run_steps WHERE run = ? ORDER BY seq",  # noqa: S608  # a column's name
            (run,),
        )
        return Run(
            id=run,
            plan=decode(Plan, json.loads(plan)),
            steps=tuple(
                Step(at_s=at_s, state=RunState(state), cause=cause, actor=actor, detail=detail, evidence=evidence)
                for at_s, state, cause, actor, detail, evidence in steps
            ),
            saved=json.loads(saved),
            written=json.loads(written),
        )

    @_told
    def run_events(self, run: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, float, dict[str, Any]]]:
        """Return (number, time, event) of what a run's playbook reported, oldest first."""
        rows = self._db.execute(
            "SELECT seq, at_s, event FROM run_events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?",
            (run, after, limit),
        )
        return [(seq, at_s, json.loads(event)) for seq, at_s, event in rows]

    @_told
    def knowledge(self) -> KnowledgeState | None:
        """Return the newest word on the knowledge base."""
        row = self._db.execute("SELECT state FROM knowledge ORDER BY seq DESC LIMIT 1").fetchone()
        return None if row is None else decode(KnowledgeState, json.loads(row[0]))

    @_told
    def silences(self, *, at_s: float) -> tuple[Silence, ...]:
        """Return the silences that have not expired."""
        rows = self._db.execute("SELECT silence FROM silences WHERE until_s > ? ORDER BY until_s", (at_s,))
        return tuple(decode(Silence, json.loads(silence)) for (silence,) in rows)

    @_told
    def marks(self, episode: str | None = None, *, limit: int = 200) -> tuple[Mark, ...]:
        """Return the newest of what people said of an episode, or of all, oldest first; nothing where it is too old."""
        if not self._has_marks():
            return ()
        rows = self._db.execute(
            "SELECT mark FROM marks WHERE ? IS NULL OR episode = ? ORDER BY seq DESC LIMIT ?", (episode, episode, limit)
        ).fetchall()
        return tuple(decode(Mark, json.loads(mark)) for (mark,) in reversed(rows))

    @_told
    def hits(self) -> dict[str, tuple[int, float, int]]:
        """Return fingerprint → (episodes in the journal, when it last matched, episodes marked as false alarms)."""
        told = {
            name: (count, last_s, 0)
            for name, count, last_s in self._db.execute(
                "SELECT fingerprint, count(*), max(last_s) FROM episodes GROUP BY fingerprint"
            )
        }
        if self._has_marks():
            verdicts = (MarkKind.FALSE_POSITIVE, MarkKind.TRUE_POSITIVE)
            newest = self._db.execute(  # with max(seq) SQLite takes the other columns from that very row
                "SELECT fingerprint, kind, max(seq) FROM marks WHERE kind IN (?, ?) GROUP BY episode", verdicts
            )
            for name, kind, _ in newest:
                count, last_s, wrong = told.get(name, (0, 0.0, 0))
                told[name] = (count, last_s, wrong + (kind == MarkKind.FALSE_POSITIVE))
        return told

    def _has_marks(self) -> bool:
        return self._db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'marks'").fetchone() is not None

    @_told
    def resets(self) -> tuple[Reset, ...]:
        """Return what people let go, oldest first; nothing in a journal from before there were any."""
        if self._db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'resets'").fetchone() is None:
            return ()
        rows = self._db.execute("SELECT reset FROM resets ORDER BY seq")
        return tuple(decode(Reset, json.loads(reset)) for (reset,) in rows)

    def _evidence(self) -> str:
        """Return the column of evidence, or what stands for it in a journal from before there was one."""
        names = [row[1] for row in self._db.execute("PRAGMA table_info(run_steps)")]
        return "evidence" if "evidence" in names else "''"

    @_told
    def broken_link(self) -> int | None:
        """Return the number of the first run step that was altered, or after which one is missing; None if all is well.

        A step that follows is told by the digests; a plan or a saved value that was altered by the evidence of the
        steps; a step cut off from the end by the run, which says how far it got.
        """
        previous = FIRST_DIGEST
        rows = self._db.execute(
            "SELECT seq, run, at_s, state, cause, actor, detail, digest, "  # noqa: S608  # a column's name
            f"{self._evidence()} FROM run_steps ORDER BY seq"
        ).fetchall()
        kept: dict[str, Run | None] = {}
        for seq, run, at_s, state, cause, actor, detail, digest, evidence in rows:
            if state not in _STATES:
                return int(seq)
            step = Step(at_s=at_s, state=RunState(state), cause=cause, actor=actor, detail=detail, evidence=evidence)
            if step_digest(previous, run, step) != digest:
                return int(seq)
            previous = digest
            if evidence and run not in kept:
                kept[run] = self.run(run)
            if evidence and (its := kept[run]) and contradicted(step, its.plan, saved=its.saved, written=its.written):
                return int(seq)
        row = self._db.execute(
            "SELECT coalesce(max(run_steps.seq), 0) AS last FROM runs LEFT JOIN run_steps ON run_steps.run = runs.id "
            "GROUP BY runs.id HAVING runs.state IS NOT "
            "(SELECT state FROM run_steps WHERE run = runs.id ORDER BY seq DESC LIMIT 1) ORDER BY last LIMIT 1"
        ).fetchone()
        return None if row is None else int(row[0])


def _record(stored: str) -> dict[str, Any]:
    value = json.loads(stored)
    if not isinstance(value, dict):
        raise ValueError("a row is no record")  # of the file, not of the caller
    return value


def _glob(prefix: str) -> str:
    """Return a GLOB pattern for ids; anything that is no id matches nothing."""
    return f"{prefix}*" if prefix.isalnum() else ""
