"""AMD GPUs: what sysfs tells of them that does not change. NVIDIA's are told by the process that asks their driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.devices import find_device
from unveil.host.facts.sheet import FactSheet
from unveil.host.sources.amd_gpu import amd_gpus
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from unveil.host.root import HostRoot
    from unveil.records.fact import Fact


def amd_gpu_facts(root: HostRoot) -> tuple[Fact, ...]:
    """Return name, PCI address and node of each AMD GPU; nothing on a host without any."""
    sheet = FactSheet(root)
    for address, folder in amd_gpus(root).items():
        gpu = Entity(EntityKind.GPU, address)
        sheet.tell("gpu.pci", address, gpu)
        sheet.read("gpu.name", f"{folder}/product_name", _name, gpu)
        device = find_device(sheet, root.resolve(folder))
        if device.node is None:
            sheet.miss("gpu.node", device.reason, gpu)
        else:
            sheet.tell("gpu.node", float(device.node), gpu)
    return sheet.facts()


def _name(text: str) -> str:
    if not text:
        raise ValueError("empty")
    return text
