"""Fact: a slow state of the host (topology, a kernel setting, a power limit), and the table of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unveil.records.entity import HOST, Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.records.subsystem import Subsystem

FactValue = str | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactKind:
    """An entry of the catalogue of facts.

    Attributes:
        name: ``subsystem.fact``, e.g. ``memory.thp_enabled``.
        per: what kind of entity has one.
        type: one of text, number, boolean, list.
        unit: unit of a number.
    """

    name: str
    subsystem: Subsystem
    per: EntityKind
    type: str
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One state of one entity.

    Attributes:
        value: None where the host does not tell, with the *reason*.
        setting: address of the managed setting behind it (``file:/sys/…``), None where it cannot be set.
    """

    name: str
    entity: Entity = HOST
    value: FactValue | None
    reason: str | None = None
    setting: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FactTable:
    """All facts of one host at one time.

    Attributes:
        settings: raw text of each managed setting that was read (address → content), so that a plan can be drawn
            for a recorded host as well as for a live one.
    """

    facts: tuple[Fact, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    _index: dict[tuple[str, Entity], Fact] = field(init=False, default_factory=dict)
    _named: dict[str, list[Fact]] = field(init=False, default_factory=dict)  # once somebody asks

    def __post_init__(self) -> None:
        self._index.update({(fact.name, fact.entity): fact for fact in self.facts})

    def find(self, name: str, entity: Entity = HOST) -> Fact | None:
        """Return a fact, or None when the host has no such entity or fact."""
        return self._index.get((name, entity))

    def value(self, name: str, entity: Entity = HOST) -> FactValue | None:
        """Return the value of a fact, or None where it is absent."""
        fact = self._index.get((name, entity))
        return None if fact is None else fact.value

    def entities(self, kind: EntityKind) -> tuple[Entity, ...]:
        """Return every entity of a kind that some fact names, sorted."""
        return tuple(sorted({fact.entity for fact in self.facts if fact.entity.kind is kind}))

    def of(self, name: str) -> Iterable[Fact]:
        """Return the facts of one name over all entities."""
        if not self._named:
            for fact in self.facts:
                self._named.setdefault(fact.name, []).append(fact)
        return self._named.get(name, ())
