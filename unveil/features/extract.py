"""Extractor: a window and the facts in, a vector of features out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.features.plan import Plan, Planner
from unveil.features.roster import PHYSICAL_NIC, Roster
from unveil.records.entity import HOST, EntityKind
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.features.feature import Feature
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
        host = [feature for feature in features.values() if feature.per is EntityKind.HOST]
        self._host = [each for each in host if each.detect] + [each for each in host if not each.detect]
        self._host_ids = [FeatureId(feature.name) for feature in self._host]
        self._parts = [feature for feature in features.values() if feature.per is not EntityKind.HOST]
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
        roster = Roster(layouts, facts)
        # Where entities come and go each second, layouts that are kept for a while share what they have in common.
        known = {(each.name, each.entity): each for each in self._layout.ids[len(self._host_ids) :]}
        planner = Planner(roster)
        ids = list(self._host_ids)
        registers = [planner.register(feature.formula, HOST) for feature in self._host]
        ceiling = [feature.high for feature in self._host]
        for feature in self._parts:
            for entity in roster.entities(feature.per):
                ids.append(known.get((feature.name, entity)) or FeatureId(feature.name, entity))
                registers.append(planner.register(feature.formula, entity))
                ceiling.append(feature.high)
        if self._layout.ids != tuple(ids):
            self._layout = FeatureLayout(tuple(ids))
        return planner.draw(registers, ceiling)


def _same(left: tuple[Layout, ...], right: tuple[Layout, ...]) -> bool:
    return len(left) == len(right) and all(one is other for one, other in zip(left, right, strict=True))
