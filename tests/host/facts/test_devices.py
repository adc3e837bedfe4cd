from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.facts.devices import UNKNOWN_NODE, device_irqs, driver_of, find_device, pci_address

if TYPE_CHECKING:
    from conftest import Tree


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0000:19:00.0", "0000:19:00.0"),
        ("00000000:19:00.0", "0000:19:00.0"),  # NVML writes eight digits
        ("00010000:04:1F.7\n", "10000:04:1f.7"),  # a domain behind VMD
        ("virtio2", None),
        ("0000:19:00.8", None),
        ("", None),
    ],
)
def test_one_address_has_one_text(text: str, address: str | None) -> None:
    assert pci_address(text) == address


@given(st.text(max_size=20))
def test_any_text_is_an_address_or_none(text: str) -> None:
    address = pci_address(text)
    assert address is None or pci_address(address) == address


def test_node_and_function_are_found_above_the_device(tree: Tree) -> None:
    folder = tree.pci("pci0000:00/0000:00:01.0/0000:02:00.0", node=3, local="8-9,11")
    device = find_device(tree.sheet(), f"{folder}/virtio0/more")
    assert (device.node, device.reason, device.pci) == (3, "", "0000:02:00.0")
    assert device.local_cpus == {8, 9, 11}
    assert device.pci_path == folder


@pytest.mark.parametrize(("content", "reason"), [("-1\n", UNKNOWN_NODE), ("near\n", "reads 'near'")])
def test_a_node_that_is_not_told_has_a_reason(tree: Tree, content: str, reason: str) -> None:
    folder = tree.pci("pci0000:00/0000:00:01.0", node=0, local="0")
    tree.write(f"{folder}/numa_node", content)
    device = find_device(tree.sheet(), folder)
    assert device.node is None
    assert reason in device.reason


def test_a_device_on_another_bus_has_no_function(tree: Tree) -> None:
    tree.write("sys/devices/platform/soc/eth/uevent")
    device = find_device(tree.sheet(), "sys/devices/platform/soc/eth")
    assert (device.pci, device.node, device.reason) == (None, None, "no device above it tells a node")
    assert device_irqs(tree.sheet(), device.pci_path) == ((), "there is no PCI function behind it")


def test_vectors_come_before_the_line(tree: Tree) -> None:
    folder = tree.pci("pci0000:00/0000:00:01.0", node=0, local="0", irqs=(101, 20))
    tree.write(f"{folder}/irq", "16\n")
    assert device_irqs(tree.sheet(), folder) == ((20, 101), "")
    plain = tree.pci("pci0000:00/0000:00:02.0", node=0, local="0")
    assert device_irqs(tree.sheet(), plain) == ((), "the PCI function has no interrupt")


def test_the_driver_nearest_to_the_device_counts(tree: Tree) -> None:
    folder = tree.pci("pci0000:00/0000:00:01.0", node=0, local="0", driver="virtio-pci")
    assert driver_of(tree.sheet(), f"{folder}/virtio0", folder) == "virtio-pci"
    assert driver_of(tree.sheet(), f"{folder}/virtio0", None) is None
