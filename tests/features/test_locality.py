"""Interrupts and memory in the wrong place, and not knowing which place is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unveil.records.entity import Entity, EntityKind
from unveil.records.feature import FeatureVector

Extract = Callable[..., FeatureVector]
NIC = Entity(EntityKind.NIC, "eth0")
POD = Entity(EntityKind.CGROUP, "/pod")
TRAFFIC = {"network.rx_bytes{nic=eth0}": [0, 1000]}
TWO_NODES = {"interconnect.node_cpus[node:0]": "0-3", "interconnect.node_cpus[node:1]": "4-7"}
KNOWN = {
    **TWO_NODES,
    "network.nic_irqs[nic:eth0]": ("24", "25"),
    "network.nic_node[nic:eth0]": 1.0,
    "network.nic_local_cpus[nic:eth0]": "4-7",
}
BY_CPU = TRAFFIC | {
    "cpu.irq{irq=24,cpu=0}": [100, 160],
    "cpu.irq{irq=24,cpu=5}": [500, 520],
    "cpu.irq{irq=25,cpu=7}": [0, 20],
    "cpu.irq{irq=99,cpu=0}": [0, 7777],  # another device's
}


def test_interrupts_that_far_cpus_handle(extract: Extract) -> None:
    vector = extract(BY_CPU, KNOWN)
    assert vector.get("network.irq.rate", NIC) == 100.0
    assert vector.get("network.irq_remote_share.rate", NIC) == pytest.approx(0.6)
    assert vector.get("network.irq_remote_share_highest.rate") == pytest.approx(0.6)


def test_on_big_hosts_nodes_stand_for_cpus(extract: Extract) -> None:
    by_node = TRAFFIC | {"cpu.irq{irq=24,node=0}": [0, 30], "cpu.irq{irq=25,node=1}": [0, 90]}
    assert extract(by_node, KNOWN).get("network.irq_remote_share.rate", NIC) == pytest.approx(0.25)
    unsaid = {name: value for name, value in KNOWN.items() if "local_cpus" not in name}
    assert extract(by_node, unsaid).get("network.irq_remote_share.rate", NIC) == pytest.approx(0.25)


def test_the_node_alone_tells_the_local_cpus(extract: Extract) -> None:
    unsaid = {name: value for name, value in KNOWN.items() if "local_cpus" not in name}
    assert extract(BY_CPU, unsaid).get("network.irq_remote_share.rate", NIC) == pytest.approx(0.6)


@pytest.mark.parametrize("missing", ["nic_irqs", "nic_node"])
def test_a_place_that_is_not_known_is_not_near(extract: Extract, missing: str) -> None:
    facts = {name: value for name, value in KNOWN.items() if missing not in name}
    facts["network.nic_local_cpus[nic:eth0]"] = "0-7"  # what a platform says that does not know
    assert extract(BY_CPU, facts).get("network.irq_remote_share.rate", NIC) is None


def test_on_a_host_of_one_node_nothing_is_far(extract: Extract) -> None:
    facts = {"network.nic_irqs[nic:eth0]": ("24", "25"), "network.nic_local_cpus[nic:eth0]": "0-7"}
    assert extract(BY_CPU, facts).get("network.irq_remote_share.rate", NIC) == 0.0


def test_a_nic_without_interrupts_has_no_share_of_them(extract: Extract) -> None:
    still = {name: [5, 5] for name in BY_CPU}
    vector = extract(still, KNOWN)
    assert vector.get("network.irq.rate", NIC) == 0.0
    assert vector.get("network.irq_remote_share.rate", NIC) is None


POD_WORKS = {"cpu.cgroup_usage{cgroup=/pod}": [0, 1]}
OWN = KNOWN | {"cpu.cgroup_own_cpus[cgroup:/pod]": "5-6", "network.cgroup_irqs[cgroup:/pod]": ("24",)}


def test_interrupts_on_the_cpus_that_a_workload_has_to_itself(extract: Extract) -> None:
    assert extract(BY_CPU | POD_WORKS, OWN).get("network.cgroup_irq.rate", POD) == 20.0
    assert extract(BY_CPU | POD_WORKS, KNOWN).get("network.cgroup_irq.rate", POD) is None, (
        "which CPUs are its own is not known"
    )
    none = OWN | {"cpu.cgroup_own_cpus[cgroup:/pod]": "6"}
    assert extract(BY_CPU | POD_WORKS, none).get("network.cgroup_irq.rate", POD) == 0.0, "moved away, there are none"


def test_counted_by_node_those_set_on_its_cpus_stand_for_those_handled_there(extract: Extract) -> None:
    by_node = TRAFFIC | {"cpu.irq{irq=24,node=1}": [0, 30], "cpu.irq{irq=25,node=1}": [0, 90]}
    assert extract(by_node | POD_WORKS, OWN).get("network.cgroup_irq.rate", POD) == 30.0


@pytest.mark.parametrize("list_", ["", "x", "0-", "-3", "3;4", "0-999999999", "٣"])
def test_lists_that_are_none_tell_nothing(extract: Extract, list_: str) -> None:
    facts = {"network.nic_irqs[nic:eth0]": ("24",), "network.nic_local_cpus[nic:eth0]": list_}
    vector = extract(BY_CPU, facts)
    assert vector.get("network.irq_remote_share.rate", NIC) is None


def test_memory_away_from_home(extract: Extract) -> None:
    samples = {
        "interconnect.cgroup_node_anon{cgroup=/pod,node=0}": [0, 300],
        "interconnect.cgroup_node_anon{cgroup=/pod,node=1}": [400, 100],
        "interconnect.cgroup_node_anon{cgroup=/other,node=0}": [9, 9],
    }
    vector = extract(samples, {"interconnect.cgroup_home_node[cgroup:/pod]": 1.0})
    assert vector.get("interconnect.cgroup_remote_share.last", POD) == pytest.approx(0.75)
    assert vector.get("interconnect.cgroup_remote_share.last", Entity(EntityKind.CGROUP, "/other")) is None
    assert vector.get("interconnect.cgroup_remote_share_highest.last") == pytest.approx(0.75)
    home = extract(samples, {"interconnect.cgroup_home_node[cgroup:/other]": 0.0})
    assert home.get("interconnect.cgroup_remote_share.last", Entity(EntityKind.CGROUP, "/other")) == 0.0
