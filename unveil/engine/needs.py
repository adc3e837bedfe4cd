"""What a fingerprint needs of a host before it can answer anything but *unknown*: metrics and facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.features.catalogue import FEATURES
from unveil.features.progress import CONFIDENCE, RATE, STEP
from unveil.records.fingerprint import FactClause, FeatureClause

if TYPE_CHECKING:
    from unveil.records.fingerprint import Fingerprint

PROGRESS_METRICS = frozenset((RATE, STEP, CONFIDENCE))  # no host is blind to them for good: work may begin any time


def needs(fingerprint: Fingerprint) -> frozenset[str]:
    """Return the names of the metrics and facts that its clauses read, optional clauses left out."""
    names: set[str] = set()
    for clause in fingerprint.clauses:
        if clause.optional:
            continue
        if isinstance(clause, FactClause):
            names.add(clause.fact)
        elif isinstance(clause, FeatureClause):
            for feature in filter(None, (clause.feature, clause.per)):
                formula = FEATURES[feature].formula
                names |= {channels.metric for channels in formula.channels} - PROGRESS_METRICS
                names |= formula.facts
    return frozenset(names)
