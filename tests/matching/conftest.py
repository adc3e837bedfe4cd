"""What the tests of this room are fed with: fingerprints, vectors and facts in as few words as possible."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from unveil.records.attribution import Attribution, FeatureShare
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable, FactValue
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.fingerprint import Clause, FactClause, FeatureClause, Fingerprint, ShareClause
from unveil.records.subsystem import Subsystem

Values = Mapping[tuple[str, Entity], float]


def feature(name: str, operator: str, threshold: float, **more: object) -> FeatureClause:
    """Return a clause of one name with its feature: ``memory.NAME.mean``."""
    clause = FeatureClause(
        name=name, feature=f"memory.{name}.mean", entity=None, operator=operator, threshold=threshold
    )
    return replace(clause, **more)  # type: ignore[arg-type]  # fields of the clause


def fact(name: str, operator: str, operand: FactValue, **more: object) -> FactClause:
    """Return a clause of one name with its fact: ``memory.NAME``."""
    clause = FactClause(name=name, fact=f"memory.{name}", entity=None, operator=operator, operand=operand)
    return replace(clause, **more)  # type: ignore[arg-type]  # fields of the clause


def share(name: str, operator: str, threshold: float, **more: object) -> ShareClause:
    """Return a clause on the share of memory."""
    clause = ShareClause(name=name, subsystem=Subsystem.MEMORY, operator=operator, threshold=threshold)
    return replace(clause, **more)  # type: ignore[arg-type]  # fields of the clause


def fingerprint(
    condition: str,
    *clauses: Clause,
    name: str = "some_fingerprint",
    group_by: EntityKind = EntityKind.HOST,
    hold_s: float = 0.0,
    keep_firing_s: float = 0.0,
    revision: str = "1",
) -> Fingerprint:
    """Return a fingerprint of which only what matching looks at is filled in."""
    return Fingerprint(
        name=name,
        id=name,
        title="",
        status="test",
        level="low",
        description="",
        group_by=group_by,
        clauses=clauses,
        condition=condition,
        hold_s=hold_s,
        keep_firing_s=keep_firing_s,
        subsystem=Subsystem.MEMORY,
        revision=revision,
    )


def vector(values: Values | None = None, *, window: int = 0, wall_s: float = 100.0, **host: float) -> FeatureVector:
    """Return a vector of features ``memory.NAME.mean`` of the host, and of any others in full."""
    everything = {FeatureId(f"memory.{name}.mean"): value for name, value in host.items()}
    everything |= {FeatureId(name, entity): value for (name, entity), value in (values or {}).items()}
    return FeatureVector(
        window=window,
        wall_s=wall_s,
        layout=FeatureLayout(tuple(everything)),
        values=np.array(list(everything.values()), dtype=np.float64),
    )


def facts(values: Mapping[tuple[str, Entity], FactValue | None] | None = None, **host: FactValue | None) -> FactTable:
    """Return a table of facts ``memory.NAME`` of the host, and of any others in full."""
    everything = {(f"memory.{name}", HOST): value for name, value in host.items()} | dict(values or {})
    return FactTable(tuple(Fact(name=name, entity=entity, value=value) for (name, entity), value in everything.items()))


def attribution(**shares: float) -> Attribution:
    """Return an attribution; without shares it has nothing to attribute."""
    moved = FeatureShare(
        feature=FeatureId("memory.some.mean"), subsystem=Subsystem.MEMORY, share=1.0, value=1.0, expected=0.0, sigma=3.0
    )
    return Attribution(
        window=0,
        features=(moved,) if shares else (),
        subsystems={subsystem: shares.get(str(subsystem), 0.0) for subsystem in Subsystem},
    )


class Reference(dict[tuple[str, Entity], tuple[float, float]]):
    """What is expected, written down; every question is noted."""

    def __init__(self, values: Mapping[tuple[str, Entity], tuple[float, float]] | None = None) -> None:
        super().__init__(values or {})
        self.asked: list[tuple[str, Entity]] = []

    def lookup(self, name: str, entity: Entity) -> tuple[float, float] | None:
        self.asked.append((name, entity))
        return self.get((name, entity))


@pytest.fixture(scope="session")
def build() -> SimpleNamespace:
    """Return the functions above: a test folder is no package to import them from."""
    return SimpleNamespace(
        feature=feature,
        fact=fact,
        share=share,
        fingerprint=fingerprint,
        vector=vector,
        facts=facts,
        attribution=attribution,
        reference=Reference,
    )


@pytest.fixture
def ids() -> Callable[[], str]:
    """Return a source of ids that counts: e000000000001, e000000000002, …"""
    numbers = itertools.count(1)
    return lambda: f"e{next(numbers):012x}"
