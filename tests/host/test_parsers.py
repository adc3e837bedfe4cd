"""The parsers one by one, on texts as kernels write them, real ones where the origin is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from unveil.host.parsers.cgroup_stat import parse_cgroup_cpu, parse_cgroup_memory, parse_cgroup_numa, parse_single
from unveil.host.parsers.diskstats import parse_diskstats
from unveil.host.parsers.interrupts import parse_interrupts
from unveil.host.parsers.keyed import parse_keyed
from unveil.host.parsers.meminfo import parse_meminfo
from unveil.host.parsers.net_dev import MOST_NICS, parse_net_dev
from unveil.host.parsers.net_snmp import parse_net_snmp
from unveil.host.parsers.pressure import parse_pressure
from unveil.host.parsers.shape import Parser, learn
from unveil.host.parsers.softirqs import parse_softirqs
from unveil.host.parsers.stat import cut_interrupts, parse_stat
from unveil.host.sources.vmstat import PARTS
from unveil.records.metric import Channel

Plainly = Callable[[bytes, Parser], dict[Channel, float]]
Values = Callable[[str, Parser], dict[str, float]]


@pytest.fixture
def values(plainly: Plainly) -> Values:
    return lambda text, parser: {str(channel): value for channel, value in plainly(text.encode(), parser).items()}


def test_stat_keys_cpus_by_their_id_and_leaves_guest_time_in_user(values: Values) -> None:
    text = "cpu  10 2 3 4 5 6 7 8 9 1\ncpu0 5 1 1 2 3 4 5 6 0 0\ncpu9 5 1 2 2 2 2 2 2 9 1\nctxt 77\nprocesses 5\n"
    found = values(text, partial(parse_stat, user_hz=100))
    assert found["cpu.user"] == pytest.approx(0.1)
    assert found["cpu.steal{cpu=9}"] == pytest.approx(0.02)
    assert found["cpu.context_switches"] == 77
    assert "cpu.user{cpu=1}" not in found
    assert not [name for name in found if "guest" in name]


def test_an_old_stat_with_few_columns_lacks_the_others(values: Values) -> None:
    found = values("cpu  1 2 3 4\n", partial(parse_stat, user_hz=100))
    assert sorted(found) == ["cpu.idle", "cpu.nice", "cpu.system", "cpu.user"]


def test_the_interrupts_of_stat_are_cut_down_to_their_total() -> None:
    assert cut_interrupts(b"cpu 1\nintr 99 1 2 3\nctxt 5\n") == b"cpu 1\nintr 99\nctxt 5\n"
    for text in (b"", b"cpu 1\n", b"cpu 1\nintr 99", b"cpu 1\nintr 99\nctxt 5 6\n", b"cpu 1\nintr \nctxt 5\n"):
        assert cut_interrupts(text) == text


def test_pressure_gives_totals_in_seconds(values: Values) -> None:
    text = "some avg10=0.12 avg60=1.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    assert values(text, partial(parse_pressure, subsystem="memory")) == {
        "memory.psi_some": pytest.approx(2.5),
        "memory.psi_full": pytest.approx(7e-6),
    }


def test_the_averages_of_pressure_move_without_a_new_layout() -> None:
    parser = partial(parse_pressure, subsystem="cpu")
    shape = learn(b"some avg10=0.12 avg60=1.00 avg300=0.00 total=2500000\n", parser)
    assert shape.fits(b"some avg10=99.99 avg60=13.37 avg300=5.25 total=9\n")
    assert not shape.fits(b"some avg11=99.99 avg60=13.37 avg300=5.25 total=9\n")


def test_softirqs_are_summed_over_the_cpus_that_the_header_names(values: Values) -> None:
    text = (
        "                    CPU0       CPU3\n          HI:          1          2\n      NET_RX:        30         40\n"
    )
    assert values(text, parse_softirqs) == {"cpu.softirqs{vector=HI}": 3, "cpu.softirqs{vector=NET_RX}": 70}
    assert values(text + "      TIMER:  1\n  RCU: 1 x\n", parse_softirqs).keys() == values(text, parse_softirqs).keys()


HEADER = "Inter-| Receive | Transmit\n face |bytes packets errs drop|bytes packets errs drop\n"


def test_a_network_name_ends_at_the_last_colon(values: Values) -> None:
    text = HEADER + "eth0:1 2 3 4 5 6 7 8\neth0:1: 11 12 13 14 15 16 17 18\n ibr10:30: 9 9 9 9 9 9 9 9\n"
    found = values(text, parse_net_dev)
    assert found["network.rx_bytes{nic=eth0}"] == 1
    assert found["network.tx_dropped{nic=eth0:1}"] == 18
    assert found["network.rx_errors{nic=ibr10:30}"] == 9


def test_one_interface_in_the_place_of_another_is_noticed_even_by_digits_alone() -> None:
    shape = learn((HEADER + "veth1a2: 1 2 3 4 5 6 7 8\n").encode(), parse_net_dev)
    assert shape.fits((HEADER + "veth1a2: 9 9 9 9 9 9 9 9\n").encode())
    assert not shape.fits((HEADER + "veth1a3: 9 9 9 9 9 9 9 9\n").encode())
    digits = learn((HEADER + "12: 1 2 3 4 5 6 7 8\n").encode(), parse_net_dev)
    assert not digits.fits((HEADER + "13: 1 2 3 4 5 6 7 8\n").encode())


def test_hundreds_of_interfaces_are_not_all_followed(values: Values) -> None:
    found = values(HEADER + "".join(f"veth{n}: 1 2 3 4 5 6 7 8\n" for n in range(500)), parse_net_dev)
    assert len(found) == 8 * MOST_NICS


def test_vmstat_sums_the_kinds_of_reclaim_and_not_their_breakdown(values: Values) -> None:
    text = (
        "pgscan_kswapd 1\npgscan_direct 2\npgscan_khugepaged 4\npgscan_proactive 8\npgscan_direct_throttle 1000\n"
        "pgscan_anon 500\npgscan_file 500\nallocstall_normal 3\nallocstall_movable 4\nnr_dirty_threshold 2\n"
    )
    found = values(text, partial(parse_keyed, parts=PARTS))
    assert found["memory.pgscan"] == 15
    assert found["memory.alloc_stall"] == 7
    assert found["memory.dirty_threshold"] in (2 * 4096, 2 * 16384, 2 * 65536)


def test_a_sum_with_a_line_that_is_no_number_or_twice_there_is_absent(values: Values) -> None:
    for text in ("pgscan_kswapd 1\npgscan_direct -2\n", "pgscan_kswapd 1\npgscan_kswapd 1\n", "pgscan_kswapd 1 2\n"):
        assert values(text, partial(parse_keyed, parts=PARTS)) == {}


def test_meminfo_is_in_bytes_and_huge_pages_have_their_size(values: Values) -> None:
    text = "MemFree:  7 kB\nHugePages_Total:   3\nHugePages_Free:  1\nHugepagesize:  2048 kB\nMemWrong: 5\n"
    parser = partial(
        parse_meminfo,
        metrics={b"MemFree:": "memory.free", b"MemWrong:": "memory.wrong"},
        huge_pages={b"HugePages_Total:": "memory.huge_total"},
    )
    assert values(text, parser) == {"memory.free": 7168, "memory.huge_total": 3 * 2048 * 1024}
    assert not learn(text.encode(), parser).fits(text.replace("2048", "1024").encode())
    assert values("HugePages_Total:   3\n", parser) == {}


def test_meminfo_of_a_node_names_the_node_on_each_line(values: Values) -> None:
    parser = partial(parse_meminfo, metrics={b"AnonPages:": "memory.node_anon"}, labels=(("node", "8"),))
    text = "Node 8 MemTotal:  10 kB\nNode 8 AnonPages:   5 kB\nNode 8\nNode\n"
    assert values(text, parser) == {"memory.node_anon{node=8}": 5120}


def test_snmp_reads_pairs_of_lines_and_a_negative_counter_is_no_number(values: Values) -> None:
    text = "Tcp: MaxConn InSegs\nTcp: -1 42\nUdp: InErrors\nUdp: 7\nUdp: 8\nTcpExt: A B\nTcpExt: 1\n"
    metrics = {
        (b"Tcp:", b"InSegs"): "network.tcp_in_segs",
        (b"Tcp:", b"MaxConn"): "network.max",
        (b"Udp:", b"InErrors"): "network.udp_in_errors",
        (b"TcpExt:", b"A"): "network.a",
    }
    assert values(text, partial(parse_net_snmp, metrics=metrics)) == {
        "network.tcp_in_segs": 42,
        "network.udp_in_errors": 7,
    }


DISCARDS = {
    "storage.discards{disk=nvme0n1}": 21,
    "storage.discard_bytes{disk=nvme0n1}": 23 * 512,
    "storage.discard_time{disk=nvme0n1}": 0.024,
}
FLUSHES = {"storage.flushes{disk=nvme0n1}": 25, "storage.flush_time{disk=nvme0n1}": 0.026}


@pytest.mark.parametrize(
    ("more", "later"), [("", {}), (" 21 22 23 24", DISCARDS), (" 21 22 23 24 25 26", DISCARDS | FLUSHES)]
)
def test_diskstats_grows_and_its_first_fields_stay(values: Values, more: str, later: dict[str, float]) -> None:
    text = f" 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11{more}\n 8 1 sda1 1 2 3 4 5 6 7 8 9 10 11\n 8 2 sda 1 2 3\n"
    found = values(text, partial(parse_diskstats, wanted=lambda name: name != "sda1"))
    assert found == {
        "storage.reads{disk=nvme0n1}": 1,
        "storage.read_bytes{disk=nvme0n1}": 3 * 512,
        "storage.read_time{disk=nvme0n1}": pytest.approx(0.004),
        "storage.writes{disk=nvme0n1}": 5,
        "storage.write_bytes{disk=nvme0n1}": 7 * 512,
        "storage.write_time{disk=nvme0n1}": pytest.approx(0.008),
        "storage.in_flight{disk=nvme0n1}": 9,
        "storage.io_time{disk=nvme0n1}": pytest.approx(0.010),
        "storage.queue_time{disk=nvme0n1}": pytest.approx(0.011),
        "storage.read_merges{disk=nvme0n1}": 2,
        "storage.write_merges{disk=nvme0n1}": 6,
        **{name: pytest.approx(value) for name, value in later.items()},
    }


def test_another_disk_under_the_same_name_has_another_identity() -> None:
    parser = partial(parse_diskstats, wanted=lambda _: True)
    before = learn(b"8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n", parser)
    assert not before.fits(b"8 16 sda 1 2 3 4 5 6 7 8 9 10 11\n")
    after = learn(b"8 16 sda 1 2 3 4 5 6 7 8 9 10 11\n", parser)
    assert {reading.identity for reading in before.readings} == {"8:0"}
    assert {reading.identity for reading in after.readings} == {"8:16"}


INTERRUPTS = """\
           CPU0       CPU1       CPU8
 24:          1          2          3  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
NMI:          0          0          0   Non-maskable interrupts
RES:         10         20         30   Rescheduling interrupts
ERR:          4
 25:          5          x          6  broken
"""


def test_interrupts_are_keyed_by_the_cpu_ids_of_the_header(values: Values) -> None:
    assert values(INTERRUPTS, partial(parse_interrupts, node_of={})) == {
        "cpu.irq{irq=24,cpu=0}": 1,
        "cpu.irq{irq=24,cpu=1}": 2,
        "cpu.irq{irq=24,cpu=8}": 3,
        "cpu.ipi{vector=NMI}": 0,
        "cpu.ipi{vector=RES}": 60,
    }


def test_a_row_with_a_column_more_than_the_header_is_of_other_cpus(values: Values) -> None:
    plugged_in = INTERRUPTS.replace("1          2          3  PCI", "1          7          2          3  PCI")
    told = values(
        plugged_in.replace("10         20", "10         70         20"), partial(parse_interrupts, node_of={})
    )
    assert told == {"cpu.ipi{vector=NMI}": 0}


@pytest.mark.parametrize("name", ["CPU", "CPUx", "cpu0", "CPU1_0", "CPU" + "9" * 5000])
def test_a_header_that_names_no_cpu_is_no_table_of_interrupts(name: str) -> None:
    shape = learn(f"{name}\n24: 1 x\n".encode(), partial(parse_interrupts, node_of={}))
    assert (shape.readings, shape.problem) == ((), "the header does not name the CPUs")


def test_an_interrupt_number_given_to_another_device_is_noticed() -> None:
    shape = learn(INTERRUPTS.encode(), partial(parse_interrupts, node_of={}))
    assert shape.fits(INTERRUPTS.replace("20", "21").encode())
    for old, new in (("virtio1-req.0", "virtio1-req.1"), ("24:", "26:"), ("CPU8", "CPU9"), ("00:02.0", "00:03.0")):
        assert not shape.fits(INTERRUPTS.replace(old, new).encode()), new


def big_interrupts(cpus: int, irqs: int, node_of: dict[int, int]) -> tuple[str, dict[str, float]]:
    lines = ["".join(f"CPU{cpu:<8}" for cpu in range(cpus))]
    sums: dict[str, float] = {}
    for irq in range(irqs):
        counts = [irq * 1000 + cpu for cpu in range(cpus)]
        lines.append(
            f"{irq:4}: " + " ".join(f"{count:10}" for count in counts) + f"  IR-PCI-MSI {irq}-edge mlx5_comp{irq}"
        )
        for cpu, count in enumerate(counts):
            label = f"cpu.irq{{irq={irq},node={node_of[cpu]}}}" if node_of else f"cpu.irq{{irq={irq}}}"
            sums[label] = sums.get(label, 0) + count
    lines.append(" LOC: " + " ".join(str(cpu) for cpu in range(cpus)) + "   Local timer interrupts")
    sums["cpu.ipi{vector=LOC}"] = sum(range(cpus))
    return "\n".join(lines) + "\n", sums


@pytest.mark.parametrize("nodes", [8, 0], ids=["by node", "nodes unknown"])
def test_a_host_with_128_cpus_gets_sums_by_node(values: Values, nodes: int) -> None:
    node_of = {cpu: cpu // 16 for cpu in range(128)} if nodes else {}
    text, expected = big_interrupts(128, 400, node_of)
    assert values(text, partial(parse_interrupts, node_of=node_of)) == expected


def test_cgroups_of_both_versions_come_out_under_the_same_metrics(values: Values) -> None:
    v1 = "nr_periods 4\nnr_throttled 1\nthrottled_time 250000000\nnr_bursts 0\n"
    v2 = "usage_usec 1000000\nuser_usec 1\nnr_periods 4\nnr_throttled 1\nthrottled_usec 250000\n"
    parser = partial(parse_cgroup_cpu, cgroup="/pod", identity="7")
    first, second = values(v1, partial(parser, version=1)), values(v2, partial(parser, version=2))
    assert second.pop("cpu.cgroup_usage{cgroup=/pod}") == pytest.approx(1.0)
    assert first == second
    usage = partial(parse_single, metric="cpu.cgroup_usage", scale=1e-9, cgroup="/pod", identity="7")
    assert values("1000000000\n", usage) == {"cpu.cgroup_usage{cgroup=/pod}": pytest.approx(1.0)}
    for text in ("max\n", "-1\n", "1 2\n", "1\n2\n", ""):
        assert values(text, usage) == {}


def test_memory_of_version_1_is_that_of_the_whole_subtree(values: Values) -> None:
    text = "rss 1\ncache 1\ntotal_rss 300\ntotal_rss_huge 200\ntotal_cache 50\nhierarchical_memory_limit 9000\n"
    found = values(text, partial(parse_cgroup_memory, version=1, cgroup="/pod", identity=""))
    assert found["memory.cgroup_anon{cgroup=/pod}"] == 300
    assert found["memory.cgroup_anon_huge{cgroup=/pod}"] == 200
    assert found["memory.cgroup_file{cgroup=/pod}"] == 50
    assert found["memory.cgroup_limit{cgroup=/pod}"] == 9000


def test_numa_memory_is_in_bytes_in_both_versions(values: Values) -> None:
    v1 = "total=9 N0=5 N1=4\nanon=1 N0=1 N1=0\nhierarchical_anon=7 N0=3 N8=4\n"
    v2 = f"anon N0={3 * 4096} N8={4 * 4096}\nfile N0=1 N8=1\nanon_thp N0=1 N8=1\n"
    parser = partial(parse_cgroup_numa, page_bytes=4096, cgroup="/pod", identity="")
    expected = {
        "interconnect.cgroup_node_anon{cgroup=/pod,node=0}": 3 * 4096,
        "interconnect.cgroup_node_anon{cgroup=/pod,node=8}": 4 * 4096,
    }
    assert values(v1, partial(parser, version=1)) == expected
    assert values(v2, partial(parser, version=2)) == expected


def test_a_name_that_is_no_utf8_becomes_text_that_can_be_stored(plainly: Plainly) -> None:
    found = plainly(HEADER.encode() + b"e\xff\xfe: 1 2 3 4 5 6 7 8\n", parse_net_dev)
    assert {channel.label("nic") for channel in found} == {"e\\xff\\xfe"}


def test_vmstat_tells_what_moved_and_what_was_in_vain(values: Values) -> None:
    text = (
        "pgalloc_dma32 1\npgalloc_normal 20\npgalloc_movable 300\ncompact_migrate_scanned 5\ncompact_free_scanned 6\n"
        "compact_daemon_free_scanned 99\ndrop_pagecache 1\ndrop_slab 2\npgdemote_kswapd 4\npgdemote_direct 5\n"
        "pgmigrate_fail 7\nworkingset_refault_file 8\nballoon_inflate 9\n"
    )
    assert values(text, partial(parse_keyed, parts=PARTS)) == {
        "memory.allocated": 321,
        "memory.compact_scanned": 11,
        "memory.cache_drops": 3,
        "interconnect.pgdemote": 9,
        "interconnect.pgmigrate_fail": 7,
        "memory.refault_file": 8,
        "memory.balloon_inflate": 9,
    }


def test_a_kernel_before_5_9_has_one_kind_of_refault(values: Values) -> None:
    assert values("workingset_refault 8\n", partial(parse_keyed, parts=PARTS)) == {"memory.refault_file": 8}
