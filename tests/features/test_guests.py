"""What the host sees of its guests, as features."""

from __future__ import annotations

import pytest

from unveil.features.catalogue import FEATURES
from unveil.features.guests import EACH_GUEST, GUESTS_TOGETHER
from unveil.features.load import is_load
from unveil.features.ratios import STATES
from unveil.records.entity import HOST, Entity, EntityKind

CHANNELS = {
    "cpu.vcpu_run{cgroup=/vm,vcpu=0}": [0.0, 1.0, 2.0],
    "cpu.vcpu_run{cgroup=/vm,vcpu=1}": [5.0, 5.5, 6.0],
    "cpu.vcpu_wait{cgroup=/vm,vcpu=0}": [0.0, 0.5, 1.0],
    "cpu.vcpu_wait{cgroup=/vm,vcpu=1}": [7.0, 7.0, 7.0],
    "cpu.vcpu_slices{cgroup=/vm,vcpu=0}": [0.0, 100.0, 200.0],
    "cpu.vcpu_slices{cgroup=/vm,vcpu=1}": [0.0, 0.0, 0.0],
    "cpu.vhost_run{cgroup=/vm,vhost=0}": [0.0, 0.25, 0.5],
    "cpu.vhost_wait{cgroup=/vm,vhost=0}": [0.0, 0.75, 1.5],
    "cpu.vhost_slices{cgroup=/vm,vhost=0}": [0.0, 75.0, 150.0],
    "cpu.vcpu_run{cgroup=/calm,vcpu=0}": [0.0, 1.0, 2.0],
    "cpu.vcpu_wait{cgroup=/calm,vcpu=0}": [0.0, 0.0, 0.0],
    "cpu.guest": [0.0, 1.25, 2.5],
    **{f"cpu.{state}": [0.0, 1.25, 2.5] for state in STATES.split()},
    "cpu.cgroup_usage{cgroup=/vm}": [0.0, 2.0, 4.0],
    "network.rx_bytes{nic=vnet0}": [0.0, 3e8, 6e8],
    "network.tx_bytes{nic=vnet0}": [0.0, 2e8, 4e8],
    "network.tx_dropped{nic=vnet0}": [0.0, 5.0, 10.0],
    "network.rx_bytes{nic=vnet1}": [0.0, 9e9, 9e9],
}


VM = Entity(EntityKind.CGROUP, "/vm")


def test_a_guest_is_the_sum_of_its_virtual_cpus_and_its_taps_are_its_own(extract) -> None:
    seen = extract(CHANNELS, {"network.cgroup_taps[cgroup:/vm]": ("vnet0", "gone")})
    own = {each.name: value for each in EACH_GUEST if (value := seen.get(each.name, VM)) is not None}
    assert own == pytest.approx(
        {
            "cpu.vcpu_wait_share.rate": 0.25,
            "cpu.vcpu_run.rate": 1.5,
            "cpu.vhost_run.rate": 0.25,
            "cpu.vcpu_delay_per_slice.rate": 5.0,
            "cpu.vhost_delay_per_slice.rate": 10.0,
            "cpu.vcpu_part.rate": 0.75,
            "cpu.vhost_wait_share.rate": 0.75,
            "cpu.vhost_per_gigabyte.rate": 0.5,
            "network.cgroup_tap_sent_bytes.rate": 3e8,
            "network.cgroup_tap_received_bytes.rate": 2e8,
            "network.cgroup_tap_dropped.rate": 5.0,
        }
    )
    assert seen.get("cpu.vcpu_wait_share_highest.rate", HOST) == pytest.approx(0.25), "the other guest never waits"
    assert seen.get("cpu.guest.rate", HOST) == pytest.approx(1 / 8)
    assert seen.get("cpu.guest_part.rate", HOST) == pytest.approx(0.5)


def test_traffic_is_absent_where_nobody_knows_the_taps(extract) -> None:
    seen = extract(CHANNELS)
    assert seen.get("network.cgroup_tap_sent_bytes.rate", VM) is None
    assert seen.get("cpu.vhost_per_gigabyte.rate", VM) is None
    assert seen.get("cpu.vcpu_wait_share.rate", VM) == pytest.approx(0.25)


def test_the_detectors_see_the_guest_that_waits_most_and_do_not_take_that_for_load() -> None:
    assert {each.name for each in (*EACH_GUEST, *GUESTS_TOGETHER)} <= set(FEATURES)
    assert [each.name for each in GUESTS_TOGETHER if each.detect] == ["cpu.vcpu_wait_share_highest.rate"]
    assert not any(each.detect for each in EACH_GUEST)
    assert not is_load(GUESTS_TOGETHER[0].name)
