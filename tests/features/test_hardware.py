"""Links and errors of hardware, by the device that hangs on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unveil.records.entity import Entity, EntityKind
from unveil.records.feature import FeatureVector

Extract = Callable[..., FeatureVector]
NIC = Entity(EntityKind.NIC, "eth0")
LINK = {
    "network.rx_bytes{nic=eth0}": [0, 1000],
    "interconnect.pcie_width{pci=0000:01:00.0}": [8, 8],
    "interconnect.pcie_width_share{pci=0000:01:00.0}": [0.5, 0.5],
    "interconnect.pcie_width_share{pci=0000:02:00.0}": [0.25, 0.25],
    "interconnect.aer_corrected{pci=0000:01:00.0}": [100, 130],
    "interconnect.aer_corrected{pci=0000:02:00.0}": [0, 3],
}
KNOWN = {"network.nic_pci[nic:eth0]": "0000:01:00.0"}


def test_a_nic_is_judged_by_its_own_link(extract: Extract) -> None:
    vector = extract(LINK, KNOWN)
    assert vector.get("network.link_width.last", NIC) == 8
    assert vector.get("network.link_width_share.last", NIC) == 0.5
    assert vector.get("network.link_corrected.rate", NIC) == 30
    assert vector.get("network.link_width_share_lowest.last") == 0.5
    assert vector.get("interconnect.aer_corrected.rate") == 33, "the host's are those of every port"


def test_a_nic_whose_function_is_not_known_has_no_link(extract: Extract) -> None:
    vector = extract(LINK, {})
    assert vector.get("network.link_width_share.last", NIC) is None
    assert vector.get("network.link_width_share_lowest.last") is None


def test_power_is_that_of_packages_and_their_parts_are_not_added(extract: Extract) -> None:
    vector = extract(
        {
            "cpu.energy{package=0,domain=package}": [0, 200],
            "cpu.energy{package=1,domain=package}": [0, 100],
            "cpu.energy{package=0,domain=dram}": [0, 20],
        }
    )
    assert vector.get("cpu.package_power.rate") == 300
    assert vector.get("cpu.memory_power.rate") == 20
    assert vector.get("cpu.core_power.rate") is None


def test_deep_rest_is_a_share_of_all_rest(extract: Extract) -> None:
    vector = extract(
        {
            "cpu.idle_state_time{cpu=0,state=1,depth=shallow}": [0, 0.6],
            "cpu.idle_state_time{cpu=0,state=2,depth=deep}": [0, 0.2],
            "cpu.idle_state_entries{cpu=0,state=2,depth=deep}": [0, 50],
            "cpu.idle_state_too_deep{cpu=0,state=2,depth=deep}": [0, 10],
        }
    )
    assert vector.get("cpu.idle_deep_share.rate") == pytest.approx(0.25)
    assert vector.get("cpu.idle_too_deep_share.rate") == pytest.approx(0.2)
    assert vector.get("cpu.idle_poll_share.rate") is None
