"""``kb test --mutate``: which small mistakes in a fingerprint would its own cases not notice?

Each mutant (`unveil.matching.mutants`) is run through the cases. One that passes them all survives: what it changed is
not tested. The score is the share of mutants that did not survive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.knowledge.testing import run_document
from unveil.matching.mutants import correlation_mutants, mutants
from unveil.records.correlation import Correlation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.knowledge.testing import Subject, Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationResult:
    """What became of the mutants of one fingerprint.

    Attributes:
        mutants: how many there were.
        survivors: what was changed in those that passed every case.
    """

    fingerprint: str
    mutants: int
    survivors: tuple[str, ...]

    @property
    def score(self) -> float:
        """Return the share of mutants that a case noticed, in per cent."""
        return 100.0 * (self.mutants - len(self.survivors)) / max(1, self.mutants)


def mutate(suite: Suite, subject: Subject) -> MutationResult:
    """Run every mutant of a fingerprint or correlation through its cases; without cases every one survives."""
    document = suite.documents.get(subject.name)
    survivors = []
    count = 0
    for what, mutant in _mutants(subject):
        count += 1
        if document is None or all(case.passed for case in run_document(suite.knowledge, mutant, document)):
            survivors.append(what)
    return MutationResult(fingerprint=subject.name, mutants=count, survivors=tuple(survivors))


def _mutants(subject: Subject) -> Iterator[tuple[str, Subject]]:
    return correlation_mutants(subject) if isinstance(subject, Correlation) else mutants(subject)
