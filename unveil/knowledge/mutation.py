"""``kb test --mutate``: which small mistakes in a fingerprint would its own cases not notice?

Each mutant (`unveil.matching.mutants`) is run through the cases. One that passes them all survives: what it changed is
not tested. The score is the share of mutants that did not survive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.knowledge.testing import run_document
from unveil.matching.mutants import mutants

if TYPE_CHECKING:
    from unveil.knowledge.testing import Suite
    from unveil.records.fingerprint import Fingerprint


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


def mutate(suite: Suite, fingerprint: Fingerprint) -> MutationResult:
    """Run every mutant of a fingerprint through its cases; without cases every one survives."""
    document = suite.documents.get(fingerprint.name)
    survivors = []
    count = 0
    for what, mutant in mutants(fingerprint):
        count += 1
        if document is None or all(case.passed for case in run_document(suite.knowledge, mutant, document)):
            survivors.append(what)
    return MutationResult(fingerprint=fingerprint.name, mutants=count, survivors=tuple(survivors))
