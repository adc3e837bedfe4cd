from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from unveil.host.facts import ethtool
from unveil.host.facts.ethtool import fastest_mbit, tell_driver, tell_moderation, tell_offloads
from unveil.host.facts.nics import tell_virtual
from unveil.host.facts.part import Part
from unveil.host.facts.sheet import FactSheet
from unveil.host.root import HostRoot
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact_catalogue import FACTS

if TYPE_CHECKING:
    from conftest import Tree

ASKED = (
    "network.nic_gro",
    "network.nic_tso",
    "network.nic_rx_ring",
    "network.nic_rx_ring_max",
    "network.nic_tx_ring",
    "network.nic_tx_ring_max",
    "network.nic_rx_usecs",
    "network.nic_adaptive_rx",
    "network.nic_pause_rx",
    "network.nic_pause_tx",
    "network.nic_speed_max",
)
LO = Entity(EntityKind.NIC, "lo")


def tell_all(sheet: FactSheet, name: str) -> None:
    """Ask a driver whatever it is ever asked."""
    for tell in (tell_driver, tell_offloads, tell_moderation):
        tell(sheet, name)


def test_the_loopback_of_this_kernel_answers_what_it_has(live: FactSheet) -> None:
    tell_all(live, "lo")
    told = {fact.name: fact for fact in live.facts()}
    assert set(told) == set(ASKED) <= set(FACTS)
    assert told["network.nic_gro"].value is True
    assert told["network.nic_gro"].setting == "ethtool:lo/feature/rx-gro"
    assert live.settings["ethtool:lo/feature/rx-gro"] == "on\n"
    assert told["network.nic_rx_ring"].value is None
    assert "does not support" in (told["network.nic_rx_ring"].reason or "")


def test_an_interface_that_is_gone_or_hostile_is_absent_with_a_reason(live: FactSheet) -> None:
    for name in ("gone0", "x" * 400, "a\nb", "\udcff"):
        tell_all(live, name)
    assert all(fact.value is None and fact.reason for fact in live.facts())


def test_both_rings_are_told_with_what_they_could_be(live: FactSheet, monkeypatch: pytest.MonkeyPatch) -> None:
    def driver(_sheet: FactSheet, _name: str, request: bytes, _facts: tuple[str, ...]) -> bytes | None:
        command = struct.unpack_from("I", request)[0]
        return struct.pack("9I", command, 4096, 0, 0, 2048, 512, 0, 0, 256) if command == 0x10 else None

    monkeypatch.setattr(ethtool, "_ask", driver)
    tell_driver(live, "eth0")
    told = {fact.name.removeprefix("network.nic_"): (fact.value, fact.setting) for fact in live.facts()}
    assert told == {
        "rx_ring": (512, "ethtool:eth0/ring/rx"), "rx_ring_max": (4096, None),
        "tx_ring": (256, "ethtool:eth0/ring/tx"), "tx_ring_max": (2048, None),
    }  # fmt: skip
    assert live.settings == {"ethtool:eth0/ring/rx": "512\n", "ethtool:eth0/ring/tx": "256\n"}


def test_a_tree_of_another_host_is_not_asked(tree: Tree) -> None:
    sheet = tree.sheet()
    tell_all(sheet, "lo")
    assert {fact.reason for fact in sheet.facts()} == {"only the host itself can ask its drivers"}
    assert sheet.value("network.nic_gro", LO) is None


@pytest.mark.parametrize(
    ("modes", "speed"),
    [(0, None), (1 << 6, None), (1 << 5 | 1 << 3, 1000), (1 << 12 | 1 << 49, 10_000), (1 << 87, 400_000)],
)
def test_the_fastest_link_mode_counts_and_what_is_no_speed_does_not(modes: int, speed: int | None) -> None:
    assert fastest_mbit(modes) == speed


def test_offloads_that_are_off_are_asked_again_until_they_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    on, asked = {0x2B: False, 0x1E: True}, []  # generic receive offload, and TCP segmentation

    def answer(_root: HostRoot, question: tuple[str, bytes]) -> bytes:
        command = struct.unpack_from("I", question[1])[0]
        asked.append(command)
        return struct.pack("II", command, on[command])

    monkeypatch.setattr(ethtool, "_answer", answer)
    part = Part(HostRoot("/"), lambda sheet: tell_virtual(sheet, ("uvgone0",)))
    entity = Entity(EntityKind.NIC, "uvgone0")
    assert part.sheet.value("network.nic_gro", entity) is False
    asked.clear()
    assert not part.refresh()
    assert asked == [0x2B, 0x1E]
    on[0x2B] = True
    assert part.refresh()
    assert part.sheet.value("network.nic_gro", entity) is True
    assert part.sheet.settings["ethtool:uvgone0/feature/rx-gro"] == "on\n"
    asked.clear()
    assert not part.refresh()
    assert not asked, "on: the network's lock is left alone"


@pytest.fixture
def live() -> FactSheet:
    return FactSheet(HostRoot("/"))
