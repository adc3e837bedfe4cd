"""Windows to vectors: the six cases that fingerprints know, by hand, and what must hold for any window at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.features.catalogue import FEATURES
from unveil.features.extract import Extractor
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import FactTable
from unveil.records.feature import FeatureVector
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.records.window import Window

Extract = Callable[..., FeatureVector]
MakeBlock = Callable[..., SampleBlock]
MakeWindow = Callable[..., Window]
MakeFacts = Callable[..., FactTable]
DETECTED = [name for name, feature in FEATURES.items() if feature.detect]
GIB = 2.0**30
POD = Entity(EntityKind.CGROUP, "/kubepods/pod1")


def cpu(seconds: int, **shares: float) -> dict[str, list[float]]:
    """Host totals of 4 CPUs over some seconds, from shares of their time."""
    states = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"]
    return {f"cpu.{state}": [100 + 4 * shares.get(state, 0.0) * at for at in range(seconds + 1)] for state in states}


# The six cases.


def test_huge_pages_gone(extract: Extract) -> None:
    vector = extract(
        {
            "memory.page_faults": [1000, 78_000, 155_000, 232_000],
            "memory.thp_fault_alloc": [190, 190, 190, 190],
            "memory.thp_fault_fallback": [10, 10, 10, 10],
            "memory.anon": [8 * GIB] * 4,
            "memory.anon_huge": [0.0] * 4,
            "memory.cgroup_anon{cgroup=/kubepods/pod1}": [5 * GIB, 5 * GIB, 6 * GIB, 6 * GIB],
            "memory.cgroup_anon_huge{cgroup=/kubepods/pod1}": [0, 0, 0, 1.5 * GIB],
        }
    )
    assert vector.get("memory.page_faults.rate") == 77_000.0
    assert vector.get("memory.thp_fault_alloc.rate") == 0.0
    assert vector.get("memory.thp_fault_fallback_share.rate") is None, "a share of no faults is nothing"
    assert vector.get("memory.anon_huge_share.last") == 0.0
    assert vector.get("memory.cgroup_anon.last", POD) == 6 * GIB
    assert vector.get("memory.cgroup_huge_share.last", POD) == 0.25
    falling_back = extract({"memory.thp_fault_alloc": [0, 10], "memory.thp_fault_fallback": [0, 30]})
    assert falling_back.get("memory.thp_fault_fallback_share.rate") == 0.75


def test_interrupts_on_the_wrong_node(extract: Extract) -> None:
    eth0 = Entity(EntityKind.NIC, "eth0")
    vector = extract(
        {
            "network.rx_bytes{nic=eth0}": [0, 10**9, 2 * 10**9],
            "network.rx_packets{nic=eth0}": [0, 10**6, 2 * 10**6],
            "network.tx_bytes{nic=eth0}": [0, 500, 1000],
            "cpu.irq{irq=60,cpu=0}": [0, 900, 1800],
            "cpu.irq{irq=60,cpu=9}": [0, 100, 200],
        },
        {
            "network.nic_irqs[nic:eth0]": ("60",),
            "network.nic_node[nic:eth0]": 1.0,
            "network.nic_local_cpus[nic:eth0]": "8-15",
            "network.nic_speed[nic:eth0]": 10_000.0,
        },
    )
    assert vector.get("network.irq_remote_share.rate", eth0) == pytest.approx(0.9)
    assert vector.get("network.irq.rate", eth0) == 1000.0
    assert vector.get("network.rx_bytes.rate", eth0) == 1e9
    assert vector.get("network.rx_packets.rate", eth0) == 1e6
    assert vector.get("network.tx_bytes.rate", eth0) == 500.0
    assert vector.get("network.rx_utilisation.rate", eth0) == pytest.approx(0.8)
    assert vector.get("network.rx_packet_size.rate") == 1000.0


def test_memory_on_the_wrong_node(extract: Extract) -> None:
    vector = extract(
        {
            "interconnect.cgroup_node_anon{cgroup=/kubepods/pod1,node=0}": [3 * GIB],
            "interconnect.cgroup_node_anon{cgroup=/kubepods/pod1,node=1}": [1 * GIB],
            "interconnect.numa_local": [0],
            "interconnect.numa_other": [0],
        },
        {"interconnect.cgroup_home_node[cgroup:/kubepods/pod1]": 1.0},
    )
    assert vector.get("interconnect.cgroup_remote_share.last", POD) == 0.75
    assert vector.get("interconnect.numa_other_share.rate") is None, "one sample of a counter says nothing"
    again = extract({"interconnect.numa_local": [0, 60], "interconnect.numa_other": [0, 40]})
    assert again.get("interconnect.numa_other_share.rate") == pytest.approx(0.4)


def test_a_power_limit_left_low(extract: Extract) -> None:
    gpu = Entity(EntityKind.GPU, "GPU-1")
    label = "{gpu=GPU-1}"
    vector = extract(
        {
            f"gpu.util{label}": [0.9, 1.0, 0.8, 0.9],
            f"gpu.power{label}": [300, 299, 301, 300],
            f"gpu.power_limit{label}": [700, 300, 300, 300],
            f"gpu.power_default{label}": [700] * 4,
            f"gpu.throttle_power{label}": [0, 1, 1, 1],
            f"gpu.throttle_thermal{label}": [0, 0, 0, 0],
            f"gpu.sm_clock{label}": [1755, 1155, 1155, 1155],
            f"gpu.value_age{label}": [0.1, 0.1, None, 0.4],
        }
    )
    assert vector.get("gpu.util.mean", gpu) == pytest.approx(0.9)
    assert vector.get("gpu.power_limit_share.min", gpu) == pytest.approx(3 / 7)
    assert vector.get("gpu.power_to_limit.mean", gpu) == pytest.approx(300 / 400)
    assert vector.get("gpu.throttle_power.mean", gpu) == 0.75
    assert vector.get("gpu.throttle_thermal.max", gpu) == 0.0
    assert vector.get("gpu.sm_clock.mean", gpu) == 1305.0
    assert vector.get("gpu.value_age.max", gpu) == 0.4


def test_a_quota_that_throttles_on_an_idle_host(extract: Extract) -> None:
    label = "{cgroup=/kubepods/pod1}"
    vector = extract(
        cpu(3, user=0.1, system=0.05, softirq=0.05, iowait=0.1, idle=0.6, steal=0.1)
        | {
            f"cpu.cgroup_periods{label}": [50, 60, 70, 80],
            f"cpu.cgroup_throttled{label}": [7, 14, 20, 28],
            f"cpu.cgroup_throttled_time{label}": [1.0, 1.5, 2.0, 4.0],
            f"cpu.cgroup_usage{label}": [0.0, 0.5, 1.0, 1.5],
        },
        {"cpu.cgroup_quota[cgroup:/kubepods/pod1]": 0.5},
    )
    assert vector.get("cpu.cgroup_throttled_share.rate", POD) == pytest.approx(0.7)
    assert vector.get("cpu.cgroup_throttled_time.rate", POD) == 1.0
    assert vector.get("cpu.cgroup_usage.rate", POD) == 0.5
    assert vector.get("cpu.cgroup_quota_share.rate", POD) == 1.0
    assert vector.get("cpu.busy.rate") == pytest.approx(0.2)
    assert vector.get("cpu.idle.rate") == pytest.approx(0.6)
    assert vector.get("cpu.iowait.rate") == pytest.approx(0.1)
    assert vector.get("cpu.steal.rate") == pytest.approx(0.1)
    assert vector.get("cpu.cgroup_throttled_share_highest.rate") == pytest.approx(0.7)


def test_writers_at_the_dirty_threshold(extract: Extract) -> None:
    vector = extract(
        {
            "memory.dirty": [90, 100, 110, 100],
            "memory.writeback": [10, 30, 20, 20],
            "memory.dirty_threshold": [200] * 4,
            "storage.psi_some": [1.0, 1.9, 2.8, 3.7],
            "storage.psi_full": [0.5, 1.0, 1.5, 2.0],
            "memory.psi_some": [0.0, 0.0, 0.0, 0.3],
            "cpu.psi_some": [0.0, 0.2, 0.4, 0.6],
            "storage.write_bytes{disk=sda}": [0, 100, 200, 300],
            "storage.write_bytes{disk=sdb}": [0, 1, 2, 3],
            "storage.write_bytes{disk=dm-0}": [0, 100, 200, 300],
        }
    )
    assert vector.get("memory.dirty_to_threshold.mean") == 0.5
    assert vector.get("memory.dirty.mean") == 100.0
    assert vector.get("memory.writeback.mean") == 20.0
    assert vector.get("storage.psi_some.rate") == pytest.approx(0.9)
    assert vector.get("storage.psi_full.rate") == pytest.approx(0.5)
    assert vector.get("memory.psi_some.rate") == pytest.approx(0.1)
    assert vector.get("cpu.psi_some.rate") == pytest.approx(0.2)
    assert vector.get("storage.write_bytes.rate") == 101.0, "a volume's bytes are its disks' bytes"


# Absence.


def test_a_total_that_lacks_a_part_makes_no_share(extract: Extract) -> None:
    samples = cpu(3, user=0.5, idle=0.5)
    del samples["cpu.steal"]
    assert extract(samples).get("cpu.idle.rate") is None


def test_a_nic_that_came_a_moment_ago_does_not_hide_the_others(extract: Extract) -> None:
    vector = extract({"network.rx_bytes{nic=eth0}": [0, 5, 10], "network.rx_bytes{nic=eth1}": [None, None, 7]})
    assert vector.get("network.rx_bytes_total.rate") == 5.0
    assert vector.get("network.rx_bytes.rate", Entity(EntityKind.NIC, "eth1")) is None


def test_bytes_of_a_bond_are_the_bytes_of_its_members(extract: Extract) -> None:
    names = ("eth0", "eth1", "bond0", "veth9", "docker0", "lo")
    vector = extract({f"network.tx_bytes{{nic={name}}}": [0, 10] for name in names})
    assert vector.get("network.tx_bytes_total.rate") == 20.0
    assert vector.get("network.tx_bytes.rate", Entity(EntityKind.NIC, "bond0")) == 10.0


def test_nothing_at_all_is_a_vector_of_nothing(extract: Extract) -> None:
    vector = extract({})
    assert np.isnan(vector.values).all()
    assert [feature.name for feature in vector.layout.ids[: len(DETECTED)]] == DETECTED


# Layouts and plans.


def test_the_detected_features_come_first_and_in_one_order_on_every_host(extract: Extract) -> None:
    for samples in ({"cpu.forks": [1, 2]}, {"gpu.util{gpu=GPU-1}": [1, 1], "storage.reads{disk=sda}": [0, 1]}):
        ids = extract(samples).layout.ids
        assert [feature.name for feature in ids[: len(DETECTED)]] == DETECTED
        assert all(feature.entity == HOST for feature in ids[: len(DETECTED)])
        hosts = sum(feature.per is EntityKind.HOST for feature in FEATURES.values())
        assert all(feature.entity == HOST for feature in ids[:hosts])
        assert all(feature.entity != HOST for feature in ids[hosts:])


def test_layout_and_plan_stay_while_nothing_that_matters_changes(
    block: MakeBlock, window: MakeWindow, facts: MakeFacts
) -> None:
    extractor = Extractor(FEATURES)
    one = window(block({"network.rx_bytes{nic=eth0}": [0, 1]}, 1.0))
    first = extractor.extract(one, facts({"cpu.model": "x"}))
    plan = extractor._plan
    assert extractor.extract(one, facts({"cpu.model": "y"})).layout is first.layout
    assert extractor._plan is plan, "no feature reads the model"
    speed = extractor.extract(one, facts({"network.nic_speed[nic:eth0]": 1.0}))
    assert speed.layout is first.layout
    assert speed.get("network.rx_utilisation.rate", Entity(EntityKind.NIC, "eth0")) == pytest.approx(8e-6)
    more = window(block({"network.rx_bytes{nic=eth0}": [0, 1], "cpu.forks": [0, 1]}, 1.0))
    assert extractor.extract(more, facts({})).layout is first.layout, "the same features of the same entities"
    other = window(block({"network.rx_bytes{nic=eth1}": [0, 1]}, 1.0))
    assert extractor.extract(other, facts({})).layout is not first.layout


def test_a_picks_facts_are_all_that_it_reads() -> None:
    for feature in FEATURES.values():
        for channels in feature.formula.channels:
            if channels.pick is None:
                continue
            asked: set[str] = set()

            class Table(FactTable):
                def value(self, name: str, entity: Entity = HOST, asked: set[str] = asked) -> object:  # type: ignore[override]
                    asked.add(name)
                    return ("1",) if name.endswith("irqs") else 1.0

                def of(self, name: str, asked: set[str] = asked) -> list[object]:  # type: ignore[override]
                    asked.add(name)
                    return []

            channels.pick.choose(Table(), Entity(feature.per if feature.per is not EntityKind.HOST else EntityKind.NIC))
            assert asked <= set(channels.pick.facts)


# Any window.

METRICS = sorted({each.metric for feature in FEATURES.values() for each in feature.formula.channels})
LABELS = sorted(
    {(each.metric, each.over, each.where) for feature in FEATURES.values() for each in feature.formula.channels}
)


def wild_window(seed: int, count: int, rows: int, kind: str) -> Window:
    """Some or many channels with samples of a nasty kind, in two blocks."""
    noise = np.random.default_rng(seed)
    blocks = []
    for tier in (Tier.FAST, Tier.MEDIUM):
        chosen = []
        for _ in range(count):
            metric, over, where = LABELS[noise.integers(len(LABELS))]
            chosen.append(Channel(metric, (*where, *((label, str(noise.integers(40))) for label in over))))
        size = (rows, count)
        values = {
            "constant": lambda size=size: np.full(size, 42.0),
            "huge": lambda size=size: 1e18 + np.cumsum(noise.integers(0, 2**40, size), axis=0),
            "resets": lambda size=size: noise.integers(0, 10, size) * 1e6,
            "absent": lambda size=size: np.where(noise.uniform(size=size) < 0.6, np.nan, noise.uniform(size=size)),
            "any": lambda size=size: noise.uniform(0, 1, size) * 10.0 ** noise.integers(-300, 300, size),
            "infinite": lambda size=size: np.where(noise.uniform(size=size) < 0.3, np.inf, 5.0),
        }[kind]()
        times = np.arange(rows, dtype=np.int64) * 100_000_000
        blocks.append(SampleBlock(tier=tier, layout=Layout(tuple(chosen)), times_ns=times, values=values))
    return Window(index=0, start_ns=0, end_ns=3_000_000_000, wall_s=0.0, blocks=tuple(blocks))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from([1, 2, 30, 300]),
    rows=st.sampled_from([1, 2, 4, 31]),
    kind=st.sampled_from(["constant", "huge", "resets", "absent", "any", "infinite"]),
)
def test_values_are_never_infinite_and_lie_where_they_may(seed: int, count: int, rows: int, kind: str) -> None:
    vector = Extractor(FEATURES).extract(wild_window(seed, count, rows, kind), FactTable())
    assert vector.values.shape == (len(vector.layout.ids),)
    assert not np.isinf(vector.values).any()
    for feature, value in zip(vector.layout.ids, vector.values, strict=True):
        entry = FEATURES[feature.name]
        assert math.isnan(value) or entry.low <= value <= entry.high
        if rows == 1 and feature.name.endswith((".rate", ".std", ".slope")):
            assert math.isnan(value), "one sample does not move"


def test_three_thousand_channels_are_no_trouble() -> None:
    window = wild_window(1, 3000, 31, "huge")
    vector = Extractor(FEATURES).extract(window, FactTable())
    assert not np.isinf(vector.values).any()
    assert (~np.isnan(vector.values)).sum() > 200


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), shift_s=st.integers(0, 10**8), kind=st.sampled_from(["huge", "resets", "absent"]))
def test_when_it_happens_does_not_matter(seed: int, shift_s: int, kind: str) -> None:
    window = wild_window(seed, 60, 8, kind)
    shift = shift_s * 1_000_000_000
    later = replace(window, blocks=tuple(replace(block, times_ns=block.times_ns + shift) for block in window.blocks))
    extractor = Extractor(FEATURES)
    first, second = (extractor.extract(each, FactTable()).values for each in (window, later))
    assert first.tobytes() == second.tobytes()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_columns_that_are_there_twice_and_columns_in_another_order_change_nothing(seed: int) -> None:
    window = wild_window(seed, 60, 8, "absent")
    order = np.random.default_rng(seed).permutation(60)
    shuffled = []
    for block in window.blocks:
        first = {channel: column for column, channel in reversed(list(enumerate(block.layout.channels)))}
        columns = [first[block.layout.channels[index]] for index in order] * 2  # all twice
        layout = Layout(tuple(block.layout.channels[column] for column in columns))
        shuffled.append(replace(block, layout=layout, values=block.values[:, columns]))
    plain = Extractor(FEATURES).extract(window, FactTable())
    other = Extractor(FEATURES).extract(replace(window, blocks=tuple(shuffled)), FactTable())
    assert plain.layout.ids == other.layout.ids
    np.testing.assert_allclose(plain.values, other.values, rtol=1e-12)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(factor=st.sampled_from([0.5, 2.0, 8.0]), seed=st.integers(0, 2**32))
def test_shares_do_not_depend_on_the_unit_and_rates_do(extract: Extract, factor: float, seed: int) -> None:
    noise = np.random.default_rng(seed)
    samples = {name: np.cumsum(noise.uniform(0.1, 1, 4)) for name in cpu(3)}
    plain, scaled = extract(samples), extract({name: factor * column for name, column in samples.items()})
    for name in ("cpu.busy.rate", "cpu.idle.rate", "cpu.kernel_share.rate"):
        assert plain.get(name) == pytest.approx(scaled.get(name))
    assert scaled.get("cpu.user.std") == pytest.approx(factor * (plain.get("cpu.user.std") or 0.0))
