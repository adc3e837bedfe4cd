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
    """A test on a feature: absolute (``gte: 0.5``), or on how far it is from what is expected (``deviates: down``).

    What is compared is the feature, the feature divided by another one (*per*), or its slope (*slope_s*).

    Attributes:
        entity: None for the entity of the fingerprint's ``group_by``; ``host`` forces the host-level feature.
        operator: ``lt lte gt gte eq neq`` with *threshold*, or ``up down`` with *threshold* in *unit*.
        optional: an absent feature makes the clause false instead of unknown.
        per: feature to divide by, empty for none; per_entity: whose, as *entity*.
        slope_s: seconds over which the slope (per second) is taken, 0 for the value itself.
        against: of ``up down``: ``past``, this host's own reference, or ``peers``, the others of its kind now.
        unit: of ``up down``: ``sigma``, robust standard deviations, or ``ratio``, a part of what is expected.
    """

    name: str
    feature: str
    entity: EntityKind | None
    operator: str
    threshold: float
    optional: bool = False
    note: str = ""
    per: str = ""
    per_entity: EntityKind | None = None
    slope_s: float = 0.0
    against: str = "past"
    unit: str = "sigma"


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
