"""``kb scorecard``: how far each fingerprint is proven, on one line, and what it lacks to be called stable.

The bar for ``stable`` is the one that docs/AUTHORING.md gives: its cases notice nearly every mistake, each look-alike
that it names has a case, a recording or a real kernel showed it, recordings show it where it is and nowhere else, and
its source can be read by anyone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.records.match import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unveil.knowledge.backtest import Score
    from unveil.knowledge.mutation import MutationResult
    from unveil.knowledge.testing import TestReport
    from unveil.records.fingerprint import Fingerprint

LEAST_MUTATION = 95.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is known about one fingerprint; None where nothing was measured.

    Attributes:
        cases, failed: beside it, and those of them that fail.
        look_alikes: cases that expect no match.
        mutation: share of mutants that the cases notice, in per cent.
        intervals, found: labelled with its fault on the recordings; those in which it fired.
        false_fires: in healthy time.
        false_high: upper end of the 95 % interval of false fires per host-day.
        seen, wrong: episodes in the journal of this host, and those of them that a person marked as wrong.
        proof: the test that saw it on a real kernel, or the recording that a case expects it on; empty without one.
        references: links to its sources.
        fixes: names of its remediations.
    """

    fingerprint: str
    subsystem: str
    status: str
    cases: int
    failed: int
    look_alikes: int
    mutation: float | None
    intervals: int
    found: int
    false_fires: int
    false_high: float | None
    seen: int | None
    wrong: int | None
    proof: str
    references: int
    fixes: tuple[str, ...]

    @property
    def lacks(self) -> tuple[str, ...]:
        """Return what keeps it from being stable, in words."""
        told = (
            (self.failed or not self.cases, "cases that pass" if self.cases else "cases"),
            (not self.look_alikes, "a look-alike's case"),
            (self.mutation is not None and self.mutation < LEAST_MUTATION, f"{LEAST_MUTATION:g} % of mutants"),
            (not self.proof and not self.found, "a proof: a recording, or a test on a real kernel"),
            (self.found < self.intervals, "no miss"),
            (self.false_fires, "no false fire"),
            (self.wrong, "no episode marked as wrong"),
            (not self.references, "a reference"),
        )
        return tuple(what for lacking, what in told if lacking)


def cards(
    fingerprints: Sequence[Fingerprint],
    report: TestReport,
    mutated: Sequence[MutationResult],
    scores: Sequence[Score],
    hits: Mapping[str, Mapping[str, int]] | None,
) -> tuple[Card, ...]:
    """Return the card of each fingerprint.

    Args:
        mutated: empty when no mutants were made.
        scores: of a backtest; empty when none was run.
        hits: fingerprint → ``episodes`` and ``false_positives``, None without a journal.
    """
    mutation = {each.fingerprint: each.score for each in mutated}
    by_name = {each.fingerprint: each for each in scores}
    return tuple(_card(each, report, mutation.get(each.name), by_name.get(each.name), hits) for each in fingerprints)


def _card(
    fingerprint: Fingerprint,
    report: TestReport,
    mutation: float | None,
    score: Score | None,
    hits: Mapping[str, Mapping[str, int]] | None,
) -> Card:
    own = [case for case in report.cases if case.fingerprint == fingerprint.name]
    shown = [case for case in own if case.recording and case.expected == Answer.MATCH and case.passed]
    seen = None if hits is None else hits.get(fingerprint.name, {})
    return Card(
        fingerprint=fingerprint.name,
        subsystem=fingerprint.subsystem,
        status=fingerprint.status,
        cases=len(own),
        failed=sum(not case.passed for case in own),
        look_alikes=sum(case.expected == Answer.NO_MATCH for case in own),
        mutation=mutation,
        intervals=0 if score is None else score.intervals,
        found=0 if score is None else score.found,
        false_fires=0 if score is None else score.false_fires,
        false_high=None if score is None else score.false_high,
        seen=None if seen is None else seen.get("episodes", 0),
        wrong=None if seen is None else seen.get("false_positives", 0),
        proof=(fingerprint.metadata or {}).get("proof", "") or next((each.recording for each in shown), ""),
        references=len(fingerprint.references),
        fixes=fingerprint.remediations,
    )
