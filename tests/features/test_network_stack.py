"""RDMA ports with and without an interface, and cgroups that wait."""

from __future__ import annotations

from collections.abc import Callable

from unveil.records.entity import Entity, EntityKind
from unveil.records.feature import FeatureVector

Extract = Callable[..., FeatureVector]


def test_rdma_counts_over_all_ports_and_for_the_nic_of_a_port(extract: Extract) -> None:
    vector = extract(
        {
            "network.rdma_rx_bytes{port=mlx5_0/1,nic=ib0}": [0, 1000],
            "network.rdma_rx_bytes{port=mlx5_1/1}": [0, 500],
        }
    )
    assert vector.get("network.rdma_rx_bytes_total.rate") == 1500
    assert vector.get("network.rdma_rx_bytes.rate", Entity(EntityKind.NIC, "ib0")) == 1000


def test_the_cgroup_that_waits_most_stands_for_the_host(extract: Extract) -> None:
    vector = extract(
        {
            "cpu.cgroup_psi_some{cgroup=/a}": [0, 0.25],
            "cpu.cgroup_psi_some{cgroup=/b}": [0, 0.5],
            "memory.cgroup_at_limit{cgroup=/b}": [3, 5],
        }
    )
    assert vector.get("cpu.cgroup_psi_some.rate", Entity(EntityKind.CGROUP, "/a")) == 0.25
    assert vector.get("cpu.cgroup_psi_some_highest.rate") == 0.5
    assert vector.get("memory.cgroup_at_limit_highest.rate") == 2
