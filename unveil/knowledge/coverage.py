"""What the cases beside a fingerprint have seen of it: each clause both ways, each answer, each fix planned once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.records.match import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.knowledge.made_up import CaseResult
    from unveil.knowledge.testing import TestReport
    from unveil.records.fingerprint import Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseCoverage:
    """In how many cases a clause was true, false and unknown in the last window."""

    name: str
    match: int
    no_match: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FingerprintCoverage:
    """What the cases of one fingerprint have seen.

    Attributes:
        answers: how many cases expect *match*, *no_match* and *unknown*.
        planned: its remediations with the number of cases that plan them.
    """

    fingerprint: str
    answers: Mapping[str, int]
    clauses: tuple[ClauseCoverage, ...]
    planned: Mapping[str, int]

    @property
    def gaps(self) -> tuple[str, ...]:
        """Return what no case has seen, in words."""
        found = [f"no case expects {answer}" for answer, cases in self.answers.items() if not cases]
        for clause in self.clauses:
            found += [f"clause {clause.name} is never true"] if not clause.match else []
            found += [f"clause {clause.name} is never false"] if not clause.no_match else []
        return (*found, *(f"no case plans {name}" for name, cases in self.planned.items() if not cases))


def cover(fingerprint: Fingerprint, report: TestReport) -> FingerprintCoverage:
    """Return what the cases of a report have seen of a fingerprint. A case that failed counts like any other."""
    cases = [case for case in report.cases if case.fingerprint == fingerprint.name]
    expected = Counter(case.expected for case in cases)
    planned = Counter(case.planned for case in cases)
    return FingerprintCoverage(
        fingerprint=fingerprint.name,
        answers={str(answer): expected[answer] for answer in Answer},
        clauses=tuple(_clause(clause.name, cases) for clause in fingerprint.clauses),
        planned={name: planned[name] for name in fingerprint.remediations},
    )


def _clause(name: str, cases: list[CaseResult]) -> ClauseCoverage:
    seen = Counter(clause.answer for case in cases for clause in case.clauses if clause.name == name)
    return ClauseCoverage(
        name=name, match=seen[Answer.MATCH], no_match=seen[Answer.NO_MATCH], unknown=seen[Answer.UNKNOWN]
    )
