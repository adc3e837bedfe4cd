"""What lies between a device and memory: whether the IOMMU translates, whether ports above it turn peers away.

Two devices below one switch reach each other through it, unless Access Control Services of its ports send their
requests up to the root complex, which costs most of the bandwidth of peer-to-peer traffic. Whether they do is in a
part of the configuration space that only root may read.

Source: Documentation/ABI/testing/sysfs-kernel-iommu_groups; PCI Express Base Specification, 7.7.11 (ACS).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.host.facts.devices import pci_address

if TYPE_CHECKING:
    from unveil.host.facts.sheet import FactSheet

_CONFIG = 4096  # bytes of a function's configuration space; without rights the kernel shows 64
_FIRST_CAPABILITY = 0x100
_ACS, _ACS_CONTROL = 0x000D, 6
_REDIRECTS = 0x4  # P2P Request Redirect
_TYPE = re.compile(r"identity|DMA|DMA-FQ|blocked|unmanaged")


def translation(sheet: FactSheet, pci_path: str) -> str | None:
    """Return the type of a function's IOMMU group, ``none`` where no IOMMU is in between, None where it is not told."""
    if not sheet.root.exists(f"{pci_path}/iommu_group"):
        return "none"
    text = sheet.text(f"{pci_path}/iommu_group/type")
    return text if text is not None and _TYPE.fullmatch(text) else None


def redirecting_ports(sheet: FactSheet, pci_path: str) -> int | None:
    """Return how many ports of switches above a function redirect requests between peers.

    None where one of them does not show its configuration. The port of the root complex does not count: what passes it
    is at the root already.
    """
    above = [folder for folder in _above(pci_path) if pci_address(folder.rpartition("/")[2])]
    redirecting = 0
    for port in above[:-1]:
        try:
            config = sheet.root.head(f"{port}/config", _CONFIG)
        except OSError:
            return None
        if len(config) <= _FIRST_CAPABILITY:
            return None
        redirecting += bool(acs_control(config) & _REDIRECTS)
    return redirecting


def acs_control(config: bytes) -> int:
    """Return the ACS control register in a function's configuration space, 0 for a function without it."""
    at = _FIRST_CAPABILITY
    for _ in range(_CONFIG // 4):  # a damaged list may be a ring
        if not _FIRST_CAPABILITY <= at <= len(config) - 8:
            break
        head = int.from_bytes(config[at : at + 4], "little")
        if head & 0xFFFF == _ACS:
            return int.from_bytes(config[at + _ACS_CONTROL : at + _ACS_CONTROL + 2], "little")
        at = head >> 20
    return 0


def _above(path: str) -> tuple[str, ...]:
    """Return the folders above one, nearest first."""
    parts = path.split("/")
    return tuple("/".join(parts[:length]) for length in range(len(parts) - 1, 2, -1))
