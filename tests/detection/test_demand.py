"""Slower work is told from less work, and what is harmless from what is not."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.detection.demand import queues_alone, staying
from unveil.detection.detector_input import Trait, select
from unveil.features.catalogue import FEATURES
from unveil.features.feature import Trouble
from unveil.features.load import BUSY, INSTEAD, QUEUES, WAITS, WORK, is_load
from unveil.records.feature import FeatureId, FeatureLayout
from unveil.records.subsystem import Subsystem

WORKED, BUSY_SHARE, WAITED = next(iter(WORK)), BUSY[0], "storage.psi_some.rate"
HUGE, SMALL = "memory.thp_fault_alloc.rate", "memory.page_faults.rate"
RETRANSMITTED, FREE = "network.tcp_retrans.rate", "memory.swap_free_share.last"
QUEUED = QUEUES[0]
NAMES = (WORKED, BUSY_SHARE, WAITED, HUGE, SMALL, RETRANSMITTED, FREE, QUEUED)

LABELS = ("work", "busy", "wait", "huge", "small", "again", "free", "queue")


def trait(feature: FeatureId) -> Trait:
    declared = FEATURES[feature.name]
    return Trait(subsystem=Subsystem.CPU, log=declared.log, load=is_load(feature.name), trouble=declared.trouble)


def shown(name: str, **trends: float) -> float:
    """Return what a slow detector sees of a feature, the trends of which are given by the names above."""
    scope = select(FeatureLayout(tuple(map(FeatureId, NAMES))), trait)
    trend = np.array([trends.get(label, 0.0) for label in LABELS])
    return float(staying(scope, trend)[scope.place[name]])


@pytest.mark.parametrize(
    ("trends", "seen"),
    [
        ({"work": -0.3}, True),  # as busy as ever, and less gets done
        ({"work": -0.3, "busy": -0.4, "wait": 0.3}, True),  # less busy, because it waits
        ({"work": -0.3, "busy": -0.4}, False),  # less was wanted
        ({"work": -5.0}, False),  # nothing is done any more: that is over, not slow
        ({"work": 0.3}, False),  # more gets done
    ],
)
def test_less_work_counts_unless_less_was_wanted(trends: dict[str, float], seen: bool) -> None:
    assert (shown(WORKED, **trends) == trends["work"]) is seen


@pytest.mark.parametrize(
    ("trends", "seen"),
    [
        ({"queue": 0.4, "work": -0.3}, True),  # a neighbour took the CPUs
        ({"queue": 0.4}, False),  # a busier host
        ({"queue": 0.4, "work": 0.3}, False),  # that gets more done for it
        ({"queue": 0.4, "work": -0.05}, False),  # or hardly less
        ({"queue": 0.4, "work": -5.0}, False),  # other work than before
        ({"queue": -0.4, "work": -0.3}, False),  # nobody waits: less was wanted
    ],
)
def test_a_queue_for_the_cpus_counts_where_less_gets_done(trends: dict[str, float], seen: bool) -> None:
    assert (shown(QUEUED, **trends) == trends["queue"]) is seen


def test_past_queues_alone_are_those_of_windows_in_which_no_less_got_done() -> None:
    scope = select(FeatureLayout(tuple(map(FeatureId, NAMES))), trait)
    past = np.zeros((2, len(NAMES)))
    past[:, scope.place[QUEUED]] = 0.4
    past[1, scope.place[WORKED]] = -0.3
    alone = queues_alone(scope, past)
    assert alone[:, scope.place[QUEUED]].tolist() == [True, False]
    assert alone.sum() == 1


def test_fewer_huge_pages_count_where_small_ones_take_their_place_and_so_does_the_way_back() -> None:
    assert shown(HUGE, huge=-4.0, small=1.5) == -4.0
    assert shown(HUGE, huge=4.0, small=-1.5) == 4.0
    assert np.isnan(shown(HUGE, huge=-4.0))
    assert np.isnan(shown(HUGE, huge=-4.0, small=-1.5))
    assert np.isnan(shown(HUGE, huge=4.0, small=1.5))


def test_huge_pages_that_came_with_the_work_go_with_it() -> None:
    assert np.isnan(shown(HUGE, huge=-0.7, small=0.3, work=-0.7))
    assert np.isnan(shown(HUGE, huge=-1.2, small=0.3, work=-0.7))
    assert shown(HUGE, huge=-5.0, small=3.0, work=-0.7) == -5.0
    assert shown(HUGE, huge=-0.7, small=0.3, work=-0.05) == -0.7
    assert shown(HUGE, huge=0.7, small=-0.3, work=-0.7) == 0.7


def test_the_way_that_means_no_harm_is_left_out() -> None:
    assert shown(RETRANSMITTED, again=2.0) == 2.0
    assert np.isnan(shown(RETRANSMITTED, again=-2.0))
    assert shown(FREE, free=-0.5) == -0.5
    assert np.isnan(shown(FREE, free=0.5))


def test_the_load_is_not_shown() -> None:
    assert np.isnan(shown(BUSY_SHARE, busy=0.4))


def test_what_is_absent_stays_absent_and_excuses() -> None:
    scope = select(FeatureLayout((FeatureId(WORKED), FeatureId(HUGE))), trait)
    assert np.isnan(staying(scope, np.array([np.nan, np.nan]))).all()
    assert np.isnan(staying(scope, np.array([-1.0, -1.0]))).all()


def test_what_is_named_here_is_seen_by_the_detectors() -> None:
    named = {*WORK, *BUSY, *QUEUES, *WAITS, *INSTEAD, *INSTEAD.values()}
    assert [name for name in named if not FEATURES[name].detect] == []
    assert [name for name in (*WORK, *QUEUES, *INSTEAD) if is_load(name)] == []
    assert {FEATURES[name].trouble for name in WORK} == {Trouble.DOWN}
