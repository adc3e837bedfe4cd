"""The names that a knowledge base may use: features and facts, and what kind of entity has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from unveil.features.catalogue import FEATURES
from unveil.records.fact_catalogue import FACTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.features.feature import Feature
    from unveil.records.entity import EntityKind
    from unveil.records.fact import FactKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogues:
    """Both catalogues, by name."""

    features: Mapping[str, Feature]
    facts: Mapping[str, FactKind]

    def kind_of(self, what: str, name: str) -> EntityKind | None:
        """Return what kind of entity has a ``feature`` or ``fact``, None for a name that is not known."""
        found = self.features.get(name) if what == "feature" else self.facts.get(name)
        return None if found is None else found.per


@cache
def catalogues() -> Catalogues:
    """Return the catalogues of this version."""
    return Catalogues(features=FEATURES, facts=FACTS)
