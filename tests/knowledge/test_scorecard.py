"""A card says what is proven of a fingerprint, and what it lacks to be called stable."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.knowledge.backtest import Score
from unveil.knowledge.mutation import MutationResult
from unveil.knowledge.scorecard import cards
from unveil.knowledge.testing import read_suite, run_suite

if TYPE_CHECKING:
    from pathlib import Path

PROOF = "a proof: a recording, or a test on a real kernel"


def score(found: int, false: int = 0) -> Score:
    return Score(
        fingerprint="quota_throttling", intervals=2, found=found, first_s=(), fires=found, other_fires=0,
        false_fires=false, hit_rate=None, coverage=None, agreement=None, contamination=None, false_per_day=0.0,
        false_low=0.0, false_high=3.0,
    )  # fmt: skip


def test_what_is_proven_and_what_is_lacking(kb: Path) -> None:
    suite, _ = read_suite(kb)
    assert suite is not None
    fingerprints = suite.fingerprints({"quota_throttling"})
    report = run_suite(suite, {"quota_throttling"})
    (card,) = cards(fingerprints, report, (), (), None)
    assert (card.cases, card.failed, card.look_alikes, card.references, card.fixes) == (3, 0, 1, 1, ("raise_quota",))
    assert (card.mutation, card.seen, card.lacks) == (None, None, (PROOF,))
    weak = MutationResult(fingerprint="quota_throttling", mutants=10, survivors=("one",))
    hits = {"quota_throttling": {"episodes": 5, "false_positives": 1}}
    (card,) = cards(fingerprints, report, (weak,), (score(1, false=1),), hits)
    assert card.lacks == (
        "95 % of mutants", "no miss", "no false fire", "no episode marked as wrong",
    )  # fmt: skip
    good = MutationResult(fingerprint="quota_throttling", mutants=10, survivors=())
    (card,) = cards(fingerprints, report, (good,), (score(2),), {})
    assert card.lacks == ()
    seen = replace(fingerprints[0], metadata={"proof": "tests/there.py::test_it"})
    (card,) = cards((seen,), report, (good,), (), None)
    assert (card.proof, card.lacks) == ("tests/there.py::test_it", ())
    recorded = replace(report.cases[0], recording="demo")
    (card,) = cards(fingerprints, replace(report, cases=(*report.cases, recorded)), (good,), (), None)
    assert (card.proof, card.lacks) == ("demo", ())
