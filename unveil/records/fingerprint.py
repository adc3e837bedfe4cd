"""Fingerprint: the declared signature of one inefficiency. What `schemas/fingerprint.schema.json` admits, parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.entity import EntityKind
    from unveil.records.fact import FactValue
    from unveil.records.subsystem import Subsystem


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureClause:
    """A test on a feature: absolute (``gte: 0.5``) or against this host's own reference (``deviates: down``).

    Attributes:
        entity: None for the entity of the fingerprint's ``group_by``; ``host`` forces the host-level feature.
        operator: ``lt lte gt gte eq neq`` with *threshold*, or ``up down`` with *threshold* in sigmas.
        optional: an absent feature makes the clause false instead of unknown.
    """

    name: str
    feature: str
    entity: EntityKind | None
    operator: str
    threshold: float
    optional: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactClause:
    """A test on a fact: ``eq neq in not_in lt lte gt gte`` with *operand*."""

    name: str
    fact: str
    entity: EntityKind | None
    operator: str
    operand: FactValue
    optional: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareClause:
    """A bound on a subsystem's share in the attribution. Unknown while there is no attribution."""

    name: str
    subsystem: Subsystem
    operator: str
    threshold: float
    optional: bool = False
    note: str = ""


Clause = FeatureClause | FactClause | ShareClause


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """A known inefficiency.

    Attributes:
        name: file stem and reference name.
        id: UUIDv4, for ever.
        status: experimental, test, stable, deprecated.
        level: informational, low, medium, high, critical.
        group_by: what kind of entity it is evaluated for.
        condition: the boolean expression as written, over clause names: ``and or not``, parentheses,
            ``N of PATTERN``, ``all of PATTERN``.
        hold_s: seconds it must match without a break before it fires (``for``).
        keep_firing_s: seconds an episode outlives its last match.
        remediations: names, in order of preference.
        revision: digest over everything that changes evaluation.
        path: file it came from.
    """

    name: str
    id: str
    title: str
    status: str
    level: str
    description: str
    group_by: EntityKind
    clauses: tuple[Clause, ...]
    condition: str
    hold_s: float
    keep_firing_s: float
    subsystem: Subsystem
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    falsepositives: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    remediations: tuple[str, ...] = ()
    owner: str = ""
    author: str = ""
    date: str = ""
    revision: str = ""
    path: str = ""
    metadata: Mapping[str, str] | None = None
