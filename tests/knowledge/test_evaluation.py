"""Scores of detectors on labelled windows: what counts, what does not, and how sure it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.knowledge.backtest import Fire, SeenWindow, Trace
from unveil.knowledge.evaluation import AFTER, AFTER_INERT, BEFORE, NO_FAULT, Counts, Matched, score
from unveil.knowledge.labels import Interval

FAULT = "reduced_huge_page_coverage"


def trace(said: str, *, name: str = "run", fault: tuple[float, float] | None = (10, 20)) -> Trace:
    """Return a recording with one window a second: ``!`` anomalous, ``.`` normal, ``?`` unknown."""
    end = len(said) + 3.0
    faulty = () if fault is None else (Interval(from_s=fault[0], to_s=fault[1], labels=frozenset({FAULT})),)
    healthy = Interval(from_s=0, to_s=fault[0] if fault else end, labels=frozenset())
    return Trace(
        recording=name,
        seconds=end,
        windows=tuple(
            SeenWindow(start_s=at, end_s=at + 3, anomalous=each == "!", matched=frozenset(), judged=each != "?")
            for at, each in enumerate(said)
        ),
        fires=(),
        actions=(),
        intervals=(healthy, *faulty),
    )


def test_windows_count_for_the_interval_that_they_lie_in_entirely() -> None:
    told = score("r", 24, [trace("...!....!!" + "!!....!!!!")], [FAULT])
    # Healthy: windows 0 to 7 (7 ends at 10); faulty: 10 to 17; 8 and 9 are half of one and half of the other.
    assert told.counts == Counts(found=4, missed=4, false=1, quiet=7)
    assert told.counts.precision == pytest.approx(4 / 5)
    assert told.counts.recall == pytest.approx(1 / 2)
    assert told.counts.f1 == pytest.approx(8 / 13)
    assert told.counts.false_share == pytest.approx(1 / 8)
    assert told.by_label == {FAULT: Counts(found=4, missed=4)}


def test_the_first_alarm_is_timed_from_the_start_of_the_fault() -> None:
    told = score("r", 24, [trace("." * 12 + "!!")], [FAULT])
    assert (told.first_s, told.seen, told.faults) == (5.0, 1, 1)
    assert score("r", 24, [trace("." * 20)], [FAULT]).first_s is None


def test_an_unknown_verdict_is_no_quiet_window_but_misses_a_fault() -> None:
    told = score("r", 24, [trace("????...." + "?" * 12)], [FAULT])
    assert told.counts == Counts(found=0, missed=8, false=0, quiet=4)


def test_a_run_of_false_alarms_is_one_false_alarm_over_the_time_that_was_judged() -> None:
    told = score("r", 24, [trace("!!..!!!.." + "." * 11, fault=None)], [FAULT])
    assert (told.false_alarms.count, told.false_alarms.watched_s) == (2, 22)
    assert told.false_a_day == pytest.approx(2 * 86_400 / 22)
    assert told.false_low is not None
    assert told.false_high is not None
    assert told.false_most is not None
    assert told.false_low < told.false_a_day < told.false_most < told.false_high
    warming_up = score("r", 24, [trace("?" * 15 + "." * 5, fault=None)], [FAULT]).false_alarms
    assert (warming_up.count, warming_up.watched_s) == (0, 5)


def test_no_false_alarm_in_some_time_is_at_most_three_in_it() -> None:
    told = score("r", 24, [trace("." * 28, fault=None)] * 288, [FAULT])  # half a minute each
    assert (told.false_alarms.count, told.false_alarms.watched_s, told.false_a_day) == (0, 8640, 0)
    assert told.false_most == pytest.approx(30, rel=0.002)
    none = score("r", 24, [trace("?" * 20, fault=None)], [FAULT])
    assert (none.false_a_day, none.false_low, none.false_most) == (None, None, None)


def test_an_alarm_that_outlasts_its_fault_is_one_false_alarm_and_one_that_begins_anew_another() -> None:
    after = Interval(from_s=20, to_s=40, labels=frozenset())
    faulty = trace("." * 12 + "!" * 12 + "..!" + "." * 5)
    told = score("r", 24, [replace(faulty, intervals=(*faulty.intervals, after))], [FAULT]).false_alarms
    assert told.by_place == {NO_FAULT: 0, BEFORE: 0, AFTER: 2, AFTER_INERT: 0}
    through = trace("." * 6 + "!" * 18 + "." * 4)  # it began before the fault and went on after it
    told = score("r", 24, [replace(through, intervals=(*through.intervals, after))], [FAULT]).false_alarms
    assert told.by_place == {NO_FAULT: 0, BEFORE: 1, AFTER: 0, AFTER_INERT: 0}


def test_what_alarms_after_something_that_cost_nothing_is_told_apart() -> None:
    """What is not labelled between two healthy stretches was done to the host, and cost nothing."""
    intervals = (Interval(from_s=0, to_s=10, labels=frozenset()), Interval(from_s=20, to_s=40, labels=frozenset()))
    told = score("r", 24, [replace(trace("." * 12 + "!" * 12 + "." * 8, fault=None), intervals=intervals)], [FAULT])
    assert told.false_by_place[AFTER_INERT] == Counts(false=4, quiet=8)
    assert told.false_by_place[NO_FAULT] == Counts(false=0, quiet=8)
    assert told.false_alarms.by_place == {NO_FAULT: 0, BEFORE: 0, AFTER: 0, AFTER_INERT: 1}


def test_without_a_fault_there_is_no_f1_and_without_healthy_time_no_false_alarm() -> None:
    assert score("r", 24, [trace("....", fault=None)], [FAULT]).counts.f1 is None
    assert score("r", 24, [trace("." * 30, fault=(0, 33))], [FAULT]).counts.false_share is None


def test_the_interval_of_f1_is_that_of_recordings_drawn_anew_and_needs_three() -> None:
    good, bad = trace("." * 10 + "!" * 10), trace("." * 20)
    assert score("r", 24, [good, bad], [FAULT]).f1_low is None
    told = score("r", 24, [good, bad, good, bad], [FAULT])
    assert told.f1_low == 0.0
    assert told.f1_high == 1.0
    again = score("r", 24, [good, bad, good, bad], [FAULT])
    assert (again.f1_low, again.f1_high) == (told.f1_low, told.f1_high)
    sure = score("r", 24, [good] * 5, [FAULT])
    assert (sure.f1_low, sure.f1_high) == (1.0, 1.0)


@settings(deadline=None)  # a thousand resamplings take as long as the machine lets them
@given(st.lists(st.text("!.?", min_size=1, max_size=40), min_size=1, max_size=5))
def test_figures_are_shares_and_every_window_is_counted_once(said: list[str]) -> None:
    traces = [trace(each) for each in said]
    told = score("r", 24, traces, [FAULT])
    for value in (told.counts.f1, told.counts.precision, told.counts.recall, told.counts.false_share):
        assert value is None or 0 <= value <= 1
    faulty = sum(1 for each in traces for window in each.windows if 10 <= window.start_s <= 17)
    assert told.counts.found + told.counts.missed == faulty


def test_an_alarm_that_outlasts_its_fault_is_told_apart_from_one_out_of_nothing() -> None:
    after = Interval(from_s=20, to_s=40, labels=frozenset())
    faulty = trace("!......" + "." * 3 + "!" * 12 + "..!" + "?" * 5)
    told = score("r", 24, [replace(faulty, intervals=(*faulty.intervals, after)), trace("..!..", fault=None)], [FAULT])
    assert told.false_by_place == {
        NO_FAULT: Counts(false=1, quiet=4),
        BEFORE: Counts(false=1, quiet=7),
        AFTER: Counts(false=3, quiet=2),  # 20, 21 and 24; the unknown ones are neither
        AFTER_INERT: Counts(),
    }
    assert sum(told.false_by_place.values(), Counts()) == replace(told.counts, found=0, missed=0)


def test_what_matched_is_told_by_fault_and_for_healthy_time() -> None:
    seen = replace(
        trace("." * 20),
        windows=tuple(
            SeenWindow(start_s=at, end_s=at + 3, anomalous=at == 12, matched=frozenset({FAULT} if at > 6 else ()))
            for at in range(20)
        ),
    )
    told = score("r", 24, [seen], [FAULT]).matched
    assert told == {
        FAULT: Matched(windows=8, detected=1, matched=8, both=1, by_fingerprint={FAULT: 8}),
        "healthy": Matched(windows=8, detected=0, matched=1, both=0, by_fingerprint={FAULT: 1}),
    }


def test_a_false_episode_fired_in_healthy_time_and_began_there() -> None:
    """One of an inert fault counts for nobody; one that began in a fault, or while it settled, outlasts it."""
    intervals = (
        Interval(from_s=0, to_s=10, labels=frozenset()),
        Interval(from_s=10, to_s=20, labels=frozenset({FAULT})),
        Interval(from_s=25, to_s=40, labels=frozenset()),
    )
    fires = [
        Fire(fingerprint=name, entity="host", started_s=started_s, fired_s=fired_s)
        for name, started_s, fired_s in (
            ("early", 4, 9),  # began and fired in healthy time, before the fault
            ("late", 28, 34), ("late", 30, 36),  # after it: of two entities
            ("tardy", 19, 26), ("tardy", 23, 29),  # began in the fault, and while it settled
            ("right", 12, 18), ("right", 9, 15),  # fired in the time of the fault
            ("inert", 21, 24),  # in time without a label
            ("correlation", 5, 8),  # nobody asked for
        )
    ]  # fmt: skip
    seen = replace(trace("?" * 5 + "." * 33), fires=tuple(fires), intervals=intervals)
    told = score("r", 24, [seen], ["early", "late", "tardy", "right", "inert"]).false_episodes
    assert (told.by_fingerprint, told.outlasting) == ({"early": 1, "late": 2}, {"tardy": 2})
    assert (told.count, told.watched_s) == (3, 10 + 13), "what windows there add; no warming up is needed"
    assert told.a_day == pytest.approx(3 * 86_400 / told.watched_s)
    assert told.most is not None
    assert told.most > told.a_day
    none = score("r", 24, [trace(".", fault=(0, 30))], [FAULT]).false_episodes
    assert (none.count, none.a_day, none.most) == (0, None, None)
