"""Episodes → matches of correlations: two faults on one thing, many things at once, one fault again and again.

An episode *counts* from when it fired until a correlation's time span after it last matched. What counts is taken up by
group: the entity that an episode is about, or what its match binds to that (the node of a GPU), or the host. The
vocabulary is that of Sigma's correlation rules (SigmaHQ, "Sigma Correlations Specification" 2.0): ``temporal``,
``temporal_ordered``, ``event_count``, ``value_count``.

A watcher hands in the episodes of its own host; whoever reads the journals of many hosts hands in theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.match import Answer, ClauseResult, EpisodeState, Match
from unveil.records.site import Filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from unveil.records.correlation import Correlation
    from unveil.records.match import Episode

MAX_TOLD = 8
"""Entities that a reason names; nobody reads more."""

MAX_COUNTED = 4096
"""Episodes that count at a time: a tenant whose cgroups come and go makes as many as it likes. The newest do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """An episode that fired, on a host."""

    host: str
    episode: Episode


class Correlator:
    """Keeps the episodes that count, and holds the correlations against them."""

    __slots__ = ("_counted", "_firing", "_matches", "_wall_s", "correlations")

    def __init__(self, correlations: Iterable[Correlation] = (), *, before: Correlator | None = None) -> None:
        """Begin with nothing that counts, or with what counted in the generation before."""
        self.correlations = tuple(correlations)
        self._counted: dict[tuple[str, str], _Counted] = {} if before is None else dict(before._counted)
        self._matches: tuple[Match, ...] = ()
        self._wall_s = -math.inf

    def push(self, episodes: Iterable[Episode], wall_s: float, *, window: int = 0, host: str = "") -> tuple[Match, ...]:
        """Take in the episodes that are open on a host, and return the correlations that hold now, with their reasons.

        Args:
            episodes: all that are open, oldest first. What fires is seen as long as each of them comes by once.
            window: index of the newest window, for the matches.
        """
        if not self.correlations:
            return ()
        self._wall_s = wall_s
        wanted = {name for correlation in self.correlations for name in correlation.fingerprints}
        for episode in episodes:
            if episode.state is EpisodeState.FIRING and episode.fingerprint in wanted:
                self._counted[(host, episode.id)] = _Counted(host=host, episode=episode)
        longest_s = max(correlation.timespan_s for correlation in self.correlations)
        for key in [key for key, each in self._counted.items() if each.episode.last_s < wall_s - longest_s]:
            del self._counted[key]
        if (more := len(self._counted) - MAX_COUNTED) > 0:
            for key in sorted(self._counted, key=lambda each: self._counted[each].episode.last_s)[:more]:
                del self._counted[key]
        self._matches = tuple(
            match
            for correlation in self.correlations
            for match in self._judge(correlation, self._groups(correlation, wall_s), wall_s, window)
            if match.answer is Answer.MATCH
        )
        return self._matches

    def explain(self, name: str, wall_s: float, *, window: int = 0, entity: Entity | None = None) -> tuple[Match, ...]:
        """Hold one correlation against what counts, and return what was there also where it does not hold.

        Args:
            entity: only this one, also when nothing counts for it; None for all that something counts for.
        """
        correlation = self._named(name)
        if correlation is None:
            return ()
        groups = self._groups(correlation, wall_s)
        if entity is not None:
            groups = {entity: groups.get(entity, [])}
        elif correlation.group_by is EntityKind.HOST:
            groups.setdefault(HOST, [])
        return tuple(self._judge(correlation, groups, wall_s, window))

    def holds(self, open_episodes: Iterable[Episode]) -> tuple[Filter, ...]:
        """Return, as exceptions that last while they fire, what correlations say should not be remedied.

        Args:
            open_episodes: all that are open, those of correlations among them.
        """
        by_name = {each.name: each for each in self.correlations if each.effect == "no_remediation"}
        firing = {each.fingerprint for each in open_episodes if each.state is EpisodeState.FIRING}
        return tuple(
            Filter(
                name=name,
                id=each.id,
                title=each.title,
                owner=each.owner,
                reason=f"{each.title}: that is not for a fix of each",
                fingerprints=each.fingerprints,
                expires="when it clears",
                expires_s=math.inf,
                path=each.path,
            )
            for name, each in by_name.items()
            if name in firing
        )

    def members(self, name: str, entity: Entity) -> tuple[Episode, ...]:
        """Return the episodes that count now for a correlation on an entity, oldest first; none for another name."""
        found = self._named(name)
        if found is None:
            return ()
        return made_of(found, (each.episode for each in self._counted.values()), entity, since_s=self._wall_s)

    def _named(self, name: str) -> Correlation | None:
        return next((each for each in self.correlations if each.name == name), None)

    def _groups(self, correlation: Correlation, wall_s: float) -> dict[Entity, list[_Counted]]:
        groups: dict[Entity, list[_Counted]] = {}
        for each in self._counted.values():
            if each.episode.fingerprint not in correlation.fingerprints:
                continue
            group = _group(each.episode, correlation.group_by)
            if group is not None and each.episode.last_s >= wall_s - correlation.timespan_s:
                groups.setdefault(group, []).append(each)
        return groups

    @staticmethod
    def _judge(
        correlation: Correlation, groups: Mapping[Entity, list[_Counted]], wall_s: float, window: int
    ) -> Iterator[Match]:
        for entity, members in groups.items():
            clauses = _judged(correlation, members, wall_s)
            holds = all(clause.answer is Answer.MATCH for clause in clauses)
            yield Match(
                window=window,
                wall_s=wall_s,
                fingerprint=correlation.name,
                entity=entity,
                answer=Answer.MATCH if holds else Answer.NO_MATCH,
                clauses=clauses,
                bindings={} if entity == HOST else {str(entity.kind): entity.key},
            )


def made_of(
    correlation: Correlation, episodes: Iterable[Episode], entity: Entity, *, since_s: float, until_s: float = math.inf
) -> tuple[Episode, ...]:
    """Return the episodes that counted for a correlation on an entity between two times, oldest first."""
    there = [
        each
        for each in episodes
        if each.fingerprint in correlation.fingerprints
        and each.fired_s is not None
        and each.fired_s <= until_s
        and each.last_s >= since_s - correlation.timespan_s
        and _group(each, correlation.group_by) == entity
    ]
    return tuple(sorted(there, key=_fired_s))


def _group(episode: Episode, kind: EntityKind) -> Entity | None:
    if kind is EntityKind.HOST:
        return HOST
    if episode.entity.kind is kind:
        return episode.entity
    key = episode.last.bindings.get(str(kind))
    return None if key is None else Entity(kind, key)


def _judged(correlation: Correlation, members: list[_Counted], wall_s: float) -> tuple[ClauseResult, ...]:
    within = f"within {correlation.timespan_s:g} s"
    if correlation.type == "event_count":
        fires = [each for each in members if _fired_s(each.episode) >= wall_s - correlation.timespan_s]
        return (_counted_clause("fires", len(fires), correlation, within, _named(fires)),)
    if correlation.type == "value_count":
        values = {_value(each, correlation.count_of) for each in members}
        what = {"entity": "entities", "fingerprint": "fingerprints", "host": "hosts"}[correlation.count_of]
        return (_counted_clause(what, len(values), correlation, within, _listed(sorted(values))),)
    return tuple(_in_turn(correlation, members, wall_s))


def _in_turn(correlation: Correlation, members: list[_Counted], wall_s: float) -> Iterator[ClauseResult]:
    """Yield whether each fingerprint fired; where the order counts, not before the one in front of it did."""
    ordered = correlation.type == "temporal_ordered"
    earliest_s, last = -math.inf, ""
    for name in correlation.fingerprints:
        fires = [_fired_s(each.episode) for each in members if each.episode.fingerprint == name]
        fired_s = min((each for each in fires if each >= earliest_s), default=math.inf)
        there = math.isfinite(fired_s)
        yield ClauseResult(
            name=name,
            subject=f"fires of {name}",
            operator="after" if ordered and last else "gte",
            threshold=last if ordered and last else f"1 within {correlation.timespan_s:g} s",
            value=f"{wall_s - fired_s:.0f} s ago" if there else None,
            answer=Answer.MATCH if there else Answer.NO_MATCH,
        )
        if ordered:
            earliest_s, last = fired_s, name


def _counted_clause(what: str, count: int, correlation: Correlation, within: str, told: str) -> ClauseResult:
    return ClauseResult(
        name=what,
        subject=f"{what} of {', '.join(correlation.fingerprints)}",
        operator="gte",
        threshold=f"{correlation.at_least} {within}",
        value=f"{count}: {told}" if told else str(count),
        answer=Answer.MATCH if count >= correlation.at_least else Answer.NO_MATCH,
    )


def _value(each: _Counted, count_of: str) -> str:
    if count_of == "entity":
        return str(each.episode.entity)
    return each.episode.fingerprint if count_of == "fingerprint" else each.host


def _fired_s(episode: Episode) -> float:
    return episode.started_s if episode.fired_s is None else episode.fired_s


def _named(members: list[_Counted]) -> str:
    return _listed([f"{each.episode.fingerprint} on {each.episode.entity}" for each in members])


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MAX_TOLD} more" if len(names) > MAX_TOLD else ""
    return ", ".join(names[:MAX_TOLD]) + more
