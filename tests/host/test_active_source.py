from __future__ import annotations

from functools import partial

import pytest

from unveil.errors import SourceAbsentError
from unveil.host.active_source import ActiveSource
from unveil.host.cgroups import CgroupTrees
from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.source import FAST, MEDIUM, PACES, SLOW, SLOWER, SLOWEST, Feed, Source, SourceState, Surroundings

PARSE = partial(parse_keyed, parts={b"a": Part("memory.a")})
MS = 1_000_000


@pytest.fixture
def active(procfs):
    def make(*paths: str, absent: str = "") -> ActiveSource:
        def feeds(_: Surroundings) -> tuple[Feed, ...]:
            if absent:
                raise SourceAbsentError(absent)
            return tuple(Feed(path=path, parser=PARSE) for path in paths)

        surroundings = Surroundings(root=procfs.root, cgroups=CgroupTrees(procfs.root))
        source = ActiveSource(Source(name="test", pace=FAST, metrics=(), feeds=feeds), surroundings)
        source.look(room=10)
        return source

    return make


def test_a_source_in_good_health_says_what_it_gives(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    health = active("x").health()
    assert (health.state, health.files, health.channels, health.reason) == (SourceState.OK, 1, 1, "")


def test_a_source_that_this_host_lacks_is_absent_with_the_reason(active) -> None:
    health = active(absent="one node only").health()
    assert (health.state, health.reason) == (SourceState.ABSENT, "one node only")
    health = active("gone").health()
    assert health.state is SourceState.ABSENT
    assert "/gone" in health.reason


def test_a_source_of_which_a_part_fails_is_fine_and_tells_the_part(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    health = active("x", "gone").health()
    assert health.state is SourceState.OK
    assert "1 of 2 files" in health.reason


def test_a_text_that_nobody_knows_is_a_failure(procfs, active) -> None:
    procfs.write("x", "nothing of ours\n")
    health = active("x").health()
    assert (health.state, health.channels) == (SourceState.FAILED, 0)
    assert "/x" in health.reason


def test_no_more_files_are_opened_than_there_is_room(procfs, active) -> None:
    for name in "pqr":
        procfs.write(name, "a 1\n")
    source = active("p", "q", "r")
    source.close()
    source.files = []
    source.look(room=2)
    assert len(source.files) == 2
    assert "1 of 3 files left out" in source.health().reason


def test_files_that_are_not_kept_open_need_no_room(procfs) -> None:
    for name in "abc":
        procfs.write(name, "a 1\n")
    feeds = tuple(Feed(path=name, parser=PARSE, kept=name == "a") for name in "abc")
    surroundings = Surroundings(root=procfs.root, cgroups=CgroupTrees(procfs.root))
    source = ActiveSource(Source(name="test", pace=SLOWEST, metrics=(), feeds=lambda _: feeds), surroundings)
    source.look(room=0)
    assert ([file.feed.path for file in source.files], source.kept) == (["b", "c"], 0)
    assert "1 of 3 files left out" in source.health().reason
    source.look(room=1)
    assert ([file.feed.path for file in source.files], source.kept) == (["a", "b", "c"], 1)


def test_files_that_stay_are_kept_open_when_others_come_and_go(procfs, active) -> None:
    paths = ["x", "y"]
    for name in "xyz":
        procfs.write(name, "a 1\n")
    surroundings = Surroundings(root=procfs.root, cgroups=CgroupTrees(procfs.root))
    feeds = lambda _: tuple(Feed(path=path, parser=PARSE) for path in paths)  # noqa: E731  # reads the list anew
    source = ActiveSource(Source(name="test", pace=FAST, metrics=(), feeds=feeds), surroundings)
    assert source.look(room=10)
    first, second = source.files
    paths[:] = ["x", "z"]
    assert source.look(room=10)
    assert not source.look(room=10)
    assert source.files[0] is first
    assert not second.is_open


def test_a_source_over_budget_moves_down_pace_by_pace_and_says_so(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    for pace in (MEDIUM, SLOW, SLOWER, SLOWEST):
        for _ in range(9):
            source.spent_ns = 6 * MS
            source.settle()
        assert source.judge(5 * MS, 10 * MS)
        assert source.pace is pace
    assert "6.0 ms" in source.health().reason
    assert source.health().read_us == 6000, "what it cost before is told until the slower pace has costs of its own"
    assert (source.health().tier, source.health().period_s) == (SLOWEST.tier, SLOWEST.period_s)
    assert not source.judge(5 * MS, 10 * MS)


def test_a_source_that_is_far_too_dear_even_then_is_not_read_any_more(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    for _ in PACES:
        for _ in range(9):
            source.spent_ns = 100 * MS
            source.settle()
        source.judge(5 * MS, 10 * MS)
    health = source.health()
    assert (health.state, health.files) == (SourceState.FAILED, 0)
    assert "not read any more" in health.reason
    assert not source.look(room=10)


def test_a_source_may_allow_itself_less_and_is_not_stopped_for_it(procfs) -> None:
    procfs.write("x", "a 1\n")
    modest = Source(
        name="test",
        pace=SLOWER,
        metrics=(),
        feeds=lambda _: (Feed(path="x", parser=PARSE),),
        core_share=0.0002,
    )
    source = ActiveSource(modest, Surroundings(root=procfs.root, cgroups=CgroupTrees(procfs.root)))
    source.look(room=10)
    for cost, pace in ((0.9, SLOWER), (1.2, SLOWEST), (40, SLOWEST)):
        for _ in range(9):
            source.spent_ns = int(cost * MS)
            source.settle()
        source.judge(5 * MS, 10 * MS)
        assert source.pace is pace
    assert source.health().state is SourceState.OK
    assert "read every 10 s only" in source.health().reason


def test_a_few_dear_readings_are_no_reason(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    for cost in (1, 90, 1, 90, 1, 1, 1):
        source.spent_ns = cost * MS
        source.settle()
    assert not source.judge(5 * MS, 10 * MS)


def test_a_layout_that_changes_all_the_time_is_a_reason_to_slow_down(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    source.learnt_ns = 60 * MS
    assert source.judge(5 * MS, 50 * MS)
    assert "changes all the time" in source.health().reason


def judged(source: ActiveSource, *costs_ms: float) -> list[float]:
    """Return the period after each judgement, one for each cost that its readings take."""
    periods = []
    for cost in costs_ms:
        for _ in range(9):
            source.spent_ns = int(cost * MS)
            source.settle()
        source.judge(5 * MS, 10 * MS)
        periods.append(source.pace.period_s)
    return periods


def test_what_is_read_at_every_tick_may_cost_a_hundredth_of_a_core_and_no_more(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    assert judged(active("x"), 0.9, 1.1) == [0.1, 1.0]


def test_a_source_comes_back_pace_by_pace_once_it_has_long_been_cheap_and_says_so(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    assert judged(source, 6, 6) == [1.0, 2.0]
    assert judged(source, *[0.2] * 5) == [2.0] * 5, "not at once"
    assert judged(source, 0.2) == [1.0]
    assert "cheaper than it was" in source.health().reason
    assert judged(source, *[0.2] * 6)[-1] == 0.1
    assert (source.pace, source.health().reason) == (FAST, "")


def test_a_source_that_would_be_too_dear_again_stays_where_it_is(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    assert judged(source, 2) == [1.0]
    assert set(judged(source, *[0.8] * 50)) == {1.0}, "within the budget of the faster pace, but barely"
    assert set(judged(source, *[0.2, 0.2, 0.8] * 20)) == {1.0}, "cheap now and then"


def test_coming_back_for_nothing_takes_twice_as_long_the_next_time(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    waits = []
    for _ in range(7):
        judged(source, 2)
        assert source.pace is MEDIUM
        waits.append(0)
        while source.pace is MEDIUM:
            judged(source, 0.2)
            waits[-1] += 1
    assert waits == [6, 12, 24, 48, 96, 192, 360]


def test_a_source_that_is_cheap_for_an_hour_is_trusted_again(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    judged(source, 2, *[0.2] * 6, 2, *[0.2] * 12, *[0.2] * 360)
    assert judged(source, 2, *[0.2] * 6)[-2:] == [1.0, 0.1]


def test_a_layout_that_has_calmed_down_is_a_reason_to_come_back(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    source.learnt_ns = 60 * MS
    assert source.judge(5 * MS, 10 * MS)
    for _ in range(20):
        source.learnt_ns = 1 * MS  # ten times that at ten times the pace
        judged(source, 0.2)
    assert source.pace is MEDIUM
    judged(source, *[0.2] * 6)
    assert source.pace is FAST


def test_a_source_that_was_given_up_gets_another_chance_after_ten_minutes(procfs, active) -> None:
    procfs.write("x", "a 1\n")
    source = active("x")
    judged(source, *[100] * len(PACES))
    assert source.health().state is SourceState.FAILED
    changes = [source.judge(5 * MS, 10 * MS) for _ in range(60)]
    assert changes == [False] * 59 + [True]
    assert source.look(room=10)
    assert source.health().files == 1
    assert source.health().reason == "read every 10 s again, on trial"
    judged(source, 100)
    assert source.health().state is SourceState.FAILED
