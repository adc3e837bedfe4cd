"""``kb test --mutate``: which small mistakes in a fingerprint would its own cases not notice?

Each mutant (`unveil.matching.mutants`) is run through the cases. One that passes them all survives: what it changed is
not tested. The score is the share of mutants that did not survive.
"""

from __future__ import annotations

from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from unveil.knowledge.side_by_side import side_by_side
from unveil.knowledge.testing import read_suite, run_document
from unveil.matching.mutants import correlation_mutants, mutants
from unveil.records.correlation import Correlation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from unveil.knowledge.testing import Subject, Suite


MANY = 8
"""Fewer are done before another process has started."""


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


def mutate_all(
    root: str | Path, suite: Suite, subjects: Sequence[Subject], *, jobs: int, advance: Callable[[int], None]
) -> tuple[MutationResult, ...]:
    """Return the results of many, in their order, worked on by several processes.

    Args:
        root: the knowledge base that the suite was read from; each process reads it once.
        jobs: processes; one works here.
        advance: told how many are done.
    """
    if jobs <= 1 or len(subjects) < MANY:
        done = []
        for number, subject in enumerate(subjects, 1):
            done.append(mutate(suite, subject))
            advance(number)
        return tuple(done)
    names = [subject.name for subject in subjects]
    found: dict[str, MutationResult] = {}
    with side_by_side(_mutate_named, names, processes=jobs, begin=partial(_begin, str(root))) as futures:
        for future in as_completed(futures):
            result = future.result()
            found[result.fingerprint] = result
            advance(len(found))
    return tuple(found[name] for name in names)


_suite: Suite | None = None  # of a process of the pool


def _begin(root: str) -> None:
    global _suite  # what a process of the pool has for all that it is given
    _suite, _ = read_suite(root)


def _mutate_named(name: str) -> MutationResult:
    assert _suite is not None
    (subject,) = _suite.subjects({name})
    return mutate(_suite, subject)
