"""Detectors at equal shares of false alarms: thresholds from healthy windows, the same for all, and who named whom."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.knowledge.comparison import Combination, Compared, ComparedWindow, held, named, standings
from unveil.knowledge.evaluation import Counts
from unveil.knowledge.labels import Interval

FAULT = "reduced_huge_page_coverage"
ONE, OTHER = Combination(name="one", members=("one",)), Combination(name="other", members=("other",))
SHARES = {"memory": (0.1, 0.0, 0.7, 0.1, 0.1, 0.0), "cpu": (0.8, 0.0, 0.2, 0.0, 0.0, 0.0)}


def run(
    *, name: str = "run", workload: str = "training", said: dict[str, list[float]], first: str = "memory"
) -> Compared:
    """Return a recording of one window a second; what begins at 10 s or later is faulty."""
    count = len(next(iter(said.values())))
    return Compared(
        recording=name,
        workload=workload,
        seconds=count + 3.0,
        windows=tuple(
            ComparedWindow(
                start_s=float(at),
                end_s=at + 3.0,
                judged=True,
                strengths={detector: strengths[at] for detector, strengths in said.items()},
                severity=1.0,
                shares=SHARES[first],
            )
            for at in range(count)
        ),
        intervals=(
            Interval(from_s=0, to_s=10, labels=frozenset()),
            Interval(from_s=10, to_s=count + 3, labels=frozenset({FAULT})),
        ),
        right={FAULT: "memory"},
        cost_us=dict.fromkeys(said, 50.0),
    )


SHARP = [0.1] * 10 + [2.0] * 10  # quiet in healthy time, loud in the fault
BLUNT = [0.1, 3.0, 3.0, 3.0] + [0.1] * 6 + [2.0] * 10  # louder in healthy time than in the fault


def test_the_threshold_is_the_least_that_so_few_healthy_windows_exceed() -> None:
    sharp, blunt = standings([run(said={"one": SHARP, "other": BLUNT})], [ONE, OTHER], [0.01], ours="one")
    assert sharp.at[0].counts == Counts(found=9, missed=1, false=0, quiet=8)  # the first has not held for two yet
    assert sharp.calibrated == sharp.at[0].counts
    assert blunt.at[0].counts == Counts(found=0, missed=10, false=0, quiet=8)
    assert blunt.calibrated == Counts(found=9, missed=1, false=2, quiet=6)
    (allowed,) = standings([run(said={"other": BLUNT})], [OTHER], [0.3], ours="other")
    assert allowed.at[0].counts == Counts(found=9, missed=1, false=2, quiet=6)


def test_a_strength_counts_when_it_held_for_two_windows() -> None:
    assert held(run(said={"one": [0.0, 3.0, 0.0, 2.0, 5.0, 4.0]}), ONE) == [-1.0, 0.0, 0.0, 0.0, 2.0, 4.0]


def test_an_or_is_as_strong_as_its_strongest_member_and_two_of_two_as_its_weakest() -> None:
    told = {"one": 3.0, "other": 0.5}
    assert Combination(name="or", members=("one", "other")).strength(told) == 3.0
    assert Combination(name="2of2", members=("one", "other"), needed=2).strength(told) == 0.5
    assert Combination(name="2of2", members=("one", "none"), needed=2).strength(told) < 0


def test_a_difference_is_over_the_same_draws_and_ours_has_none() -> None:
    runs = [run(name=f"r{n}", said={"one": SHARP, "other": BLUNT}) for n in range(4)]
    ours, theirs = standings(runs, [ONE, OTHER], [0.01], ours="one")
    assert (ours.at[0].behind_low, ours.at[0].behind_high) == (None, None)
    assert theirs.at[0].behind_low == theirs.at[0].behind_high == pytest.approx(ours.at[0].counts.f1)
    assert ours.cost_us == 50.0


def test_a_workload_is_counted_at_the_threshold_that_holds_for_all() -> None:
    runs = [run(name="a", said={"one": SHARP}), run(name="b", workload="serving", said={"one": BLUNT})]
    (told,) = standings(runs, [ONE], [0.01], ours="one")
    assert set(told.by_workload) == {"serving", "training"}
    assert sum(told.by_workload.values(), Counts()) == told.at[0].counts


def test_detected_windows_say_which_subsystem_they_name_first() -> None:
    runs = [run(name="a", said={"one": SHARP}), run(name="b", said={"one": SHARP}, first="cpu")]
    fault, healthy = named(runs, ONE)
    assert (fault.label, fault.right, fault.windows, fault.right_share) == (FAULT, "memory", 18, 0.5)
    assert fault.first == {"memory": 9, "cpu": 9}
    assert fault.shares == pytest.approx((0.45, 0.0, 0.45, 0.05, 0.05, 0.0))
    assert (healthy.windows, healthy.right_share) == (0, None)


def test_a_host_that_nobody_could_judge_is_no_trouble() -> None:
    quiet = Compared(recording="r", workload="", seconds=0.0, windows=(), intervals=(), right={}, cost_us={})
    (told,) = standings([quiet], [ONE], [0.01], ours="one")
    assert told.calibrated == Counts()
    assert told.cost_us is None
    assert named([quiet], ONE) == ()


@settings(max_examples=30, deadline=None)
@given(
    strengths=st.lists(st.floats(min_value=0, max_value=9), min_size=12, max_size=40),
    share=st.floats(min_value=0.001, max_value=0.5),
)
def test_no_larger_a_share_of_healthy_windows_alarms_than_was_asked_for(strengths: list[float], share: float) -> None:
    (told,) = standings([run(said={"one": strengths})], [ONE], [share], ours="one")
    counts = told.at[0].counts
    assert counts.false <= share * (counts.false + counts.quiet)
