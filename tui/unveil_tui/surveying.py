"""Survey: one look at a watcher: its status, the windows since the last look, its episodes, silences and marks.

Asks for little: only windows that are new, cleared episodes only when the open ones changed. Every answer is decoded
here, in the pump's thread, so that what reaches a screen is whole.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unveil.records.codec import decode
from unveil.records.mark import Mark
from unveil.records.match import Episode, EpisodeState
from unveil.records.run import Run
from unveil.records.silence import Silence
from unveil.records.window import WindowSummary
from unveil_tui.seen import MAX_WINDOWS, About

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.engine.client import Watcher

FIRST_PAGE = 60
PAGE = 110  # of what was there before: large ones would keep the screen waiting for the interpreter
EPISODES = 60
SILENCES_EVERY = 5
RUNS = 20
RUNS_EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one look found; *busy* when windows come faster than one a second."""

    status: dict[str, Any]
    windows: tuple[WindowSummary, ...]
    episodes: tuple[Episode, ...]
    silences: tuple[Silence, ...]
    marks: tuple[Mark, ...]
    about: Mapping[str, About]
    runs: tuple[Run, ...]
    busy: bool


class Survey:
    """Looks at one watcher, and remembers what it has seen."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._windows: deque[WindowSummary] = deque(maxlen=MAX_WINDOWS)
        self._kept: tuple[WindowSummary, ...] = ()  # the same object while nothing changed: nothing is redrawn then
        self._told_episodes: Any = None
        self._episodes: tuple[Episode, ...] = ()
        self._told_silences: Any = None
        self._life: tuple[int, float] = (-1, 0.0)
        self._backfilled = True
        self._opened: tuple[tuple[str, str], ...] | None = None
        self._cleared: tuple[Episode, ...] = ()
        self._silences: tuple[Silence, ...] = ()
        self._told_marks: Any = None
        self._marks: tuple[Mark, ...] = ()
        self._about: dict[str, About] = {}
        self._generation: Any = None
        self._first_is_drawn = False
        self._told_runs: Any = None
        self._runs: tuple[Run, ...] = ()
        self._looks = 0

    def look(self) -> Found:
        """Ask and return everything.

        Raises:
            UnveilError: what the watcher, or the way to it, raised.
            TypeError, ValueError, KeyError: an answer is out of shape.
        """
        status: dict[str, Any] = self._watcher.call("status")
        kept, life = len(self._windows), self._life
        arrived = self._look_at_windows(status)
        if arrived or life != self._life or kept != len(self._windows):
            self._kept = tuple(self._windows)
        episodes = self._look_at_episodes()
        if self._looks % SILENCES_EVERY == 0:
            self._look_at_words()
        if self._opened and self._first_is_drawn:
            self._look_at_remedies(status)
        self._first_is_drawn = True
        self._looks += 1
        return Found(
            status=status,
            windows=self._kept,
            episodes=episodes,
            silences=self._silences,
            marks=self._marks,
            about=self._about,
            runs=self._runs,
            busy=arrived > 1 or not self._backfilled,
        )

    def hurry(self) -> None:
        """Look at everything the next time: something was ordered."""
        self._looks = 0

    def _look_at_words(self) -> None:
        """Look at what people said: silences and marks."""
        told = self._watcher.call("silences")
        if told != self._told_silences:
            self._silences, self._told_silences = tuple(decode(Silence, each) for each in told), told
        told = self._watcher.call("marks")
        if told != self._told_marks:
            self._marks, self._told_marks = tuple(decode(Mark, each) for each in told), told

    def _look_at_remedies(self, status: dict[str, Any]) -> None:
        """Look at what could be done about what is open, and what was done: the former once a generation."""
        if (generation := (self._life, status["knowledge"]["generation"])) != self._generation:
            told = self._watcher.call("knowledge")
            self._about = {
                str(each["name"]): About(
                    title=str(each["title"]), level=str(each["level"]), fixes=tuple(each.get("remediations", ()))
                )
                for each in (*told["fingerprints"], *told.get("correlations", ()))
            }
            self._generation = generation
        if self._told_runs is None or self._looks % RUNS_EVERY == 0:
            told = self._watcher.call("runs", limit=RUNS)
            if told != self._told_runs:
                self._runs, self._told_runs = tuple(decode(Run, each) for each in told), told

    def _look_at_windows(self, status: dict[str, Any]) -> int:
        """Take the windows that are new; return how many."""
        life = (int(status["watch"]), float(status["started_s"]))
        if life != self._life:
            if life[0] <= self._life[0]:  # a new journal counts its watches anew: its windows would look old
                self._windows.clear()
            self._life = life
        newest = status["window"]
        if newest is None:
            return 0
        last = self._windows[-1] if self._windows else None
        if last is None:
            self._backfilled = False
            return self._take(FIRST_PAGE)
        if not self._backfilled:
            self._backfill()
        if (last.watch, last.index) >= (newest["watch"], newest["index"]):
            return 0
        same = last.watch == newest["watch"]
        return self._take(min(MAX_WINDOWS, newest["index"] - last.index) if same else MAX_WINDOWS)

    def _take(self, limit: int) -> int:
        last = (self._windows[-1].watch, self._windows[-1].index) if self._windows else (-1, -1)
        told = [decode(WindowSummary, each) for each in self._watcher.call("windows", limit=limit)]
        while told and told[-1].watch == last[0] and (gap := told[-1].index - last[1] - 1) > 0:
            # More arrived between the two questions: the newest ones left out the oldest that are missing.
            edge = [told[-1].watch, told[-1].index]
            more = self._watcher.call("windows", limit=min(gap, MAX_WINDOWS), before=edge)
            older = [decode(WindowSummary, each) for each in more]
            if not older or len(told) >= MAX_WINDOWS:
                break
            told += older
        fresh = [each for each in reversed(told) if (each.watch, each.index) > last]
        self._windows.extend(fresh)
        return len(fresh)

    def _backfill(self) -> None:
        """Ask for a page of what was there before the first one, which could so be drawn at once."""
        first, room = self._windows[0], min(PAGE, MAX_WINDOWS - len(self._windows))
        told = []
        if room > 0:
            told = self._watcher.call("windows", limit=room, before=[first.watch, first.index])
            self._windows.extendleft(decode(WindowSummary, each) for each in told)
        self._backfilled = len(told) < max(1, room)

    def _look_at_episodes(self) -> tuple[Episode, ...]:
        told = self._watcher.call("episodes", open_only=True, limit=EPISODES)
        if told == self._told_episodes:
            return self._episodes
        opened = tuple(decode(Episode, each) for each in told)
        names = tuple(sorted((each.id, str(each.state)) for each in opened))
        if names != self._opened:
            known = [decode(Episode, each) for each in self._watcher.call("episodes", limit=EPISODES)]
            self._cleared = tuple(each for each in known if each.state is EpisodeState.CLEARED)
            self._opened = names
        rank = {EpisodeState.FIRING: 0, EpisodeState.PENDING: 1}
        ordered = sorted(opened, key=lambda each: (rank.get(each.state, 2), each.started_s))
        self._episodes = (*ordered, *self._cleared[: EPISODES - len(ordered)])
        self._told_episodes = told
        return self._episodes
