from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.facts.steering import cpu_mask, mask_cpus, tell_steering
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree

ETH0 = Entity(EntityKind.NIC, "eth0")


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [
        ((), "0"),
        ((0,), "1"),
        ((0, 1, 2, 3), "f"),
        ((31,), "80000000"),
        ((32,), "1,00000000"),
        ((0, 64), "1,00000000,00000001"),
    ],
)
def test_a_mask_is_written_as_the_kernel_takes_it(cpus: tuple[int, ...], mask: str) -> None:
    assert cpu_mask(cpus) == mask


@given(st.frozensets(st.integers(0, 1023)))
def test_a_mask_names_as_many_cpus_as_went_in(cpus: frozenset[int]) -> None:
    assert mask_cpus(cpu_mask(cpus)) == len(cpus)


def test_the_queue_that_is_spread_least_counts(tree: Tree) -> None:
    tree.write("sys/class/net/eth0/queues/rx-0/rps_cpus", "f\n")
    tree.write("sys/class/net/eth0/queues/rx-1/rps_cpus", "00000000,00000000\n")
    tree.write("sys/class/net/eth0/queues/tx-0/xps_cpus", "3\n")
    sheet = tree.sheet()
    tell_steering(sheet, "eth0", frozenset({0, 1}))
    assert sheet.value("network.nic_rps_cpus", ETH0) == 0
    assert sheet.value("network.nic_rx_queue_names", ETH0) == ("rx-0", "rx-1")
    assert sheet.value("network.nic_local_mask", ETH0) == "3"
    tree.write("sys/class/net/eth0/queues/rx-1/rps_cpus", "3\n")
    tell_steering(sheet, "eth0", frozenset())
    assert sheet.value("network.nic_rps_cpus", ETH0) == 2
    assert sheet.value("network.nic_local_mask", ETH0) is None


def test_a_kernel_that_does_not_steer_is_no_kernel_with_steering_off(tree: Tree) -> None:
    tree.write("sys/class/net/eth0/queues/rx-0/gro", "x\n")
    sheet = tree.sheet()
    tell_steering(sheet, "eth0", frozenset({0}))
    assert sheet.value("network.nic_rps_cpus", ETH0) is None
    tell_steering(sheet, "eth9", frozenset({0}))
    assert sheet.value("network.nic_rx_queue_names", Entity(EntityKind.NIC, "eth9")) is None
