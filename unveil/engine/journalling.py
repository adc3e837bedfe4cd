"""Journalling: writes down what the watch sees, and goes on without while the disk does not take it.

Windows that could not be written are missing and counted; episodes and the word on the knowledge base are kept in
memory and written as soon as there is room. Steps of runs never come here: what cannot be journalled is not done.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from unveil.errors import UnwritableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from unveil.records.knowledge import KnowledgeState
    from unveil.records.match import Episode
    from unveil.records.window import WindowSummary
    from unveil.store.journal import Journal

_LOG = logging.getLogger(__name__)
MOST_EPISODES = 10_000  # kept in memory meanwhile, the newest


class Journalling:
    """The watch loop's pen. Nothing here raises because a disk is full."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._episodes: dict[str, Episode] = {}
        self._knowledge: KnowledgeState | None = None
        self._since_s: float | None = None
        self._reason = ""
        self._missing = 0

    def second(self, window: WindowSummary, episodes: tuple[Episode, ...]) -> None:
        """Write a window and the episodes that it changed, after what is owed."""
        self.seconds(((window, episodes),))

    def seconds(self, seconds: Sequence[tuple[WindowSummary, tuple[Episode, ...]]]) -> None:
        """Write windows, each with the episodes that it changed, oldest first, after what is owed."""
        if not seconds:
            return

        def write() -> None:
            self._pay()
            self._journal.append_seconds(seconds)

        if not self._written(write, seconds[-1][0].wall_s):
            self._missing += len(seconds)
            for _, episodes in seconds:
                self._owe(episodes)

    def episodes(self, episodes: tuple[Episode, ...], at_s: float) -> None:
        """Write episodes that changed outside a window."""
        self._owe(episodes)
        self._written(self._pay, at_s)

    def knowledge(self, state: KnowledgeState) -> None:
        """Write which knowledge base is in use."""
        self._knowledge = state
        self._written(self._pay, state.at_s)

    def attempt(self, write: Callable[[], object], at_s: float) -> None:
        """Write something else that may as well be missing."""
        self._written(write, at_s)

    @property
    def problem(self) -> str | None:
        """Return one sentence while the journal cannot be written, None when all is well."""
        if self._since_s is None:
            return None
        return f"{self._reason}; {self._missing} windows are missing so far, and no run can start"

    def _owe(self, episodes: tuple[Episode, ...]) -> None:
        self._episodes.update((each.id, each) for each in episodes)
        while len(self._episodes) > MOST_EPISODES:
            del self._episodes[next(iter(self._episodes))]

    def _pay(self) -> None:
        if self._episodes:
            self._journal.put_episodes(tuple(self._episodes.values()))
            self._episodes.clear()
        if self._knowledge is not None:
            self._journal.put_knowledge(self._knowledge)
            self._knowledge = None

    def _written(self, write: Callable[[], object], at_s: float) -> bool:
        try:
            write()
        except UnwritableError as error:
            if self._since_s is None:
                self._since_s, self._missing = at_s, 0
                _LOG.error("%s", error.what)
            self._reason = error.what
            return False
        if self._since_s is not None:
            _LOG.warning(
                "the journal is written again after %.0f s; %d windows are missing", at_s - self._since_s, self._missing
            )
            self._since_s = None
        return True
