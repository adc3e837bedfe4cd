"""The figures of a backtest, counted by hand."""

from __future__ import annotations

from math import inf

import pytest

from unveil.knowledge.backtest import ANY, DAY_S, Fire, SeenWindow, Trace, labels_of, report, unmet
from unveil.knowledge.labels import Expectation, Interval

FAULT, OTHER = "one_fault", "other_fault"
NAMES = (FAULT, OTHER)


def interval(from_s: float, to_s: float, *labels: str) -> Interval:
    return Interval(from_s=from_s, to_s=to_s, labels=frozenset(labels))


def fire(started_s: float, name: str = FAULT) -> Fire:
    return Fire(fingerprint=name, entity="host", started_s=started_s, fired_s=started_s + 3)


def trace(*fires: Fire, anomalous: range = range(0), matched: range = range(0), name: str = "run.parquet") -> Trace:
    """A hundred seconds: healthy to 50 s, the fault from 50 to 80 s, then not labelled; windows end each second."""
    return Trace(
        recording=name,
        seconds=100.0,
        windows=tuple(
            SeenWindow(
                start_s=end - 3.0, end_s=float(end), anomalous=end in anomalous,
                matched=frozenset({FAULT} if end in matched else ()),
            )
            for end in range(3, 101)
        ),
        fires=fires,
        actions=(),
        intervals=(interval(0, 50), interval(50, 80, FAULT)),
    )  # fmt: skip


def test_the_four_figures_are_those_of_the_paper() -> None:
    # Fully in the fault: the windows that end from 53 to 80 s. Detected there 61..80 = 20, matched 56..70 = 15,
    # both 61..70 = 10. Healthy, 3..50: detected 41..50 = 10, of which matched 49 and 50.
    one = trace(anomalous=range(41, 51), matched=range(49, 51))
    other = trace(anomalous=range(61, 81), matched=range(56, 71), name="other.parquet")
    score = report([one, other], NAMES).scores[0]
    assert score.hit_rate == pytest.approx(10 / 20)
    assert score.coverage == pytest.approx(10 / 15)
    assert score.agreement == pytest.approx(2 * 10 / 35)  # nothing to agree on in the first recording
    assert score.contamination == pytest.approx(2 / 10)


def test_without_anything_to_take_them_from_there_are_no_figures() -> None:
    score = report([trace()], NAMES).scores[1]
    assert (score.intervals, score.hit_rate, score.coverage, score.agreement) == (0, None, None, None)
    assert score.contamination is None
    none_healthy = Trace(
        recording="r", seconds=9.0, windows=(), fires=(), actions=(), intervals=(interval(0, inf, FAULT),)
    )
    assert report([none_healthy], NAMES).scores[0].false_per_day is None


@pytest.mark.parametrize(
    ("started_s", "labels"),
    [
        (20, {"healthy"}),
        (50, {"healthy"}),
        (51, {FAULT}),  # its window began before the fault, and ended in it
        (80, {FAULT}),
        (82, {FAULT}),  # its window began in the fault
        (83, set()),
        (95, set()),
    ],
)
def test_a_fire_belongs_to_the_time_in_which_its_first_window_was(started_s: float, labels: set[str]) -> None:
    one = fire(started_s)
    assert labels_of(trace(one), one) == labels


def test_fires_are_counted_where_they_belong() -> None:
    found = report([trace(fire(20), fire(55), fire(70), fire(60, OTHER), fire(95))], NAMES)
    one, other, together = found.scores
    assert (one.intervals, one.found, one.first_s, one.fires, one.false_fires) == (1, 1, (8.0,), 2, 1)
    assert (other.fires, other.other_fires, other.false_fires) == (0, 1, 0)
    assert (together.fingerprint, together.false_fires) == (ANY, 1)
    assert one.false_per_day == pytest.approx(DAY_S / 50)
    assert one.false_low is not None
    assert one.false_high is not None
    assert one.false_low < one.false_per_day < one.false_high
    assert found.confusion == {"healthy": {FAULT: 1}, FAULT: {FAULT: 2, OTHER: 1}}
    assert found.unexpected == (
        "run.parquet: one_fault on host at 23 s, in healthy time",
        "run.parquet: other_fault on host at 63 s, in the time of one_fault",
    )
    assert found.missed == ()
    assert found.healthy_s == 50.0


def test_a_fault_that_nothing_found_is_missed() -> None:
    assert report([trace()], NAMES).missed == ("run.parquet: one_fault from 50 s",)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (Expectation(fingerprint=FAULT, at_least=2, at_most=2, first_within_s=8.0), None),
        (Expectation(fingerprint=FAULT, at_least=3), "one_fault: 2 fires, at least 3 expected"),
        (Expectation(fingerprint=FAULT, at_most=1), "one_fault: 2 fires, at most 1 expected"),
        (Expectation(fingerprint=FAULT, first_within_s=7.0),
         "one_fault: run.parquet from 50 s: fired after 8.0 s, within 7 s expected"),
        (Expectation(fingerprint=OTHER, at_most=0), None),
        (Expectation(fingerprint=OTHER, first_within_s=7.0),
         "other_fault: no interval has its label, so nothing is within 7 s"),
        (Expectation(fingerprint=FAULT, recording="r?n.*", at_least=2), None),
        (Expectation(fingerprint=FAULT, recording="absent*", at_most=0), "one_fault in absent*: no such recording"),
    ],
)  # fmt: skip
def test_an_expectation_that_does_not_hold_is_told(wanted: Expectation, says: str | None) -> None:
    assert list(unmet([wanted], [trace(fire(55), fire(70))])) == ([says] if says else [])


def test_what_never_fired_is_late() -> None:
    wanted = Expectation(fingerprint=FAULT, first_within_s=7.0)
    assert list(unmet([wanted], [trace()])) == ["one_fault: run.parquet from 50 s: it never fired, within 7 s expected"]


def test_all_fingerprints_together_are_held_to_a_fault_that_none_of_them_answers() -> None:
    unanswered = (Interval(from_s=0, to_s=10, labels=frozenset({"no_such_fingerprint"})),)
    windows = tuple(
        SeenWindow(start_s=at, end_s=at + 3, anomalous=at < 4, matched=frozenset({OTHER} if at == 3 else ()))
        for at in range(8)
    )
    seen = Trace(recording="run", seconds=10, windows=windows, fires=(), actions=(), intervals=unanswered)
    one, other, together = report([seen], NAMES).scores
    assert (one.hit_rate, other.hit_rate, together.hit_rate) == (None, None, 0.25)
    assert (together.coverage, together.agreement) == (1.0, 2 / 5)
