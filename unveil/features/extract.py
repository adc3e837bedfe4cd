"""Extractor: a window and the facts in, a vector of features out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.features.plan import Plan, Planner
from unveil.features.roster import PHYSICAL_NIC, Roster, Shelf
from unveil.records.entity import EntityKind
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.features.feature import Feature, Formula, Term
    from unveil.records.entity import Entity
    from unveil.records.fact import FactTable
    from unveil.records.sample import Layout
    from unveil.records.window import Window


class Extractor:
    """Turns windows into vectors by a plan that it keeps while neither the channels nor the facts change.

    The vector begins with the host's features for the detectors, in the order of the catalogue, on every host: what
    a host does not have is NaN there. Then come the host's other features, then those of each entity.
    """

    def __init__(self, features: Mapping[str, Feature]) -> None:
        terms: dict[Term, Term] = {}
        self._formulas = {name: _shared(feature.formula, terms) for name, feature in features.items()}
        host = [feature for feature in features.values() if feature.per is EntityKind.HOST]
        self._host = [each for each in host if each.detect] + [each for each in host if not each.detect]
        self._host_ids = [FeatureId(feature.name) for feature in self._host]
        self._parts = [feature for feature in features.values() if feature.per is not EntityKind.HOST]
        self._ids: list[dict[str, FeatureId]] = [{} for _ in self._parts]  # by key of the entity
        self._shelves: dict[tuple[int, Layout], Shelf] = {}
        self._layouts: tuple[Layout, ...] = ()
        self._facts: FactTable | None = None
        self._names = frozenset({PHYSICAL_NIC}.union(*(feature.formula.facts for feature in features.values())))
        self._read: tuple[tuple[str, Entity, object], ...] = ()  # the facts of these names
        self._plan: Plan | None = None
        self._layout = FeatureLayout(())

    def extract(self, window: Window, facts: FactTable) -> FeatureVector:
        """Return the features of a window.

        The layout of the vector is the same object as before as long as the same features of the same entities are
        in it, whatever else changed.
        """
        layouts = tuple(block.layout for block in window.blocks)
        same = self._plan is not None and _same(layouts, self._layouts)
        if facts is not self._facts:
            self._facts = facts
            read = tuple((fact.name, fact.entity, fact.value) for fact in facts.facts if fact.name in self._names)
            same, self._read = same and read == self._read, read
        if self._plan is None or not same:
            self._plan, self._layouts = self._draw(layouts, facts), layouts
        return FeatureVector(
            window=window.index, wall_s=window.wall_s, layout=self._layout, values=self._plan.run(window.blocks)
        )

    def _draw(self, layouts: tuple[Layout, ...], facts: FactTable) -> Plan:
        roster = Roster(layouts, facts, self._shelves)
        planner = Planner(roster)
        hosts = roster.entities(EntityKind.HOST)
        ids = list(self._host_ids)
        registers = [planner.registers(self._formulas[feature.name], hosts)[0] for feature in self._host]
        ceiling = [feature.high for feature in self._host]
        for feature, known in zip(self._parts, self._ids, strict=True):
            entities = roster.entities(feature.per)
            # Where entities come and go each second, layouts that are kept for a while share what they have in common.
            own = {entity.key: known.get(entity.key) or FeatureId(feature.name, entity) for entity in entities}
            known.clear()
            known.update(own)
            ids += own.values()
            registers += planner.registers(self._formulas[feature.name], entities)
            ceiling += [feature.high] * len(entities)
        if self._layout.ids != tuple(ids):
            self._layout = FeatureLayout(tuple(ids))
        return planner.draw(registers, ceiling)


def _shared(formula: Formula, terms: dict[Term, Term]) -> Formula:
    """Return a formula whose terms are the very ones of other formulas: a planner tells them apart by identity."""
    above, below = (
        tuple(terms.setdefault(term, term) for term in part) for part in (formula.numerator, formula.denominator)
    )
    return replace(formula, numerator=above, denominator=below)


def _same(left: tuple[Layout, ...], right: tuple[Layout, ...]) -> bool:
    return len(left) == len(right) and all(one is other for one, other in zip(left, right, strict=True))
