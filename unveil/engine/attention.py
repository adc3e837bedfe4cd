"""Attention: how many seconds are judged at a time.

To wake and to find no cache warm costs more than to judge a window, so while nothing happens and nobody looks, some
seconds are judged together: the same windows come out, the older of them a few seconds later. Whatever happens has each
second judged at once again, long before anything that lasts for five seconds is to be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.records.match import EpisodeState
from unveil.records.verdict import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.engine.pipeline import Outcome
    from unveil.records.match import Episode

TOGETHER = 5
"""Seconds that are judged together on a calm host. Not longer than what most fingerprints must hold for, so that an
episode fires no later for it."""
SETTLED = 60
"""Windows on end in which nothing happened, after which a host is calm."""


class Attention:
    """Says when there is enough to judge. Told after each judging, asked once a second, from any thread."""

    def __init__(self) -> None:
        self._calm = 0  # windows on end in which nothing happened

    def look(self, outcomes: Iterable[Outcome], going_on: Iterable[Episode], *, busy: bool) -> None:
        """Take in what the newest windows led to.

        Args:
            going_on: the open episodes.
            busy: something is under way that wants to see each window, such as a run.
        """
        for outcome in outcomes:
            happened = outcome.changed or outcome.judgement.verdict.state is State.ANOMALOUS
            self._calm = 0 if happened else self._calm + 1
        if busy or any(episode.state is EpisodeState.PENDING for episode in going_on):
            self._calm = 0

    def due(self, seconds: int, *, asked: bool) -> bool:
        """Return whether so many seconds are to be judged now.

        Args:
            asked: somebody is connected and sees what is judged.
        """
        return asked or self._calm < SETTLED or seconds >= TOGETHER
