"""Which channels an entity has, and which entities count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from unveil.features.feature import Channels, Pick, Picked, Stat
from unveil.features.roster import Roster
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import FactTable
from unveil.records.sample import SampleBlock

Block = Callable[..., SampleBlock]
Facts = Callable[..., FactTable]
RX = Channels(metric="network.rx_bytes", stat=Stat.RATE, over=("nic",))


def nics(block: Block, facts: FactTable, *names: str) -> list[str]:
    made = block({f"network.rx_bytes{{nic={name}}}": [1] for name in names}, 1.0)
    return [entity.key for entity in Roster([made.layout], facts).counted(EntityKind.NIC)]


def test_without_facts_a_name_tells_what_is_physical(block: Block, facts: Facts) -> None:
    named = ("bond0", "br-lan", "docker0", "eth0", "eth0.100", "lo", "veth1f", "virbr0", "wlan0", "ib0", "enp1s0")
    assert nics(block, facts({}), *named) == ["enp1s0", "eth0", "ib0", "wlan0"]


def test_every_interface_is_in_the_sum_where_that_is_asked_for(block: Block, facts: Facts) -> None:
    made = block({f"network.rx_bytes{{nic={name}}}": [1] for name in ("docker0", "eth0", "veth1f")}, 1.0)
    roster = Roster([made.layout], facts({}))
    assert roster.places(RX, HOST) == [(0, 1)]
    assert roster.places(replace(RX, every=True), HOST) == [(0, 0), (0, 1), (0, 2)]


def test_a_fact_knows_better_than_a_name(block: Block, facts: Facts) -> None:
    known = facts({"network.nic_physical[nic:lan]": False, "network.nic_physical[nic:bond0]": True})
    assert nics(block, known, "lan", "bond0", "eth0") == ["bond0", "eth0"]


def test_in_a_container_the_only_interface_counts_though_it_is_virtual(block: Block, facts: Facts) -> None:
    known = facts({"network.nic_physical[nic:eth0]": False, "network.nic_physical[nic:lo]": False})
    assert nics(block, known, "lo", "eth0") == ["eth0"]


def test_disks_on_disks_and_the_root_cgroup_do_not_count(block: Block, facts: Facts) -> None:
    made = block({f"storage.reads{{disk={disk}}}": [1] for disk in ("sda", "dm-0", "md127", "zram0", "loop3")}, 1.0)
    groups = block({f"cpu.cgroup_usage{{cgroup={key}}}": [1] for key in ("/", "/a", "/a/b")}, 1.0)
    roster = Roster([made.layout, groups.layout], facts({}))
    assert [entity.key for entity in roster.counted(EntityKind.DISK)] == ["sda"]
    assert [entity.key for entity in roster.counted(EntityKind.CGROUP)] == ["/a", "/a/b"]
    assert len(roster.entities(EntityKind.CGROUP)) == 3
    assert roster.entities(EntityKind.HOST) == (HOST,)


def test_the_hosts_total_is_the_channel_without_a_label(block: Block, facts: Facts) -> None:
    roster = Roster([block({"cpu.user": [1], "cpu.user{cpu=0}": [1], "cpu.user{cpu=8}": [1]}, 1.0).layout], facts({}))
    assert roster.places(Channels(metric="cpu.user", stat=Stat.RATE), HOST) == [(0, 0)]
    per_cpu = Channels(metric="cpu.user", stat=Stat.RATE, over=("cpu",))
    assert roster.places(per_cpu, Entity(EntityKind.CPU, "8")) == [(0, 2)]
    assert roster.places(per_cpu, HOST) == [(0, 1), (0, 2)]
    assert roster.places(per_cpu, Entity(EntityKind.CPU, "3")) is None


def test_cpu_time_in_interrupts_is_no_interrupt(block: Block, facts: Facts) -> None:
    samples = {"cpu.irq": [1], "cpu.irq{cpu=0}": [1], "cpu.irq{irq=9,cpu=0}": [1], "cpu.irq{irq=9,node=1}": [1]}
    roster = Roster([block(samples, 1.0).layout], facts({}))
    assert roster.places(Channels(metric="cpu.irq", stat=Stat.RATE), HOST) == [(0, 0)]
    assert roster.places(Channels(metric="cpu.irq", stat=Stat.RATE, over=("cpu",)), HOST) == [(0, 1)]
    assert roster.places(Channels(metric="cpu.irq", stat=Stat.RATE, over=("irq",), loose=True), HOST) == [
        (0, 2),
        (0, 3),
    ]


def test_qualifiers_choose(block: Block, facts: Facts) -> None:
    layout = block({"cpu.softirqs{vector=RCU}": [1], "cpu.softirqs{vector=NET_RX}": [1]}, 1.0).layout
    received = Channels(metric="cpu.softirqs", stat=Stat.RATE, where=(("vector", "NET_RX"),))
    assert Roster([layout], facts({})).places(received, HOST) == [(0, 1)]


def test_a_channel_that_is_there_twice_counts_once(block: Block, facts: Facts) -> None:
    layout = block({"network.rx_bytes{nic=eth0}": [1]}, 1.0).layout
    assert Roster([layout, layout], facts({})).places(RX, HOST) == [(0, 0)]


def test_a_pick_chooses_by_facts(block: Block, facts: Facts) -> None:
    layout = block({"cpu.irq{irq=9,cpu=0}": [1], "cpu.irq{irq=9,cpu=1}": [1], "cpu.irq{irq=8,cpu=1}": [1]}, 1.0).layout
    nic = Entity(EntityKind.NIC, "eth0")

    def choose(_: FactTable, entity: Entity) -> Picked | None:
        return Picked(frozenset({"9"}), lambda labels: labels["cpu"] == "1") if entity == nic else None

    picked = Channels(metric="cpu.irq", stat=Stat.RATE, over=("irq",), loose=True, pick=Pick((), choose))
    roster = Roster([layout], facts({}))
    assert roster.places(picked, nic) == [(0, 1)]
    assert roster.places(picked, Entity(EntityKind.NIC, "eth1")) is None

    def nothing(_: FactTable, entity: Entity) -> Picked | None:
        return Picked(frozenset({entity.key}), lambda _: False)

    none_of_them = Channels(metric="cpu.irq", stat=Stat.RATE, over=("irq",), loose=True, pick=Pick((), nothing))
    assert roster.places(none_of_them, Entity(EntityKind.NIC, "9")) == []
    assert roster.places(none_of_them, Entity(EntityKind.NIC, "7")) is None
