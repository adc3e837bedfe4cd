"""A site's filters held against an episode."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.records.match import Episode, Match
    from unveil.records.site import Filter

SUPPRESS = "suppress"
NO_REMEDIATION = "no_remediation"


def suppressed(episode: Episode | Match, filters: Iterable[Filter], wall_s: float, *, host: str = "") -> Filter | None:
    """Return the filter because of which an episode (or a match) is not to be shown at all, None when it is to be."""
    return _first(episode, filters, wall_s, host, (SUPPRESS,))


def held_back(episode: Episode, filters: Iterable[Filter], wall_s: float, *, host: str = "") -> Filter | None:
    """Return the filter because of which nothing may be done about an episode, None when something may."""
    return _first(episode, filters, wall_s, host, (SUPPRESS, NO_REMEDIATION))


def _first(
    episode: Episode | Match, filters: Iterable[Filter], wall_s: float, host: str, effects: tuple[str, ...]
) -> Filter | None:
    for site_filter in filters:
        if site_filter.effect in effects and site_filter.covers(episode.fingerprint, str(episode.entity), host, wall_s):
            return site_filter
    return None
