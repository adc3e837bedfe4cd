from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.facts.steering import cpu_mask, dealt, mask_cpus, tell_steering, tell_transmission
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


@given(st.frozensets(st.integers(0, 300), min_size=1), st.integers(1, 64))
def test_cpus_are_dealt_out_so_that_each_has_a_queue_and_each_queue_a_cpu(cpus: frozenset[int], queues: int) -> None:
    masks = [int(mask.replace(",", ""), 16) for mask in dealt(cpus, queues)]
    assert len(masks) == queues
    assert all(masks)
    if len(cpus) >= queues:
        assert sum(mask.bit_count() for mask in masks) == len(cpus), "no CPU has two"
        assert max(masks, key=int.bit_count).bit_count() - min(masks, key=int.bit_count).bit_count() <= 1


def test_cpus_that_are_told_a_transmit_queue_are_counted_over_all_queues(tree: Tree) -> None:
    for queue in range(11):
        tree.write(f"sys/class/net/eth0/queues/tx-{queue}/xps_cpus", "0\n")
    sheet = tree.sheet()
    tell_transmission(sheet, "eth0", frozenset(range(22)))
    assert sheet.value("network.nic_tx_queues", ETH0) == 11
    names = sheet.value("network.nic_tx_queue_names", ETH0)
    assert names == tuple(f"tx-{queue}" for queue in range(11)), "in the order of their masks"
    masks = sheet.value("network.nic_xps_masks", ETH0)
    assert isinstance(masks, tuple)
    assert masks[:2] == ("801", "1002")
    assert sheet.value("network.nic_xps_cpus", ETH0) == 0
    tree.write("sys/class/net/eth0/queues/tx-1/xps_cpus", "00000001,00000003\n")
    tree.write("sys/class/net/eth0/queues/tx-2/xps_cpus", "00000000,00000001\n")
    tell_transmission(sheet, "eth0", frozenset())
    assert sheet.value("network.nic_xps_cpus", ETH0) == 3
    assert sheet.value("network.nic_xps_masks", ETH0) is None


def test_a_nic_with_one_queue_has_no_map_of_cpus_to_queues(tree: Tree) -> None:
    tree.write("sys/class/net/eth0/queues/tx-0/tx_timeout", "0\n")
    sheet = tree.sheet()
    tell_transmission(sheet, "eth0", frozenset({0}))
    assert sheet.value("network.nic_tx_queues", ETH0) == 1
    assert sheet.value("network.nic_xps_cpus", ETH0) is None
    tell_transmission(sheet, "eth9", frozenset({0}))
    assert sheet.value("network.nic_tx_queues", Entity(EntityKind.NIC, "eth9")) is None
