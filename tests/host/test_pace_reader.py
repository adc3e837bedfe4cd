from __future__ import annotations

from functools import partial

import pytest

from unveil.host.active_source import ActiveSource
from unveil.host.cgroups import CgroupTrees
from unveil.host.pace_reader import PaceReader
from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.source import FAST, MEDIUM, SLOW, SLOWER, SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Channel

TICK = 100_000_000


@pytest.fixture
def reader(procfs):
    """Make a reader of some files with about 3 kB of text each; every file has a metric of its name."""

    def make(pace, ticks: int, names: str, size: int = 3000) -> tuple[PaceReader, ActiveSource]:
        for name in names:
            procfs.write(name, f"{name} 1\n" + "x" * size + "\n")
        feeds = tuple(
            Feed(path=name, parser=partial(parse_keyed, parts={name.encode(): Part(f"memory.{name}")}))
            for name in names
        )
        surroundings = Surroundings(root=procfs.root, cgroups=CgroupTrees(procfs.root))
        source = ActiveSource(Source(name="test", pace=pace, metrics=(), feeds=lambda _: feeds), surroundings)
        source.look(room=100)
        made = PaceReader(pace, ticks)
        made.use([source])
        return made, source

    return make


def ticks_that_read(reader: PaceReader, source: ActiveSource, numbers) -> dict[int, int]:
    """Return how many files were read at each tick."""
    counts: dict[int, int] = {}
    for number in numbers:
        if number >= reader.due:
            before = len(reader._texts) if reader._slot else 0
            rows = len(reader._rows)
            reader.read(number, number * TICK)
            done = len(reader._rows) > rows
            counts[number] = (len(reader._rows[-1].texts) if done else len(reader._texts)) - before
    return {number: count for number, count in counts.items() if count}


def test_fast_files_are_read_at_every_tick(reader) -> None:
    made, source = reader(FAST, 1, "abc")
    assert ticks_that_read(made, source, range(5)) == dict.fromkeys(range(5), 3)
    (block,) = made.collect()
    assert block.times_ns.tolist() == [number * TICK for number in range(5)]


def test_the_files_of_a_slower_pace_are_spread_over_ticks(reader) -> None:
    made, source = reader(MEDIUM, 10, "abcdefgh")
    assert ticks_that_read(made, source, range(20)) == {1: 2, 3: 2, 5: 2, 7: 2, 11: 2, 13: 2, 15: 2, 17: 2}
    (block,) = made.collect()
    assert block.times_ns.tolist() == [4 * TICK, 14 * TICK]


def test_few_bytes_are_not_worth_many_ticks(reader) -> None:
    made, source = reader(MEDIUM, 10, "abcdefgh", size=10)
    assert ticks_that_read(made, source, range(10)) == {1: 8}


def test_no_tick_carries_two_of_the_slower_paces_at_once(reader) -> None:
    medium = set(ticks_that_read(*reader(MEDIUM, 10, "abcdefgh"), range(100)))
    slow = set(ticks_that_read(*reader(SLOW, 20, "abcdefghijklmnop"), range(100)))
    slower = set(ticks_that_read(*reader(SLOWER, 50, "abcd"), range(100)))
    slowest = set(ticks_that_read(*reader(SLOWEST, 100, "abcdef"), range(100)))
    assert len(slowest) == 4
    paces = (medium, slow, slower, slowest)
    assert sum(map(len, paces)) == len(set().union(*paces))
    assert not any(tick % 10 == 0 for tick in set().union(*paces))


def test_missed_ticks_are_caught_up_once_and_never_twice_in_one_tick(reader) -> None:
    made, source = reader(MEDIUM, 10, "abcdefgh")
    assert ticks_that_read(made, source, [0, 1, 6, 9, 47, 48, 51]) == {1: 2, 6: 4, 9: 2, 47: 8, 51: 2}
    (block,) = made.collect()
    assert block.times_ns.tolist() == [5 * TICK, 47 * TICK]


def test_a_row_goes_on_with_the_files_it_began_with(reader, procfs) -> None:
    made, _source = reader(MEDIUM, 10, "abcdefgh")
    made.read(1, 1 * TICK)
    made.use([])
    for number in (3, 5, 7):
        made.read(number, number * TICK)
    (block,) = made.collect()
    assert len(block.layout.channels) == 8
    made.read(11, 11 * TICK)
    assert made.collect() == []


def test_rows_of_the_old_files_are_parsed_before_the_new_ones_are_taken_up(reader, procfs) -> None:
    made, source = reader(FAST, 1, "ab")
    made.read(0, 0)
    source.files[0].close()
    source.files = source.files[1:]
    made.use([source])
    made.read(1, TICK)
    before, after = made.collect()
    assert before.layout.channels == (Channel("memory.a"), Channel("memory.b"))
    assert after.layout.channels == (Channel("memory.b"),)


def test_memory_stays_bounded_when_nobody_collects(reader) -> None:
    made, _source = reader(FAST, 1, "a")
    for number in range(700):
        made.read(number, number * TICK)
    (block,) = made.collect()
    assert len(block.times_ns) == 600
    assert block.times_ns[-1] == 699 * TICK


def test_what_reading_costs_is_noted_for_each_source(reader) -> None:
    made, source = reader(MEDIUM, 10, "abcdefgh")
    for number in range(20):
        if number >= made.due:
            made.read(number, number * TICK)
    made.collect()
    health = source.health()
    assert health.read_us > 0
    assert health.parse_us > 0
