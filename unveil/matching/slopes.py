"""How fast features rise: the least-squares slope over the windows of the last seconds or minutes.

A trail keeps few points of long times (`POINTS`), so that what a slope costs does not grow with the time it is over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from numpy.typing import NDArray

    from unveil.records.entity import Entity, EntityKind

    Key = tuple[str, EntityKind, float]
    """Feature, kind of entity, seconds."""

POINTS = 32
"""Points that a trail keeps, beside the newest."""

ENOUGH = 0.8
"""Part of the asked time that the points of an entity must span; until then its slope is unknown."""


@dataclass(slots=True)
class _Trail:
    """What one feature was on some entities.

    Attributes:
        times: seconds, rising; values: for each time, shape (entities,).
        slopes: per second, as of the newest window; NaN where unknown.
    """

    entities: tuple[Entity, ...]
    times: list[float] = field(default_factory=list)
    values: list[NDArray[np.float64]] = field(default_factory=list)
    slopes: Mapping[Entity, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeenSlopes:
    """The slopes of one window."""

    slopes: Mapping[Key, Mapping[Entity, float]]

    def slope(self, name: str, entity: Entity, over_s: float) -> float | None:
        """Return the slope of a feature, None where it is unknown."""
        found = self.slopes.get((name, entity.kind, over_s), {}).get(entity, math.nan)
        return None if math.isnan(found) else found


class Slopes:
    """The trails of all slopes that a matcher is asked for."""

    __slots__ = ("_trails",)

    def __init__(self) -> None:
        self._trails: dict[Key, _Trail] = {}

    def push(
        self, key: Key, entities: tuple[Entity, ...], wall_s: float, values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Take in the values of a window, and return the slopes, per second: shape (entities,), NaN where unknown."""
        trail, over_s = self._trails.get(key), key[2]
        if trail is None or (trail.times and wall_s <= trail.times[-1]):  # a clock that was set back begins anew
            trail = self._trails[key] = _Trail(entities)
        if trail.entities != entities:
            _move(trail, entities)
        _forget(trail, wall_s - over_s)
        if len(trail.times) > 1 and trail.times[-1] - trail.times[-2] < over_s / POINTS:
            del trail.times[-1], trail.values[-1]  # it stood for the newest window only
        trail.times.append(wall_s)
        trail.values.append(values)
        found = _fit(np.array(trail.times), np.array(trail.values), over_s)
        trail.slopes = dict(zip(trail.entities, found.tolist(), strict=True))
        return found

    def seen(self) -> SeenSlopes:
        """Return the slopes as of the newest window, which stay as they are when later windows come."""
        return SeenSlopes({key: trail.slopes for key, trail in self._trails.items()})

    def keep(self, before: Slopes, wanted: Container[Key]) -> None:
        """Go on with the trails of an earlier matcher that are still wanted."""
        self._trails |= {key: trail for key, trail in before._trails.items() if key in wanted}


def _move(trail: _Trail, entities: tuple[Entity, ...]) -> None:
    """Have the columns of a trail stand for other entities; those that came have no past."""
    column = {entity: index for index, entity in enumerate(trail.entities)}
    origin = np.array([column.get(entity, -1) for entity in entities], dtype=np.intp)
    trail.values = [np.append(values, np.nan)[origin] for values in trail.values]
    trail.entities = entities


def _forget(trail: _Trail, before_s: float) -> None:
    """Drop points that are older than asked for, but for the last of them, which the line begins with."""
    gone = max(0, sum(1 for time in trail.times if time <= before_s) - 1)
    del trail.times[:gone], trail.values[:gone]


def _fit(times: NDArray[np.float64], values: NDArray[np.float64], over_s: float) -> NDArray[np.float64]:
    """Return the least-squares slope of each column over the rows where it has a value.

    Args:
        times: shape (points,); values: shape (points, entities).
    """
    there = ~np.isnan(values)
    at = times[:, None] - times[-1]
    known = np.where(there, values, 0.0)
    count = there.sum(axis=0)
    first = np.where(there.any(axis=0), times[np.argmax(there, axis=0)], np.inf)
    safe = np.maximum(count, 1)
    mean_at = (at * there).sum(axis=0) / safe
    mean = known.sum(axis=0) / safe
    apart = np.where(there, at - mean_at, 0.0)
    square = (apart * apart).sum(axis=0)
    enough = (count >= 3) & (times[-1] - first >= ENOUGH * over_s) & there[-1] & (square > 0)
    slope = (apart * (known - mean)).sum(axis=0) / np.where(square > 0, square, 1.0)
    return np.where(enough, slope, np.nan)
