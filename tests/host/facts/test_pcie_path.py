from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from unveil.host.facts.pcie_path import acs_control, redirecting_ports, translation

if TYPE_CHECKING:
    from conftest import Tree

ROOT_PORT = "sys/devices/pci0000:40/0000:40:01.0"
UPSTREAM = f"{ROOT_PORT}/0000:41:00.0"
DOWNSTREAM = f"{UPSTREAM}/0000:42:04.0"
GPU = f"{DOWNSTREAM}/0000:45:00.0"


def config(*capabilities: tuple[int, int]) -> bytes:
    """Return a configuration space with extended capabilities of (id, word at offset 6)."""
    space, at = bytearray(0x400), 0x100
    for index, (name, word) in enumerate(capabilities):
        following = at + 0x20 if index + 1 < len(capabilities) else 0
        struct.pack_into("<IHH", space, at, name | 1 << 16 | following << 20, 0, word)
        at += 0x20
    return bytes(space)


def test_a_port_that_redirects_is_counted_and_the_root_port_is_not(tree: Tree) -> None:
    tree.write(f"{ROOT_PORT}/config", config((0x000D, 0x1D)))
    tree.write(f"{UPSTREAM}/config", config((0x0001, 0xFFFF)))
    tree.write(f"{DOWNSTREAM}/config", config((0x0001, 0), (0x000D, 0x1D)))
    sheet = tree.sheet()
    assert redirecting_ports(sheet, GPU) == 1
    tree.write(f"{DOWNSTREAM}/config", config((0x0001, 0), (0x000D, 0x11)))  # validation and forwarding alone are fine
    assert redirecting_ports(sheet, GPU) == 0


def test_without_rights_or_without_a_file_there_is_no_answer(tree: Tree) -> None:
    sheet = tree.sheet()
    assert redirecting_ports(sheet, GPU) is None
    for port in (ROOT_PORT, UPSTREAM, DOWNSTREAM):
        tree.write(f"{port}/config", bytes(64))
    assert redirecting_ports(sheet, GPU) is None
    assert redirecting_ports(sheet, f"{ROOT_PORT}/0000:41:00.0") == 0, "right below the root nothing is in between"


def test_a_damaged_list_of_capabilities_ends() -> None:
    ring = bytearray(config((0x0001, 0)))
    struct.pack_into("<I", ring, 0x100, 0x0001 | 1 << 16 | 0x100 << 20)
    assert acs_control(bytes(ring)) == 0
    assert acs_control(b"") == 0
    assert acs_control(b"\xff" * 4096) == 0


def test_the_type_of_the_iommu_group_tells_the_translation(tree: Tree) -> None:
    sheet = tree.sheet()
    tree.write(f"{GPU}/vendor", "0x10de\n")
    assert translation(sheet, GPU) == "none"
    tree.write("sys/kernel/iommu_groups/7/type", "DMA-FQ\n")
    tree.link(f"{GPU}/iommu_group", "sys/kernel/iommu_groups/7")
    assert translation(sheet, GPU) == "DMA-FQ"
    tree.write("sys/kernel/iommu_groups/7/type", "\x1b[2J\n")
    assert translation(sheet, GPU) is None
