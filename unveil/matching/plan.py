"""Where the rows of a program come from on one host: found once per shape of the host, filled in once per window."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unveil.matching.clauses import deviation, fact_holds, share_of
from unveil.matching.companions import companions
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.feature import FeatureId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from unveil.matching.clauses import Evidence
    from unveil.matching.compile import DeviationRow, FactRow, FeatureRow, Program
    from unveil.records.fact import FactTable
    from unveil.records.feature import FeatureLayout


@dataclass(slots=True)
class SeenReference:
    """The expectations that one window was held against: the reference moves on, an explanation must not."""

    seen: dict[tuple[str, Entity], tuple[float, float]] = field(default_factory=dict)

    def lookup(self, name: str, entity: Entity) -> tuple[float, float] | None:
        """Return centre and standard deviation as they were."""
        return self.seen.get((name, entity))


class Plan:
    """A program on the entities of one feature layout and one fact table.

    Attributes:
        entities: the columns, sorted.
        around: each entity with its companions, in the same order.
    """

    __slots__ = ("_deviation_at", "_feature_at", "_program", "_rows", "around", "column", "entities")

    def __init__(self, program: Program, entities: Sequence[Entity], layout: FeatureLayout, facts: FactTable) -> None:
        self._program = program
        self.entities = tuple(entities)
        self.column = {entity: index for index, entity in enumerate(self.entities)}
        self.around = tuple(companions(entity, facts) for entity in self.entities)
        self._feature_at = self._positions(program.features, layout)
        self._deviation_at = self._positions(program.deviations, layout)
        self._rows = np.full((2 * program.rows, len(self.entities)), np.nan)
        first = program.rows - len(program.facts)
        for index, row in enumerate(program.facts, start=first):
            self._rows[index] = [_fact(row, around, facts) for around in self.around]

    def fill(self, evidence: Evidence, seen: SeenReference) -> NDArray[np.float64]:
        """Return the rows of a window and, below them, the negated rows: shape (2 x rows, entities), NaN where absent.

        The array is used again for the next window. What the reference was asked is noted in *seen*.
        """
        program, rows = self._program, self._rows
        values = np.append(evidence.vector.values, np.nan)  # position -1 is the absent feature
        features, deviations = len(program.features), len(program.deviations)
        values.take(self._feature_at, out=rows[:features], mode="wrap")
        if deviations:
            rows[features : features + deviations] = self._deviations(values, evidence, seen)
        for index, row in enumerate(program.shares, start=features + deviations):
            rows[index] = share_of(row.subsystem, evidence.attribution)
        np.negative(rows[: program.rows], out=rows[program.rows :])
        return rows

    def _deviations(self, values: NDArray[np.float64], evidence: Evidence, seen: SeenReference) -> NDArray[np.float64]:
        there = values.take(self._deviation_at, mode="wrap")
        result = np.full(there.shape, np.nan)
        if evidence.expected is None:
            return result
        for row, column in np.argwhere(~np.isnan(there)).tolist():
            asked = self._program.deviations[row]
            entity = self.around[column][asked.kind]
            found = seen.lookup(asked.feature, entity) or evidence.expected.lookup(asked.feature, entity)
            if found is not None:
                seen.seen[(asked.feature, entity)] = found
                result[row, column] = deviation(float(there[row, column]), *found)
        return result

    def _positions(self, rows: Sequence[FeatureRow | DeviationRow], layout: FeatureLayout) -> NDArray[np.intp]:
        """Return the position of each feature in a vector, -1 where the host has none: shape (rows, entities)."""
        found = np.full((len(rows), len(self.entities)), -1, dtype=np.intp)
        for index, row in enumerate(rows):
            for column, around in enumerate(self.around):
                entity = around.get(row.kind)
                if entity is not None:
                    found[index, column] = layout.position.get(FeatureId(row.feature, entity), -1)
        return found


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
