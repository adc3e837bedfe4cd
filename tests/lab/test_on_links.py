"""Which interrupts may be moved; tests/lab/test_lab.py lays the faults of links on real ones."""

from __future__ import annotations

from pathlib import Path

from unveil.lab.on_links import movable_interrupts


def test_interrupts_of_devices_are_moved_and_those_of_consoles_are_not() -> None:
    text = "      CPU0  CPU1\n 26: 0 14 IO-APIC 4-edge ttyS0\n 36: 1 2 PCI-MSIX virtio1-req.0\nLOC: 5 5 Local timer\n"
    assert movable_interrupts(text) == [Path("/proc/irq/36/smp_affinity")]
