"""Slower work is told from less work, and what is harmless from what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.detection.demand import queues_alone, staying
from unveil.detection.detector_input import Trait, select
from unveil.features.catalogue import FEATURES
from unveil.features.feature import Trouble
from unveil.features.load import BUSY, FRESH, INSTEAD, QUEUES, READS, WAITS, WORK, is_load
from unveil.records.feature import FeatureId, FeatureLayout
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from unveil.detection.detector_input import DetectorInput

WORKED, BUSY_SHARE, WAITED = next(iter(WORK)), BUSY[0], "storage.psi_some.rate"
HUGE, SMALL = "memory.thp_fault_alloc.rate", "memory.page_faults.rate"
RETRANSMITTED, FREE = "network.tcp_retrans.rate", "memory.swap_free_share.last"
QUEUED = QUEUES[0]
READ = next(iter(READS))
NAMES = (WORKED, BUSY_SHARE, WAITED, HUGE, SMALL, RETRANSMITTED, FREE, QUEUED, READ)

LABELS = ("work", "busy", "wait", "huge", "small", "again", "free", "queue", "read")


def trait(feature: FeatureId) -> Trait:
    declared = FEATURES[feature.name]
    return Trait(subsystem=Subsystem.CPU, log=declared.log, load=is_load(feature.name), trouble=declared.trouble)


def shown(name: str, *, sends: float = 0.0, reads: float = 0.0, strays: float = 0.2, **trends: float) -> float:
    """Return what a slow detector sees of a feature, the trends of which are given by the names above.

    Args:
        sends, reads: usual bytes a second.
        strays: sigma of what is read.
    """
    scope = select(FeatureLayout(tuple(map(FeatureId, NAMES))), trait)
    trend = np.array([trends.get(label, 0.0) for label in LABELS])
    centre, sigma = usual(scope, sends, reads, strays)
    return float(staying(scope, trend, centre, sigma)[scope.place[name]])


def usual(scope: DetectorInput, sends: float, reads: float, strays: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Return centre and sigma of a host by what it sends and reads."""
    centre, sigma = np.zeros(len(scope.ids)), np.full(len(scope.ids), 0.2)
    centre[scope.place[WORKED]], centre[scope.place[READ]] = np.log1p(sends), np.log1p(reads)
    sigma[scope.place[READ]] = strays
    return centre, sigma


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
    alone = queues_alone(scope, past, *usual(scope, 1e6, 0.0))
    assert alone[:, scope.place[QUEUED]].tolist() == [True, False]
    assert alone.sum() == 1


READER = {"sends": 200.0, "reads": 8e7}


@pytest.mark.parametrize(
    ("host", "trends", "seen"),
    [
        (READER, {"read": -0.9, "huge": -0.9}, True),  # a neighbour took the CPUs from who reads
        (READER, {"read": -0.9, "small": -0.9}, True),  # the same without huge pages
        (READER, {"read": -0.9, "huge": -0.9, "small": 0.5}, True),  # the neighbour has just begun
        (READER, {"read": -0.9}, False),  # from the page cache: as much memory is asked for as ever
        (READER, {"read": -0.9, "huge": 0.3, "small": 0.3}, False),  # and more, as that is faster
        (READER, {"read": -0.15, "huge": -0.9}, False),  # within a sigma
        ({**READER, "strays": 1.2}, {"read": -0.9, "huge": -0.9}, False),  # who reads by fits and starts
        (READER, {"read": -5.0, "huge": -5.0}, False),  # nothing is read any more
        (READER, {"read": 0.9, "huge": -0.9}, False),  # more is read
        ({"sends": 2e8, "reads": 8e7}, {"read": -0.9, "huge": -0.9}, False),  # what is sent tells better
        ({"sends": 2e8, "reads": 8e7}, {"read": -0.9, "huge": -0.9, "work": -0.3}, True),
        ({"sends": 200.0, "reads": 3e5}, {"read": -0.9, "huge": -0.9}, False),  # logs, and no work
    ],
)
def test_where_work_reads_from_disks_less_read_tells_that_less_gets_done(
    host: dict[str, float], trends: dict[str, float], seen: bool
) -> None:
    assert (shown(QUEUED, queue=0.4, **host, **trends) == 0.4) is seen


def test_less_read_is_no_fault_by_itself() -> None:
    assert np.isnan(shown(READ, read=-0.9, huge=-0.9, queue=0.4, **READER))


def test_past_queues_count_in_the_windows_in_which_less_was_read() -> None:
    scope = select(FeatureLayout(tuple(map(FeatureId, NAMES))), trait)
    past = np.zeros((3, len(NAMES)))
    past[:, scope.place[QUEUED]] = 0.4
    past[1:, scope.place[READ]] = -0.9
    past[2, scope.place[HUGE]] = -0.9
    alone = queues_alone(scope, past, *usual(scope, **READER))
    assert alone[:, scope.place[QUEUED]].tolist() == [True, True, False]


def test_what_is_not_known_of_reading_tells_nothing() -> None:
    known = {"read": -0.9, "huge": -0.9, "queue": 0.4}
    assert np.isnan(shown(QUEUED, **known, sends=200.0, reads=np.nan))
    assert np.isnan(shown(QUEUED, **known, sends=200.0, reads=8e7, strays=np.nan))
    assert np.isnan(shown(QUEUED, **{**known, "read": np.nan}, **READER))
    assert shown(QUEUED, **known, sends=np.nan, reads=8e7) == 0.4, "nothing is known of NICs"


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
    assert np.isnan(shown(HUGE, huge=-0.4, small=0.5, read=-0.4, **READER))
    assert shown(HUGE, huge=-4.0, small=3.0, read=-0.4, **READER) == -4.0


def test_the_way_that_means_no_harm_is_left_out() -> None:
    assert shown(RETRANSMITTED, again=2.0) == 2.0
    assert np.isnan(shown(RETRANSMITTED, again=-2.0))
    assert shown(FREE, free=-0.5) == -0.5
    assert np.isnan(shown(FREE, free=0.5))


def test_the_load_is_not_shown() -> None:
    assert np.isnan(shown(BUSY_SHARE, busy=0.4))


def test_what_is_absent_stays_absent_and_excuses() -> None:
    scope = select(FeatureLayout((FeatureId(WORKED), FeatureId(HUGE))), trait)
    nothing = np.full(2, np.nan)
    assert np.isnan(staying(scope, nothing, nothing, nothing)).all()
    assert np.isnan(staying(scope, np.array([-1.0, -1.0]), nothing, nothing)).all()


def test_what_is_named_here_is_seen_by_the_detectors() -> None:
    named = {*WORK, *READS, *FRESH, *BUSY, *QUEUES, *WAITS, *INSTEAD, *INSTEAD.values()}
    assert [name for name in named if not FEATURES[name].detect] == []
    assert [name for name in (*WORK, *QUEUES, *INSTEAD) if is_load(name)] == []
    assert [name for name in READS if not is_load(name)] == []
    assert {FEATURES[name].trouble for name in WORK} == {Trouble.DOWN}
