from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from unveil.host.active_source import ActiveSource
from unveil.host.cgroups import CgroupTrees
from unveil.host.kept_file import KeptFile
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


def test_a_fast_file_that_grew_is_read_to_its_end_all_the_same(reader, procfs) -> None:
    made, _source = reader(FAST, 1, "ab", size=10)
    for number in range(12):  # beyond those that are measured
        made.read(number, number * TICK)
    procfs.write("b", "b 2\n" + "x" * 20_000 + "\nb 3\n")
    made.read(12, 12 * TICK)
    text = made._rows[-1].texts[1]
    assert text is not None
    assert text.endswith(b"b 3\n")


def test_a_fast_file_that_the_kernel_gives_in_pieces_is_not_begun_twice(reader, procfs) -> None:
    made, source = reader(FAST, 1, "ab")
    assert made._handles == []
    made.use([source])
    made.read(0, 0)
    assert len(made._handles) == 2, "3 kB of a file that is given as a whole"
    piece = replace(source.files[0].feed, whole=False)
    source.files[0] = KeptFile(procfs.root, piece)
    source.files[0].learn(source.files[0].read() or b"")
    made.use([source])
    made.read(1, TICK)
    assert made._handles == []


def test_a_fast_file_that_is_gone_takes_none_of_the_others_away(reader) -> None:
    made, source = reader(FAST, 1, "abc")
    for number in range(12):
        made.read(number, number * TICK)
    source.files[1].close()
    made.use([source])
    made.read(12, 12 * TICK)
    assert [text is None for text in made._rows[-1].texts] == [False, True, False]


def test_the_files_of_a_slower_pace_are_read_where_a_second_is_judged(reader) -> None:
    made, source = reader(MEDIUM, 10, "abcdefgh")
    assert ticks_that_read(made, source, range(20)) == {0: 8, 10: 8}
    (block,) = made.collect()
    assert block.times_ns.tolist() == [0, 10 * TICK]


def test_much_text_is_spread_over_seconds(reader) -> None:
    made, source = reader(SLOW, 20, "abcdefgh", size=100_000)
    assert ticks_that_read(made, source, range(40)) == {0: 4, 10: 4, 20: 4, 30: 4}
    (block,) = made.collect()
    assert block.times_ns.tolist() == [5 * TICK, 25 * TICK]


def test_seldom_paces_with_little_to_read_have_seconds_of_their_own(reader) -> None:
    slower = set(ticks_that_read(*reader(SLOWER, 50, "abcd"), range(200)))
    slowest = set(ticks_that_read(*reader(SLOWEST, 100, "abcdef"), range(200)))
    assert slower == {10, 60, 110, 160}
    assert slowest == {30, 130}


def test_missed_ticks_are_caught_up_once_and_never_twice_in_one_tick(reader) -> None:
    made, source = reader(SLOW, 20, "abcdefgh", size=100_000)
    assert ticks_that_read(made, source, [0, 11, 18, 57, 58, 61]) == {0: 4, 11: 4, 57: 8, 61: 4}
    (block,) = made.collect()
    assert block.times_ns.tolist() == [55 * TICK // 10, 57 * TICK]


def test_a_row_goes_on_with_the_files_it_began_with(reader, procfs) -> None:
    made, _source = reader(SLOW, 20, "abcdefgh", size=100_000)
    made.read(0, 0)
    made.use([])
    made.read(10, 10 * TICK)
    (block,) = made.collect()
    assert len(block.layout.channels) == 8
    made.read(20, 20 * TICK)
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
