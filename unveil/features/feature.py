"""Feature: an entry of the catalogue, and the small language in which entries say how they are computed.

A value is a ratio of two sums, of the channels of one entity::

    value = scale * sum(numerator) / sum(denominator)

and a host-level feature may be taken *across* the values of all CPUs, NICs, GPUs … (the highest, the imbalance). Two
rules of absence hold everywhere. Over the instances of one quantity what is present counts: a NIC that came a moment
ago does not hide the others. Over quantities all must be present: a share whose total lacks a part is a wrong share.
A ratio to nothing (no faults at all, so no share of them) is absent, not zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from unveil.records.entity import Entity, EntityKind
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from unveil.records.fact import FactTable

SHARE = "share"  # the unit of what lies in 0..1


class Stat(StrEnum):
    """What is made of one channel's samples in a window; see ``unveil.features.statistics``."""

    RATE = "rate"  # of a counter, per second
    UNEVENNESS = "unevenness"  # of a counter: standard deviation of its rate from sample to sample
    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    LAST = "last"
    STD = "std"
    SLOPE = "slope"  # per second


class Across(StrEnum):
    """What is made of the values of all entities of a kind."""

    LOWEST = "lowest"
    AVERAGE = "average"
    HIGHEST = "highest"
    IMBALANCE = "imbalance"  # highest minus median: one that does the work of many; absent for a single entity


class Trouble(StrEnum):
    """Which way a feature moves when something is wrong."""

    UP = "up"
    DOWN = "down"
    EITHER = "either"


Labels = Mapping[str, str]

_SERVED = {
    "softirq_net_tx": Subsystem.NETWORK, "softirq_net_rx": Subsystem.NETWORK,
    "softirq_block": Subsystem.STORAGE, "softirq_irq_poll": Subsystem.STORAGE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picked:
    """Which channels belong to an entity: those whose first label of ``over`` is one of *keys* and that *fit*."""

    keys: frozenset[str]
    fit: Callable[[Labels], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Pick:
    """A choice of channels by facts: *choose* gives None where they do not tell. It reads only the *facts* named."""

    facts: tuple[str, ...]
    choose: Callable[[FactTable, Entity], Picked | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """The channels of one metric that belong to the entity, each reduced to a statistic, summed.

    Attributes:
        over: labels that the channels have; empty for the host's own total, which has none. The host's value of a
            metric that is only there per NIC or disk is the sum over the physical ones.
        where: qualifiers that they have besides, with their values, e.g. the vector of a softirq.
        loose: they may have further labels.
        every: the host's sum is over virtual NICs and disks, too: what moves between its own guests is counted.
        whole: the host's sum even where the feature is per entity: the denominator of "its part of all".
        pick: which channels belong to the entity, where that is a matter of facts and not of a label.
    """

    metric: str
    stat: Stat
    over: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    loose: bool = False
    every: bool = False
    whole: bool = False
    pick: Pick | None = None

    def whole_for(self, kind: EntityKind) -> bool:
        """Return whether an entity of a kind gets the host's value, having no channels of its own."""
        return self.pick is None and (self.whole or kind not in self.over)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactNumber:
    """The number that a fact holds: of the entity, or of the host."""

    fact: str
    per: EntityKind = EntityKind.HOST

    def whole_for(self, kind: EntityKind) -> bool:
        """Return whether an entity of a kind gets the host's value."""
        return kind is not self.per


Term = Channels | FactNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """How a feature is computed.

    Attributes:
        denominator: empty for one.
        each, across: the kind of entity that the value is computed for, and what is made of all these values.
    """

    numerator: tuple[Term, ...]
    denominator: tuple[Term, ...] = ()
    scale: float = 1.0
    each: EntityKind = EntityKind.HOST
    across: Across | None = None

    @property
    def channels(self) -> tuple[Channels, ...]:
        """Return every selection of channels that the formula reads."""
        return tuple(term for term in (*self.numerator, *self.denominator) if isinstance(term, Channels))

    @property
    def facts(self) -> frozenset[str]:
        """Return the name of every fact that the formula reads."""
        numbers = {term.fact for term in (*self.numerator, *self.denominator) if isinstance(term, FactNumber)}
        return frozenset(numbers.union(*(term.pick.facts for term in self.channels if term.pick)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """An entry of the catalogue.

    Attributes:
        name: ``subsystem.metric.stat``.
        per: the kind of entity that has one.
        unit: of the value; ``share`` is what lies in 0..1.
        low, high: where values lie.
        trouble: which way it moves when something is wrong.
        detect: whether the detectors see it: host-level, and no mere level that drifts with whoever uses the host.
        log: whether it is skewed, so that detectors compare it on the scale of log1p.
        meaning: one line for a person.
    """

    name: str
    per: EntityKind
    unit: str
    low: float
    high: float
    trouble: Trouble
    detect: bool
    log: bool
    meaning: str
    formula: Formula

    @property
    def subsystem(self) -> Subsystem:
        """Return the subsystem: the first word of the name, or for a softirq the one that it is run for."""
        first, metric, _ = self.name.split(".", 2)
        return _SERVED.get(metric) or Subsystem(first)


def feature(
    name: str,
    meaning: str,
    formula: Formula,
    *,
    unit: str = SHARE,
    per: EntityKind | None = None,
    trouble: Trouble = Trouble.UP,
    detect: bool | None = None,
    log: bool | None = None,
    signed: bool = False,
) -> Feature:
    """Return an entry with what mostly follows from the rest filled in.

    Args:
        unit: everything but a share may be any size.
        per: the host when values are taken across entities, else the formula's kind.
        detect: every host-level feature, unless said otherwise.
        log: everything but shares and what may be negative.
        signed: whether values may be below zero.
    """
    if per is None:
        per = EntityKind.HOST if formula.across else formula.each
    return Feature(
        name=name,
        per=per,
        unit=unit,
        low=-math.inf if signed else 0.0,
        high=1.0 if unit == SHARE else math.inf,
        trouble=trouble,
        detect=per is EntityKind.HOST if detect is None else detect,
        log=unit != SHARE and not signed if log is None else log,
        meaning=meaning,
        formula=formula,
    )
