"""The counters of containers' own network namespaces, on made hosts."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from unveil.host.namespaces import Member
from unveil.host.parsers.namespace_counters import Selection, parse_counters
from unveil.host.parsers.text import Text
from unveil.host.sampler import Sampler
from unveil.host.source import SourceState
from unveil.host.sources import cgroup_network
from unveil.records.metric import Channel

TICK = 100_000_000
FIRST, SECOND_ONE = (f"/docker-{number:064x}.scope" for number in (1, 2))


def space(procfs, pid: int, *, out: int = 5, resent: int = 1, timeouts: int = 0) -> None:
    """Write the counters that a process sees; those that are there already go on."""
    procfs.write(
        f"proc/{pid}/net/snmp",
        "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
        "Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs InErrs\n"
        f"Tcp: 1 -1 {out // 2} {out} {resent} 3\n"
        "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 7 0 0 8 9\n",
    )
    procfs.write(
        f"proc/{pid}/net/netstat",
        "TcpExt: SyncookiesSent ListenDrops TCPTimeouts\n"
        f"TcpExt: 0 4 {timeouts}\nIpExt: InNoRoutes InTruncatedPkts\nIpExt: 1 2\n",
    )


def container(procfs, path: str, *pids: int) -> None:
    procfs.cgroup_v2(path)
    procfs.write(f"sys/fs/cgroup{path}/cgroup.procs", "".join(f"{pid}\n" for pid in pids))


def channel(name: str, path: str) -> Channel:
    return Channel(f"network.cgroup_{name}", (("cgroup", path),))


def watched(procfs, seconds: int, at_second) -> dict[Channel, list[float]]:
    """Return the samples of all channels while something happens to the host each second."""
    sampler = Sampler(procfs.root, sources=(cgroup_network.SOURCE,))
    seen: dict[Channel, list[float]] = {}
    try:
        for tick in range(10 * seconds):
            if tick % 10 == 0:
                at_second(tick // 10)
            sampler.tick(tick * TICK)
            if tick % 10 == 9:
                for block in sampler.collect(tick * TICK):
                    for column, each in enumerate(block.layout.channels):
                        seen.setdefault(each, []).extend(block.values[:, column].tolist())
    finally:
        sampler.close()
    return seen


def test_what_is_wanted_is_taken_and_the_host_left_out(procfs, look) -> None:
    space(procfs, 1)
    space(procfs, 10, out=1000, resent=8, timeouts=2)
    container(procfs, FIRST, 10)
    values, health = look(cgroup_network.SOURCE)
    assert {name.partition("{")[0].removeprefix("network.cgroup_"): value for name, value in values.items()} == {
        "tcp_in_segs": 500,
        "tcp_out_segs": 1000,
        "tcp_retrans": 8,
        "tcp_timeouts": 2,
        "tcp_listen_drops": 4,
        "udp_in_datagrams": 7,
        "udp_rcvbuf_errors": 9,
    }
    assert {name.partition("{")[2] for name in values} == {f"cgroup={FIRST}}}"}
    assert (health.state, health.files) == (SourceState.OK, 1)


def test_namespaces_of_one_cgroup_are_added_up(procfs, look) -> None:
    space(procfs, 1)
    space(procfs, 10, out=1000)
    space(procfs, 11, out=30)
    container(procfs, "/workload", 10, 11)
    assert look(cgroup_network.SOURCE)[0]["network.cgroup_tcp_out_segs{cgroup=/workload}"] == 1030


def test_a_host_without_containers_has_no_such_source(procfs, look) -> None:
    space(procfs, 1)
    container(procfs, FIRST)
    values, health = look(cgroup_network.SOURCE)
    assert (values, health.state) == ({}, SourceState.ABSENT)
    assert health.reason == "no cgroup that is followed has a network namespace of its own"


def test_hidden_processes_are_said(procfs, look) -> None:
    space(procfs, 1)
    container(procfs, FIRST, 4711)
    health = look(cgroup_network.SOURCE)[1]
    assert health.state is SourceState.ABSENT
    assert health.reason == "the processes of 1 containers are hidden (hidepid, or another PID namespace)"


def test_a_host_whose_own_namespace_is_not_known_has_none(procfs, look) -> None:
    space(procfs, 10)
    container(procfs, FIRST, 10)
    assert look(cgroup_network.SOURCE)[1].reason == "which network namespace is the host's is not known"


def test_counters_of_a_namespace_that_replaced_another_begin_anew(procfs) -> None:
    space(procfs, 1)
    space(procfs, 10, out=1000)
    container(procfs, FIRST, 10)

    def at_second(second: int) -> None:
        if second < 12:
            space(procfs, 10, out=1000 + second)
        elif second == 12:
            space(procfs, 20, out=10**9)
            for name in ("snmp", "netstat"):
                procfs.remove(f"proc/10/net/{name}")
            procfs.write(f"sys/fs/cgroup{FIRST}/cgroup.procs", "20\n")
        else:
            space(procfs, 20, out=10**9 + second)

    samples = watched(procfs, 32, at_second)[channel("tcp_out_segs", FIRST)]
    absent = [index for index, value in enumerate(samples) if np.isnan(value)]
    (gap,) = absent
    assert 1 < gap < len(samples) - 2
    assert max(samples[:gap]) < 2000
    assert min(samples[gap + 1 :]) >= 10**9  # no step from one to the other: the rate never sees both


def test_a_container_that_comes_and_one_that_goes_leave_the_others_alone(procfs) -> None:
    space(procfs, 1)
    space(procfs, 10)
    container(procfs, FIRST, 10)

    def at_second(second: int) -> None:
        space(procfs, 10, out=100 + second)
        if second == 8:
            space(procfs, 20, out=7)
            container(procfs, SECOND_ONE, 20)
        if second == 18:
            for name in ("snmp", "netstat"):
                procfs.remove(f"proc/20/net/{name}")

    seen = watched(procfs, 40, at_second)
    first = seen[channel("tcp_out_segs", FIRST)]
    assert np.isfinite(first).all()
    assert first == sorted(first)
    second = seen[channel("tcp_out_segs", SECOND_ONE)]
    assert second[0] == 7
    assert np.isnan(second[-1])


def test_counters_that_stand_are_not_added_up_again(procfs, monkeypatch) -> None:
    space(procfs, 1)
    space(procfs, 10)
    container(procfs, FIRST, 10)
    added: list[object] = []
    genuine = cgroup_network._told
    monkeypatch.setattr(cgroup_network, "_told", lambda *texts: added.append(texts) or genuine(*texts))
    seen = watched(procfs, 30, lambda second: space(procfs, 10, out=5 if second < 16 else 50))
    assert len(added) == 2
    assert set(seen[channel("tcp_out_segs", FIRST)]) == {5, 50}


def test_many_are_read_in_turns_some_each_second(procfs, monkeypatch) -> None:
    space(procfs, 1)
    for number in range(90):
        space(procfs, 100 + number)
        container(procfs, f"/docker-{number:064x}.scope", 100 + number)
    reads: list[int] = []
    now = [0]
    genuine = Member.read
    monkeypatch.setattr(Member, "read", lambda member: reads.append(now[0]) or genuine(member))

    def at_second(second: int) -> None:
        now[0] = second

    seen = watched(procfs, 16, at_second)
    of_a_row = [reads.count(second) for second in range(6, 11)]  # the first reads what is new
    assert sum(of_a_row) == len({each.label("cgroup") for each in seen} - {None}) == 64
    assert max(of_a_row) == 16


SELECTION = Selection({b"Tcp:": {b"OutSegs": b"out"}, b"Udp:": {b"NoPorts": b"none"}})


@given(st.binary(max_size=200))
@example(b"Tcp: OutSegs\nTcp: " + b"9" * 5000)
def test_any_text_gives_counters_or_nothing(text: bytes) -> None:
    assert all(value >= 0 and name in (b"out", b"none") for name, value in SELECTION.of(text))


@given(st.lists(st.sampled_from([b"OutSegs", b"InSegs", b"x"]), min_size=1, unique=True), st.data())
def test_a_counter_stands_where_its_name_does(names: list[bytes], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(0, 1 << 64), min_size=len(names), max_size=len(names)))
    text = b"Tcp: " + b" ".join(names) + b"\nTcp: " + b" ".join(b"%d" % value for value in values) + b"\n"
    wanted = [(b"out", value) for name, value in zip(names, values, strict=True) if name == b"OutSegs"]
    assert list(SELECTION.of(text)) == wanted


def test_lines_that_do_not_belong_together_are_left_out() -> None:
    assert list(SELECTION.of(b"Tcp: OutSegs\nUdp: 5\n")) == []
    assert list(SELECTION.of(b"Tcp: InSegs OutSegs\nTcp: 5\n")) == []
    assert list(SELECTION.of(b"Tcp: OutSegs")) == []


def test_whose_they_are_is_part_of_every_reading() -> None:
    readings = list(parse_counters(Text(b"of 12 13\nnetwork.x 5\nnetwork.y z\n"), "/a"))
    assert [(each.channel, list(each.numbers), each.identity) for each in readings] == [
        (Channel("network.x", (("cgroup", "/a"),)), [2], "12 13")
    ]
