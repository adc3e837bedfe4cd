"""Which interrupts may be moved; tests/lab/test_lab.py lays the faults of links on real ones."""

from __future__ import annotations

from pathlib import Path

from unveil.lab.on_links import movable_interrupts


def test_interrupts_of_devices_are_moved_and_those_of_consoles_are_not(tmp_path: Path) -> None:
    for driver, device in (("virtio_net", "virtio30"), ("vmw_vsock_virtio_transport", "virtio3"), ("virtio_blk", "x")):
        (tmp_path / driver / device).mkdir(parents=True)
    text = (
        "      CPU0  CPU1\n 26: 0 14 IO-APIC 4-edge ttyS0\n 36: 1 2 PCI-MSIX virtio1-req.0\nLOC: 5 5 Local timer\n"
        " 40: 1 2 PCI-MSIX virtio3-rx\n 41: 1 2 PCI-MSIX virtio30-input.0\n"
    )
    assert movable_interrupts(text, tmp_path) == [Path(f"/proc/irq/{number}/smp_affinity") for number in (36, 41)]
