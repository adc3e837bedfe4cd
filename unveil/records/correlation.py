"""Correlation: what several episodes mean together. What `schemas/correlation.schema.json` admits, parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.records.entity import EntityKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """A pattern over episodes of fingerprints. It has episodes of its own, by its name.

    Attributes:
        name, id: as a fingerprint has them; both kinds share one set of names.
        type: ``temporal`` (all of the fingerprints), ``temporal_ordered`` (in this order), ``value_count`` (different
            entities, fingerprints or hosts), ``event_count`` (how often they fired).
        fingerprints: names of those whose episodes count.
        group_by: an episode counts for the entity of this kind that it is about or that its match binds.
        count_of: of ``value_count``: ``entity``, ``fingerprint`` or ``host``.
        at_least: of the counts: how many.
        timespan_s: an episode counts while it fires and this long after.
        effect: ``report``, or ``no_remediation``: while it fires nothing is done about the episodes that it is made of.
        revision: digest over everything that changes evaluation.
        path: file it came from.
    """

    name: str
    id: str
    title: str
    status: str
    level: str
    description: str
    type: str
    fingerprints: tuple[str, ...]
    group_by: EntityKind
    timespan_s: float
    hold_s: float
    keep_firing_s: float
    count_of: str = "entity"
    at_least: int = 1
    effect: str = "report"
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    falsepositives: tuple[str, ...] = ()
    owner: str = ""
    author: str = ""
    date: str = ""
    revision: str = ""
    path: str = ""
