"""Where the rows of a program come from on one host: found once per shape of the host, filled in once per window."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unveil.matching.clauses import deviation, deviations, fact_holds, share_of
from unveil.matching.companions import companions
from unveil.matching.peers import expected_each, likeness
from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from unveil.matching.clauses import Evidence, Expected
    from unveil.matching.compile import DeviationRow, FactRow, FeatureRow, PeerRow, Program, RatioRow, SlopeRow
    from unveil.matching.slopes import Slopes
    from unveil.records.fact import FactTable
    from unveil.records.feature import FeatureLayout, FeatureVector


@dataclass(slots=True)
class SeenReference:
    """The expectations that a window was held against: the reference moves on, an explanation must not.

    Windows that were held against the same share it.
    """

    seen: dict[tuple[str, Entity], tuple[float, float]] = field(default_factory=dict)

    def lookup(self, name: str, entity: Entity) -> tuple[float, float] | None:
        """Return centre and standard deviation as they were."""
        return self.seen.get((name, entity))


class Places:
    """Where everything measured stands in the values of a window: the features, the slopes behind them, then NaN."""

    __slots__ = ("_at", "_found", "_ids", "_named", "_slopes")

    def __init__(self, layout: FeatureLayout, slopes: Iterable[SlopeRow]) -> None:
        self._ids = layout.ids
        self._named: dict[str, list[int]] = {}
        self._found: dict[str, dict[Entity, int]] = {}  # of what was asked for; most features are not
        for position, feature in enumerate(layout.ids):
            self._named.setdefault(feature.name, []).append(position)
        self._slopes: dict[SlopeRow, tuple[tuple[Entity, ...], NDArray[np.intp]]] = {}
        self._at: dict[tuple[SlopeRow, Entity], int] = {}
        end = len(layout.ids)
        for row in slopes:
            everywhere = self._of_name(row.feature).items()
            there = [(entity, position) for entity, position in everywhere if entity.kind is row.kind]
            self._slopes[row] = (tuple(entity for entity, _ in there), np.array([at for _, at in there], dtype=np.intp))
            self._at |= {(row, entity): end + index for index, (entity, _) in enumerate(there)}
            end += len(there)

    def values(self, vector: FeatureVector, slopes: Slopes) -> NDArray[np.float64]:
        """Return all that was measured until this window; the last position is the absent."""
        parts = [vector.values]
        for row, (entities, positions) in self._slopes.items():
            key = (row.feature, row.kind, row.over_s)
            parts.append(slopes.push(key, entities, vector.wall_s, vector.values[positions]))
        return np.concatenate((*parts, (np.nan,)))

    def of_feature(self, name: str, entity: Entity | None) -> int:
        """Return the position of a feature, -1 where the host has none."""
        return -1 if entity is None else self._of_name(name).get(entity, -1)

    def of_slope(self, row: SlopeRow, entity: Entity | None) -> int:
        """Return the position of a slope, -1 where the host has none."""
        return -1 if entity is None else self._at.get((row, entity), -1)

    def entities_with(self, name: str, kind: EntityKind) -> tuple[Entity, ...]:
        """Return every entity of a kind that has a feature."""
        return tuple(entity for entity in self._of_name(name) if entity.kind is kind)

    def _of_name(self, name: str) -> dict[Entity, int]:
        found = self._found.get(name)
        if found is None:
            there = self._named.get(name, ())
            found = self._found[name] = {self._ids[position].entity: position for position in there}
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Members:
    """Who is compared with whom.

    Attributes:
        at, per_at: shape (members,): positions of their values, and of what these are divided by.
        groups: positions among the members of those that are alike.
        column: shape (columns,): which member each column asks about, -1 for none.
    """

    at: NDArray[np.intp]
    per_at: NDArray[np.intp] | None
    groups: tuple[NDArray[np.intp], ...]
    column: NDArray[np.intp]


class Plan:
    """A program on the entities of one feature layout and one fact table.

    Attributes:
        entities: the columns, sorted.
        around: each entity with its companions, in the same order.
    """

    __slots__ = (
        "_as_part", "_centre", "_deviation_at", "_feature_at", "_members", "_per_at", "_program", "_ratio_at", "_rows",
        "_seen", "_sigma", "_slope_at", "around", "column", "entities",
    )  # fmt: skip

    def __init__(self, program: Program, entities: Sequence[Entity], places: Places, facts: FactTable) -> None:
        self._program = program
        self.entities = tuple(entities)
        self.column = {entity: index for index, entity in enumerate(self.entities)}
        self.around = tuple(companions(entity, facts) for entity in self.entities)
        self._feature_at = self._positions(program.features, places)
        self._ratio_at = self._positions(program.ratios, places)
        self._per_at = self._table(
            [[places.of_feature(row.per, around.get(row.per_kind)) for around in self.around] for row in program.ratios]
        )
        self._slope_at = self._table(
            [[places.of_slope(row, around.get(row.kind)) for around in self.around] for row in program.slopes]
        )
        self._deviation_at = self._positions(program.deviations, places)
        self._as_part = np.array([row.unit == "ratio" for row in program.deviations], dtype=np.bool_)[:, None]
        self._seen: SeenReference | None = None  # what centre and sigma are from: shape (deviations, entities)
        self._centre: NDArray[np.float64] = np.empty(0)
        self._sigma: NDArray[np.float64] = np.empty(0)
        self._members = tuple(self._peers(row, places, facts) for row in program.peers)
        self._rows = np.full((2 * program.rows, len(self.entities)), np.nan)
        for index, row in enumerate(program.facts, start=program.start_of_facts):
            self._rows[index] = [_fact(row, around, facts) for around in self.around]

    def fill(self, values: NDArray[np.float64], evidence: Evidence, seen: SeenReference) -> NDArray[np.float64]:
        """Return the rows of a window and, below them, the negated rows: shape (2 x rows, entities), NaN where absent.

        The array is used again for the next window.

        Args:
            values: all that was measured; see `Places.values`.
            seen: notes what the reference was asked; the same again says that it would answer the same again.
        """
        program, rows = self._program, self._rows
        end = len(program.features)
        values.take(self._feature_at, out=rows[:end], mode="wrap")
        if program.ratios:
            rows[end : end + len(program.ratios)] = _divided(
                values.take(self._ratio_at, mode="wrap"), values.take(self._per_at, mode="wrap")
            )
            end += len(program.ratios)
        if program.slopes:
            values.take(self._slope_at, out=rows[end : end + len(program.slopes)], mode="wrap")
            end += len(program.slopes)
        if program.deviations:
            rows[end : end + len(program.deviations)] = self._deviations(values, evidence, seen)
            end += len(program.deviations)
        for peers, members in zip(program.peers, self._members, strict=True):
            rows[end] = _apart(values, members, peers.unit)
            end += 1
        for index, row in enumerate(program.shares, start=end):
            rows[index] = share_of(row.subsystem, evidence.attribution)
        np.negative(rows[: program.rows], out=rows[program.rows :])
        return rows

    def _deviations(self, values: NDArray[np.float64], evidence: Evidence, seen: SeenReference) -> NDArray[np.float64]:
        there = values.take(self._deviation_at, mode="wrap")
        if evidence.expected is None:
            return np.full(there.shape, np.nan)
        if self._seen is not seen:
            self._ask(evidence.expected, seen)
        return deviations(there, self._centre, self._sigma, self._as_part)

    def _ask(self, expected: Expected, seen: SeenReference) -> None:
        """Ask what is expected of all that this host has."""
        self._seen = seen
        self._centre, self._sigma = np.full((2, *self._deviation_at.shape), np.nan)
        for row, column in np.argwhere(self._deviation_at >= 0).tolist():
            asked = self._program.deviations[row]
            entity = self.around[column][asked.kind]
            found = seen.lookup(asked.feature, entity) or expected.lookup(asked.feature, entity)
            if found is not None:
                seen.seen[(asked.feature, entity)] = found
                self._centre[row, column], self._sigma[row, column] = found

    def _peers(self, row: PeerRow, places: Places, facts: FactTable) -> _Members:
        members = places.entities_with(row.feature, row.kind)
        index = {entity: position for position, entity in enumerate(members)}
        alike: dict[Hashable, list[int]] = {}
        for position, entity in enumerate(members):
            alike.setdefault(likeness(entity, facts), []).append(position)
        divisors = [HOST if row.per_kind is EntityKind.HOST else entity for entity in members]
        return _Members(
            at=np.array([places.of_feature(row.feature, entity) for entity in members], dtype=np.intp),
            per_at=np.array([places.of_feature(row.per, entity) for entity in divisors], dtype=np.intp)
            if row.per
            else None,
            groups=tuple(np.array(group, dtype=np.intp) for group in alike.values()),
            column=np.array([index.get(around.get(row.kind, HOST), -1) for around in self.around], dtype=np.intp),
        )

    def _positions(self, rows: Sequence[FeatureRow | RatioRow | DeviationRow], places: Places) -> NDArray[np.intp]:
        """Return the position of each feature in a vector, -1 where the host has none: shape (rows, entities)."""
        return self._table(
            [[places.of_feature(row.feature, around.get(row.kind)) for around in self.around] for row in rows]
        )

    def _table(self, positions: list[list[int]]) -> NDArray[np.intp]:
        return np.array(positions, dtype=np.intp).reshape(len(positions), len(self.entities))


def _divided(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a ratio, NaN where there is nothing to divide by."""
    return above / np.where(below == 0, np.nan, below)


def _apart(values: NDArray[np.float64], members: _Members, unit: str) -> NDArray[np.float64]:
    """Return how far each column's member is from its peers, NaN where that cannot be told."""
    there = values[members.at]
    if members.per_at is not None:
        there = _divided(there, values[members.per_at])
    distance = np.full(len(there) + 1, np.nan)  # the last is nobody's
    for group in members.groups:
        of_group = there[group]
        for position, value, centre, sigma in zip(
            group.tolist(), of_group.tolist(), *(each.tolist() for each in expected_each(of_group)), strict=True
        ):
            distance[position] = deviation(value, centre, sigma, unit)
    return distance[members.column]


def entities_by_kind(layout: FeatureLayout, facts: FactTable) -> dict[EntityKind, list[Entity]]:
    """Return every entity that a feature or a fact is about, sorted, by kind; the host is always there."""
    everything = {feature.entity for feature in layout.ids} | {fact.entity for fact in facts.facts} | {HOST}
    found: dict[EntityKind, list[Entity]] = {}
    for entity in sorted(everything):
        found.setdefault(entity.kind, []).append(entity)
    return found


def _fact(row: FactRow, around: Mapping[EntityKind, Entity], facts: FactTable) -> float:
    entity = around.get(row.kind)
    value = None if entity is None else facts.value(row.fact, entity)
    holds = None if value is None else fact_holds(value, row.operator, row.operand)
    return math.nan if holds is None else 1.0 if holds else -1.0
