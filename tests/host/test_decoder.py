from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from unveil.host.active_source import ActiveSource
from unveil.host.cgroups import CgroupTrees
from unveil.host.decoder import Decoder, Row
from unveil.host.parsers.diskstats import parse_diskstats
from unveil.host.parsers.stat import parse_stat
from unveil.host.source import FAST, Feed, Source, Surroundings
from unveil.host.sources import net_dev
from unveil.records.metric import Channel
from unveil.records.sample import Tier

EXTRA = Channel("cpu.watcher_late")


def stat(**cpus: int) -> bytes:
    return "".join(f"{cpu} {user} 0 0 0\n" for cpu, user in cpus.items()).encode()


def disk(number: int, reads: int) -> bytes:
    return f"8 {number} sda {reads} 2 3 4 5 6 7 8 9 10 11\n".encode()


@pytest.fixture
def decoder(procfs) -> Decoder:
    feeds = (
        Feed(path="cpus", parser=partial(parse_stat, user_hz=1)),
        Feed(path="disks", parser=partial(parse_diskstats, wanted=lambda _: True)),
    )
    procfs.write("cpus", stat(cpu0=1, cpu1=2))
    procfs.write("disks", disk(0, 1))
    surroundings = Surroundings(root=procfs.root, cgroups=CgroupTrees(procfs.root))
    active = ActiveSource(Source(name="test", pace=FAST, metrics=(), feeds=lambda _: feeds), surroundings)
    active.look(room=10)
    return Decoder(Tier.FAST, [active], (EXTRA,))


def rows(*texts: tuple[bytes | None, bytes | None]) -> list[Row]:
    return [Row(1000 + index, list(pair), (index / 10,)) for index, pair in enumerate(texts)]


def column(block, metric: str, **labels: str) -> list[float]:
    return block.values[:, block.layout.column[Channel(metric, tuple(labels.items()))]].tolist()


def test_rows_of_one_shape_make_one_block(decoder: Decoder) -> None:
    (block,) = decoder.decode(rows(*((stat(cpu0=n, cpu1=2 * n), disk(0, n)) for n in range(10))))
    assert block.times_ns.tolist() == list(range(1000, 1010))
    assert column(block, "cpu.user", cpu="1") == [2.0 * n for n in range(10)]
    assert column(block, "storage.reads", disk="sda") == [float(n) for n in range(10)]
    assert column(block, EXTRA.metric) == [n / 10 for n in range(10)]


def test_the_same_layout_is_the_same_object(decoder: Decoder) -> None:
    first = decoder.decode(rows((stat(cpu0=1, cpu1=2), disk(0, 1))))[0]
    second = decoder.decode(rows((stat(cpu0=3, cpu1=4), disk(0, 2))))[0]
    assert first.layout is second.layout


def test_a_cpu_unplugged_between_two_ticks_splits_the_block_and_nothing_is_mistaken(decoder: Decoder) -> None:
    both, one = stat(cpu0=5, cpu1=6), stat(cpu1=7)
    before, after = decoder.decode(rows((both, disk(0, 1)), (both, disk(0, 2)), (one, disk(0, 3)), (one, disk(0, 4))))
    assert column(before, "cpu.user", cpu="0") == [5, 5]
    assert column(after, "cpu.user", cpu="1") == [7, 7]
    assert Channel("cpu.user", (("cpu", "0"),)) not in after.layout.column
    assert column(after, "storage.reads", disk="sda") == [3, 4]


def test_a_cpu_that_takes_the_line_of_another_is_noticed_by_its_digits_alone(decoder: Decoder) -> None:
    before, after = decoder.decode(rows((stat(cpu0=5, cpu1=6), disk(0, 1)), (stat(cpu0=5, cpu3=9), disk(0, 1))))
    assert column(before, "cpu.user", cpu="1") == [6]
    assert column(after, "cpu.user", cpu="3") == [9]


def test_a_shape_that_comes_and_goes_in_one_second_gives_three_blocks(decoder: Decoder) -> None:
    both, one = stat(cpu0=5, cpu1=6), stat(cpu0=5)
    blocks = decoder.decode(rows((both, disk(0, 1)), (one, disk(0, 1)), (both, disk(0, 1)), (both, disk(0, 1))))
    assert [len(block.times_ns) for block in blocks] == [1, 1, 2]


def test_a_text_that_could_not_be_read_makes_its_channels_absent_in_that_row_only(decoder: Decoder) -> None:
    both = stat(cpu0=5, cpu1=6)
    (block,) = decoder.decode(rows((both, disk(0, 1)), (None, disk(0, 2)), (both, None)))
    np.testing.assert_array_equal(column(block, "cpu.user", cpu="0"), [5, math.nan, 5])
    np.testing.assert_array_equal(column(block, "storage.reads", disk="sda"), [1, 2, math.nan])


def test_names_whose_numbers_are_the_same_are_told_apart(procfs) -> None:
    def texts(nics: dict[str, int]) -> bytes:
        procfs.net_dev(nics)
        return (procfs.folder / "proc/net/dev").read_bytes()

    texts({"eth1": 1, "eth2": 2})
    active = ActiveSource(net_dev.SOURCE, Surroundings(root=procfs.root, cgroups=CgroupTrees(procfs.root)))
    active.look(room=10)
    decoder = Decoder(Tier.FAST, [active], ())
    expected = [{"eth1": 3, "eth2": 4}, {"eth01": 5, "eth2": 6}, {"eth01": 7, "eth1": 8}, {"eth1": 9, "eth01": 10}]
    told = [texts(nics) for nics in expected]
    blocks = [
        block
        for first in (0, 2)  # in each of these seconds nothing changes but noughts
        for block in decoder.decode([Row(first + row, [text]) for row, text in enumerate(told[first : first + 2])])
    ]
    seen = [
        {
            dict(channel.labels)["nic"]: block.values[0, column]
            for channel, column in block.layout.column.items()
            if channel.metric == "network.rx_bytes"
        }
        for block in blocks
    ]
    assert seen == expected
    (again,) = decoder.decode([Row(4, [told[3]])])
    assert again.layout is blocks[-1].layout


def test_another_disk_under_the_same_name_skips_a_sample(decoder: Decoder) -> None:
    both = stat(cpu0=5, cpu1=6)
    before, after = decoder.decode(rows((both, disk(0, 100)), (both, disk(16, 3)), (both, disk(16, 4))))
    assert column(before, "storage.reads", disk="sda") == [100]
    np.testing.assert_array_equal(column(after, "storage.reads", disk="sda"), [math.nan, 4])
    assert column(after, "cpu.user", cpu="0") == [5, 5]
    assert before.layout is after.layout


def test_garbage_for_a_second_is_absent_and_the_numbers_come_back(decoder: Decoder) -> None:
    both = stat(cpu0=5, cpu1=6)
    blocks = decoder.decode(rows((both, b"\x00\xff 1 2 3"), (b"", b"8 0 sda -1 N/A"), (both, disk(0, 7))))
    assert Channel("storage.reads", (("disk", "sda"),)) not in blocks[0].layout.column
    assert blocks[1].layout.channels == (EXTRA,)
    assert column(blocks[-1], "storage.reads", disk="sda") == [7]
