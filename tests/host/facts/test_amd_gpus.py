from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.amd_gpus import amd_gpu_facts
from unveil.host.facts.reader import read_facts
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree

GPU = Entity(EntityKind.GPU, "0000:43:00.0")


def test_an_amd_gpu_is_placed_by_its_pci_function(tree: Tree) -> None:
    device = tree.pci("pci0000:40/0000:43:00.0", node=1, local="4-7", driver="amdgpu")
    tree.write(f"{device}/vendor", "0x1002\n")
    tree.write(f"{device}/product_name", "\n")
    tree.link("sys/class/drm/card0/device", device)
    facts = {fact.name: fact for fact in amd_gpu_facts(tree.sheet().root)}
    assert facts["gpu.pci"].value == "0000:43:00.0"
    assert facts["gpu.node"].value == 1.0
    assert facts["gpu.name"].value is None
    assert facts["gpu.name"].reason
    assert read_facts(tree.sheet().root).value("gpu.node", GPU) == 1.0


def test_a_host_without_any_has_no_such_facts(tree: Tree) -> None:
    assert amd_gpu_facts(tree.sheet().root) == ()
