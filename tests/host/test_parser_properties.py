"""What holds for every parser and any text: no surprise, and no number out of what is none."""

from __future__ import annotations

import contextlib
import re
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unveil.host.batch import Batch
from unveil.host.parsers.amd_gpu import cut_clock, parse_clock
from unveil.host.parsers.buddyinfo import fold_buddyinfo, parse_buddyinfo
from unveil.host.parsers.cgroup_io import parse_cgroup_io
from unveil.host.parsers.cgroup_stat import parse_cgroup_cpu, parse_cgroup_memory, parse_cgroup_numa, parse_single
from unveil.host.parsers.diskstats import parse_diskstats
from unveil.host.parsers.folded import fold_conntrack, fold_schedstat, fold_softnet, parse_folded
from unveil.host.parsers.interrupts import parse_interrupts
from unveil.host.parsers.keyed import parse_keyed
from unveil.host.parsers.meminfo import parse_meminfo
from unveil.host.parsers.mountstats import fold_mountstats
from unveil.host.parsers.net_dev import parse_net_dev
from unveil.host.parsers.net_snmp import parse_net_snmp
from unveil.host.parsers.number import parse_number
from unveil.host.parsers.pcie import lanes, parse_errors, parse_link, whole_speed
from unveil.host.parsers.pressure import parse_pressure
from unveil.host.parsers.shape import Parser, learn, numbers_of
from unveil.host.parsers.sockstat import parse_limits, parse_sockstat
from unveil.host.parsers.softirqs import parse_softirqs
from unveil.host.parsers.stat import cut_interrupts, parse_stat
from unveil.host.parsers.text import ParseError, Text
from unveil.host.sources.vmstat import PARTS
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Callable

PARSERS: dict[str, Parser] = {
    "stat": partial(parse_stat, user_hz=100),
    "pressure": partial(parse_pressure, subsystem="cpu"),
    "softirqs": parse_softirqs,
    "net_dev": parse_net_dev,
    "vmstat": partial(parse_keyed, parts=PARTS),
    "meminfo": partial(
        parse_meminfo, metrics={b"MemFree:": "memory.free"}, huge_pages={b"HugePages_Total:": "memory.huge_total"}
    ),
    "net_snmp": partial(parse_net_snmp, metrics={(b"Tcp:", b"InSegs"): "network.tcp_in_segs"}),
    "diskstats": partial(parse_diskstats, wanted=lambda _: True),
    "interrupts": partial(parse_interrupts, node_of={0: 0, 1: 1}),
    "big interrupts": partial(parse_interrupts, node_of={0: 0, 1: 1}, most_cells=1),
    "cgroup cpu": partial(parse_cgroup_cpu, version=2, cgroup="/a", identity=""),
    "cgroup memory": partial(parse_cgroup_memory, version=1, cgroup="/a", identity=""),
    "cgroup numa": partial(parse_cgroup_numa, version=1, page_bytes=4096, cgroup="/a", identity=""),
    "folded": partial(parse_folded, metrics={b"pgfault": ("memory.a", 1.0), b"MemFree:": ("memory.b", 1e-6)}),
    "number": partial(parse_number, metric="memory.a"),
    "number that seldom changes": partial(parse_number, metric="memory.a", unknown=(0, 255)),
    "sockstat": partial(parse_sockstat, metrics={(b"Tcp:", b"InSegs"): ("network.a", 1.0)}),
    "limits": partial(parse_limits, metric="network.a", scale=4096.0),
    "buddyinfo": partial(parse_buddyinfo, page_bytes=4096),
    "link width": partial(parse_link, name="width", pci="0000:01:00.0", most=16),
    "link speed": partial(parse_link, name="speed", pci="0000:01:00.0", most=None),
    "link errors": partial(parse_errors, metric="interconnect.a", pci="0000:01:00.0"),
    "cgroup io": partial(parse_cgroup_io, wanted=lambda device: device != "some", cgroup="/a", identity=""),
    "clock": partial(parse_clock, metric="gpu.sm_clock", gpu="0000:01:00.0"),
    "single": partial(parse_single, metric="cpu.cgroup_usage", scale=1e-9, cgroup="/a", identity=""),
}

WORDS = st.sampled_from(
    [
        b"cpu", b"cpu0", b"cpu1", b"intr", b"ctxt", b"some", b"full", b"avg10=0.00", b"total=5", b"total=-5", b"CPU0",
        b"CPU1", b"CPU7", b"HI:", b"24:", b"LOC:", b"eth0:", b"eth0:5", b"|", b"face", b"bytes", b"packets", b"pgfault",
        b"pgscan_kswapd", b"MemFree:", b"HugePages_Total:", b"Hugepagesize:", b"kB", b"Node", b"Tcp:", b"InSegs",
        b"sda", b"usage_usec", b"nr_periods", b"total_rss", b"hierarchical_anon=5", b"N0=4", b"N1=4",
        b"total=.5", b"total=1.5", b"rows", b"GT/s", b"PCIe", b"16.0", b"TOTAL_ERR_COR", b"node", b"blocks", b"huge",
        b"8:0", b"rbytes=4", b"wios=5", b"version", b"0000001f", b"Node 0, zone", b"device",
        b"fstype nfs4", b"\tbytes:\t",
    ]
)  # fmt: skip
NO_NUMBERS = st.sampled_from(
    [b"-1", b"1.5", b"0x1f", b"1e5", b"N/A", b"nan", b"<unsupported>", b"+7", b"1_000", b"\xb2"]
)
NUMBERS = st.integers(0, 10**21).map(lambda number: str(number).encode())
SEPARATORS = st.sampled_from([b" ", b"  ", b"\t", b"\n", b"\n", b"\r", b"\x00", b":", b"="])
TEXTS = st.one_of(
    st.binary(max_size=200),
    st.lists(st.tuples(st.one_of(WORDS, NUMBERS, NUMBERS, NO_NUMBERS), SEPARATORS), max_size=60).map(
        lambda parts: b"".join(word + separator for word, separator in parts)
    ),
)

# Texts are dearer to make than to parse: each is given to every parser.


@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
@example(text=b"")
@example(text=b"\n\n \n")
@example(text=b"CPU0 CPU" + b"9" * 5000 + b"\n24: 1 2 x\n")
def test_any_text_is_parsed_or_refused_with_a_parse_error(text: bytes) -> None:
    for name, parser in PARSERS.items():
        with contextlib.suppress(ParseError):
            for reading in parser(Text(text)):
                assert isinstance(reading.channel, Channel), name
                assert len(reading.numbers) > 0, name


@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
def test_every_reading_stands_for_plain_digits_between_separators(text: bytes) -> None:
    runs = list(re.finditer(rb"[0-9]+", text))
    for name, parser in PARSERS.items():
        for reading in learn(text, parser).readings:
            for ordinal in reading.numbers:
                start, end = runs[ordinal].span()
                before, after = text[start - 1 : start], text[end : end + 1]
                assert before in b" \t\r\n:=\x0b\x0c", (name, reading)
                assert after in b" \t\r\n=\x0b\x0c.", (name, reading)


@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
def test_the_batch_gives_what_the_plain_path_gives(
    text: bytes, plainly: Callable[[bytes, Parser], dict[Channel, float]]
) -> None:
    for name, parser in PARSERS.items():
        try:
            expected = plainly(text, parser)
        except ParseError:
            expected = {}
        batch = Batch([learn(text, parser)])
        values = batch.decode([[text], [text]])
        assert values is not None
        assert set(batch.channels) == set(expected), name
        assert values.tolist()[1] == pytest.approx(
            [expected[channel] for channel in batch.channels], rel=1e-12, nan_ok=True
        ), name


@settings(max_examples=60, deadline=None)
@given(before=TEXTS, after=TEXTS)
def test_a_text_that_fits_has_the_readings_of_its_own(before: bytes, after: bytes) -> None:
    for name, parser in PARSERS.items():
        shape = learn(before, parser)
        if shape.fits(after):
            own = learn(after, parser)
            assert [(each.channel, list(each.numbers)) for each in shape.readings] == [
                (each.channel, list(each.numbers)) for each in own.readings
            ], name


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_numbers_are_the_runs_of_digits_and_huge_ones_stay_huge(text: bytes) -> None:
    expected = [min(int(digits), (1 << 63) - 1) for digits in re.findall(rb"[0-9]+", text)]
    assert numbers_of(text).tolist() == expected


@given(text=TEXTS)
def test_cutting_never_takes_more_than_the_interrupts(text: bytes) -> None:
    cut = cut_interrupts(text)
    assert cut == text or (b"\nintr " in text and len(cut) < len(text))


CUTS: dict[str, tuple[Callable[[bytes], bytes], Parser]] = {
    "softnet": (fold_softnet, PARSERS["folded"]),
    "conntrack": (fold_conntrack, PARSERS["folded"]),
    "schedstat": (fold_schedstat, PARSERS["folded"]),
    "buddyinfo": (partial(fold_buddyinfo, huge_order=9), PARSERS["buddyinfo"]),
    "mountstats": (fold_mountstats, PARSERS["folded"]),
    "clock": (cut_clock, PARSERS["clock"]),
}


@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
@example(text=b"")
@example(text=b"\n\n")
@example(text=b"version 15\ncpu0 1\n")
@example(text=b"version 99999999999999999999\n")
@example(text=b"version 15\ncpu0 1 1 1 1 1 1 1 1 " + b"9" * 5000 + b"\n")
@example(text=b"device a mounted on b with fstype nfs\n\tbytes:\t" + b"9" * 5000 + b" 2 3 4 5 6 7 8\n")
@example(text=b"drop early_drop\n0000001f 0x00001f\n")
@example(text=b"Node 0, zone Normal" + b" 1" * 15000 + b"\n")
def test_a_cut_folds_a_table_or_leaves_what_is_none(text: bytes) -> None:
    for name, (cut, parser) in CUTS.items():
        assert learn(cut(text), parser).count >= 0, name


@given(
    text=st.one_of(st.text(max_size=12), st.sampled_from(["16", "2.5 GT/s", "16.0 GT/s PCIe", "Unknown", "-1", "\xb2"]))
)
def test_links_are_known_in_whole_numbers_or_not_at_all(text: str) -> None:
    for number in (lanes(text), whole_speed(text)):
        assert number is None or 0 < number <= 1024
