"""Matches → episodes: runs of matching windows of one fingerprint on one entity.

====================  ===================  ==========================  ======================
a window says         while nothing is     while pending               while firing
====================  ===================  ==========================  ======================
match                 opens, pending       fires once it held ``for``  goes on
no match, or entity   nothing              cleared, never fired        cleared once quiet for
gone                                                                   ``keep_firing_for``
unknown               nothing              waits                       waits
====================  ===================  ==========================  ======================

An unknown window neither confirms nor clears: its time counts neither as held nor as quiet. A gap between two windows
that is longer than `MAX_STEP_S`, and a clock that was set back, count for nothing either: nobody looked meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from unveil.records.match import Episode, EpisodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from unveil.records.correlation import Correlation
    from unveil.records.entity import Entity
    from unveil.records.fingerprint import Fingerprint
    from unveil.records.match import Match

    Pair = tuple[str, Entity]

MAX_STEP_S = 10.0
"""Longest time between two windows that is believed; windows come every second."""

SLACK_S = 0.05
"""Half a tick: windows end on ticks of 100 ms, and the wall clock at their ends is not exact."""


@dataclass(slots=True)
class _Open:
    """An episode that is not cleared.

    Attributes:
        held_s: time between matching windows that followed each other.
        quiet_s: time since the last match, unknown windows left out.
        matched: whether the window before matched.
    """

    episode: Episode
    held_s: float = 0.0
    quiet_s: float = 0.0
    matched: bool = True


class EpisodeTracker:
    """Keeps the open episodes, at most one for each fingerprint and entity."""

    __slots__ = ("_fingerprints", "_new_id", "_now_s", "_open")

    def __init__(self, fingerprints: Iterable[Fingerprint | Correlation], *, new_id: Callable[[], str]) -> None:
        """Begin without episodes.

        Args:
            fingerprints: those, and the correlations, whose matches will come.
            new_id: returns ``e`` and 12 hex digits that were never used before.
        """
        self._fingerprints = {fingerprint.name: fingerprint for fingerprint in fingerprints}
        self._new_id = new_id
        self._open: dict[Pair, _Open] = {}
        self._now_s: float | None = None

    @property
    def open(self) -> tuple[Episode, ...]:
        """Return the pending and firing episodes as of the newest window, oldest first."""
        return tuple(item.episode for item in self._open.values())

    def find(self, fingerprint: str, entity: Entity) -> Episode | None:
        """Return the open episode of a fingerprint on an entity."""
        item = self._open.get((fingerprint, entity))
        return None if item is None else item.episode

    def push(self, matches: Iterable[Match], unknown: Container[Pair], wall_s: float) -> tuple[Episode, ...]:
        """Take in one window and return the episodes whose state changed: opened, fired or cleared.

        An episode that merely goes on is not returned; `open` has its newest match. One that is cleared without
        having fired has no ``fired_s``.

        Args:
            matches: those that match; matches of fingerprints that are not known here are left out.
            unknown: the pairs of fingerprint name and entity that could not be told.
            wall_s: wall clock at the end of the window, the same for all matches.
        """
        step_s = 0.0 if self._now_s is None else wall_s - self._now_s
        if not 0.0 <= step_s <= MAX_STEP_S:
            step_s = 0.0
            self._break_off()
        self._now_s = wall_s
        changed = []
        seen = set()
        for match in matches:
            pair = (match.fingerprint, match.entity)
            if match.fingerprint not in self._fingerprints or pair in seen:
                continue
            seen.add(pair)
            changed += self._matched(pair, match, step_s, wall_s)
        for pair in [pair for pair in self._open if pair not in seen]:
            changed += self._unmatched(pair, pair in unknown, step_s, wall_s)
        return tuple(changed)

    def replace(self, fingerprints: Iterable[Fingerprint | Correlation], wall_s: float) -> tuple[Episode, ...]:
        """Go over to another generation and return the episodes that this clears.

        Those of a fingerprint with the same revision go on as if nothing had happened.
        """
        self._fingerprints = {fingerprint.name: fingerprint for fingerprint in fingerprints}
        gone = [pair for pair, item in self._open.items() if not self._is_current(item.episode)]
        return tuple(self._clear(pair, wall_s) for pair in gone)

    def restore(self, episodes: Iterable[Episode], wall_s: float) -> tuple[Episode, ...]:
        """Take up the open episodes of an earlier run of the watcher, and return those that cannot go on, cleared.

        A firing one goes on firing and a pending one starts to hold anew, because nobody looked in between. Those
        whose fingerprint was changed or removed meanwhile are cleared, and so is the older of two for one entity.
        """
        cleared = []
        for episode in sorted(episodes, key=lambda episode: episode.started_s):
            if episode.state is EpisodeState.CLEARED:
                continue
            pair = (episode.fingerprint, episode.entity)
            if pair in self._open:
                cleared.append(self._clear(pair, wall_s))
            self._open[pair] = _Open(episode, matched=False)
            if not self._is_current(episode):
                cleared.append(self._clear(pair, wall_s))
        return tuple(cleared)

    def _matched(self, pair: Pair, match: Match, step_s: float, wall_s: float) -> list[Episode]:
        fingerprint = self._fingerprints[match.fingerprint]
        item = self._open.get(pair)
        opened = item is None
        if item is None:
            item = self._open[pair] = _Open(
                Episode(
                    id=self._new_id(),
                    fingerprint=match.fingerprint,
                    revision=fingerprint.revision,
                    entity=match.entity,
                    state=EpisodeState.PENDING,
                    started_s=wall_s,
                    fired_s=None,
                    last_s=wall_s,
                    cleared_s=None,
                    windows=1,
                    last=match,
                )
            )
        else:
            item.held_s += step_s if item.matched else 0.0
            item.quiet_s = 0.0
            item.matched = True
            item.episode = replace(item.episode, last_s=wall_s, windows=item.episode.windows + 1, last=match)
        fires = item.episode.state is EpisodeState.PENDING and item.held_s >= fingerprint.hold_s - SLACK_S
        if fires:
            item.episode = replace(item.episode, state=EpisodeState.FIRING, fired_s=wall_s)
        return [item.episode] if opened or fires else []

    def _unmatched(self, pair: Pair, unknown: bool, step_s: float, wall_s: float) -> list[Episode]:
        item = self._open[pair]
        item.matched = False
        if unknown:
            return []
        item.quiet_s += step_s
        keep_firing_s = self._fingerprints[item.episode.fingerprint].keep_firing_s
        if item.episode.state is EpisodeState.PENDING or item.quiet_s >= keep_firing_s - SLACK_S:
            return [self._clear(pair, wall_s)]
        return []

    def _break_off(self) -> None:
        """Forget how long pending episodes held: time passed that nobody saw."""
        for item in self._open.values():
            item.held_s = 0.0
            item.matched = False

    def _clear(self, pair: Pair, wall_s: float) -> Episode:
        return replace(self._open.pop(pair).episode, state=EpisodeState.CLEARED, cleared_s=wall_s)

    def _is_current(self, episode: Episode) -> bool:
        fingerprint = self._fingerprints.get(episode.fingerprint)
        return fingerprint is not None and fingerprint.revision == episode.revision
