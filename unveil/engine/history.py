"""Answers from the journal alone: the same with a watcher, after it, or beside it.

Every answer is plain JSON: records through ``unveil.records.codec``. An id may be shortened to a beginning that only
one has.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from unveil.engine import last_backtest
from unveil.errors import BadInputError, RefusedError
from unveil.records.codec import encode
from unveil.records.run import RunState
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unveil.records.match import Episode
    from unveil.records.run import Run

ACTIVE = (RunState.APPLYING, RunState.VERIFYING, RunState.ROLLING_BACK)
MAX_ROWS = 5000
MAX_NUMBER = 1 << 62  # SQLite counts no further


class History:
    """Questions about the past, by name. All parameters are keywords."""

    def __init__(self, journal: Path) -> None:
        self._queries = Queries(journal)
        self._folder = journal.parent
        self.methods: dict[str, Callable[..., Any]] = {
            "windows": self.windows,
            "window": self.window,
            "episodes": self.episodes,
            "episode": self.episode,
            "runs": self.runs,
            "run": self.run,
            "silences": self.silences,
            "knowledge": self.knowledge,
            "audit": self.audit,
            "marks": self.marks,
            "hits": self.hits,
            "backtests": self.backtests,
        }

    def close(self) -> None:
        """Let the journal go."""
        self._queries.close()

    def call(self, method: str, **params: Any) -> Any:
        """Answer a question; without a watcher this is all that can be asked.

        Raises:
            RefusedError: only a running watcher could answer.
            BadInputError: parameters that the question does not have.
        """
        if method not in self.methods:
            raise RefusedError(f"{method!r} needs a running watcher", hint="start one with `unveil watch`")
        return ask(self.methods[method], method, params)

    def windows(self, *, limit: int = 60, before: list[int] | None = None, until_s: float | None = None) -> list[Any]:
        """Return window summaries, newest first: those before a (watch, index) pair, or up to a wall clock time."""
        if until_s is not None:
            return [encode(window) for window in self._queries.windows_until(until_s, limit=_rows(limit))]
        if before is not None and len(before) != 2:
            raise BadInputError("windows: before is to be a watch and an index")
        edge = None if before is None else (before[0], before[1])
        return self._queries.plain_windows(limit=_rows(limit), before=edge)

    def window(self, *, watch: int, index: int) -> Any:
        """Return one window summary."""
        found = self._queries.window(int(watch), int(index))
        if found is None:
            raise BadInputError(f"no window {watch}:{index} in the journal", hint="old ordinary windows are forgotten")
        return encode(found)

    def episodes(self, *, limit: int = 100, open_only: bool = False) -> list[Any]:
        """Return episodes, newest first."""
        return [encode(each) for each in self._queries.episodes(limit=_rows(limit), open_only=bool(open_only))]

    def episode(self, *, id: str) -> Any:  # noqa: A002  # the protocol's word
        """Return one episode, the runs that it led to, and what people said of it."""
        found = self.find_episode(id)
        runs = [encode(run) for run in self._queries.runs(limit=MAX_ROWS, episode=found.id)]
        return {"episode": encode(found), "runs": runs, "marks": self.marks(episode=found.id)}

    def marks(self, *, episode: str | None = None, limit: int = 200) -> list[Any]:
        """Return the newest of what people said of an episode, or of all, oldest first."""
        return [encode(mark) for mark in self._queries.marks(episode, limit=_rows(limit))]

    def hits(self) -> dict[str, Any]:
        """Return for each fingerprint how often it was seen, when last, and how often that was marked as wrong."""
        return {
            name: {"episodes": count, "last_s": last_s, "false_positives": wrong}
            for name, (count, last_s, wrong) in self._queries.hits().items()
        }

    def backtests(self) -> dict[str, Any]:
        """Return for each fingerprint what the last backtest said of it; nothing where none was kept here."""
        return last_backtest.read(self._folder)

    def runs(self, *, limit: int = 100, active_only: bool = False) -> list[Any]:
        """Return runs, newest first."""
        states = ACTIVE if active_only else ()
        return [encode(run) for run in self._queries.runs(limit=_rows(limit), states=states)]

    def run(self, *, id: str, after_event: int = 0) -> Any:  # noqa: A002
        """Return one run with what its playbook reported after an event's number."""
        found = self.find_run(id)
        events = self._queries.run_events(found.id, after=int(after_event))
        return {
            "run": encode(found),
            "events": [{"number": number, "at_s": at_s, **event} for number, at_s, event in events],
        }

    def silences(self, *, at_s: float = 0.0) -> list[Any]:
        """Return silences that end after a time."""
        return [encode(each) for each in self._queries.silences(at_s=float(at_s))]

    def knowledge(self) -> Any:
        """Return the newest word on the knowledge base, or None."""
        state = self._queries.knowledge()
        return None if state is None else encode(state)

    def audit(self) -> Any:
        """Return the watches, and the first run step that was altered afterwards, if any."""
        watches = [{"watch": w, "started_s": s, "ended_s": e} for w, s, e in self._queries.watches()]
        return {"watches": watches, "broken_link": self._queries.broken_link()}

    def find_episode(self, prefix: str) -> Episode:
        """Return the episode whose id begins so, or raise BadInputError."""
        found = self._queries.episode(str(prefix))
        if found is None:
            raise BadInputError(f"no episode {prefix!r}, or more than one", hint="`unveil episodes` lists them")
        return found

    def find_run(self, prefix: str) -> Run:
        """Return the run whose id begins so, or raise BadInputError."""
        found = self._queries.run(str(prefix))
        if found is None:
            raise BadInputError(f"no run {prefix!r}, or more than one", hint="`unveil runs list` lists them")
        return found


def ask(answer: Callable[..., Any], method: str, params: dict[str, Any]) -> Any:
    """Call a method with parameters that came from outside. Whatever goes wrong inside of it is not their fault.

    Raises:
        BadInputError: a parameter that it does not have, or of the wrong kind; or what the method raises.
    """
    signature = inspect.signature(answer)
    try:
        signature.bind(**params)
    except TypeError as error:
        raise BadInputError(f"{method}: {error}") from error
    for name, value in params.items():
        kinds = [kind.strip() for kind in str(signature.parameters[name].annotation).split("|")]
        if not any(_is(kind, value) for kind in kinds):
            raise BadInputError(f"{method}: {name} is to be {' or '.join(kinds)}, not {str(value)[:80]!a}")
    return answer(**params)


def _is(kind: str, value: Any) -> bool:
    """Tell whether a value from outside is of a kind that a method's signature names."""
    match kind:
        case "None":
            return value is None
        case "str":
            return isinstance(value, str) and _travels(value)
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_NUMBER
        case "float":
            return isinstance(value, float) or _is("int", value)
        case "list[int]" | "list[str]":
            return isinstance(value, list) and all(_is(kind[5:-1], each) for each in value)
    return False


def _travels(text: str) -> bool:
    """Tell whether a text can be written down: JSON can hold halves of characters, the journal cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _rows(limit: int) -> int:
    return max(1, min(int(limit), MAX_ROWS))
