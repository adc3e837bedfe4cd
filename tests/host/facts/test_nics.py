from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.nics import MAX_NICS
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from conftest import Tree


def _nic(name: str) -> Entity:
    return Entity(EntityKind.NIC, name)


def test_a_nic_has_the_node_cpus_and_interrupts_of_its_pci_function(two_nodes: Tree) -> None:
    table = two_nodes.facts()
    eth1 = _nic("eth1")
    assert table.value("network.nic_node", eth1) == 1
    assert table.value("network.nic_local_cpus", eth1) == "4-6"  # 7 is offline
    assert table.value("network.nic_irqs", eth1) == ("50", "51", "52")
    assert table.value("network.nic_pci", eth1) == "0000:41:00.0"
    assert table.value("network.nic_driver", eth1) == "mlx5_core"
    assert table.value("network.nic_speed", eth1) == table.value("network.fastest_link") == 100_000
    assert table.value("network.nic_physical", eth1) is True
    assert table.value("network.nic_irq_remote_share", eth1) == 2 / 3
    assert table.value("cpu.irq_device", Entity(EntityKind.IRQ, "50")) == "nic:eth1"


def test_a_virtio_nic_is_looked_for_above_its_own_device(two_nodes: Tree) -> None:
    table = two_nodes.facts()
    eth0 = _nic("eth0")
    assert table.value("network.nic_node", eth0) == 0
    assert table.value("network.nic_pci", eth0) == "0000:00:03.0"
    assert table.value("network.nic_driver", eth0) == "virtio_net"
    assert table.value("network.nic_irqs", eth0) == ("60",)  # 61 has no handler
    assert table.value("network.nic_irq_remote_share", eth0) == 0


def test_a_virtual_interface_has_no_device_to_have_a_node(two_nodes: Tree) -> None:
    table = two_nodes.facts()
    assert table.value("network.nic_physical", _nic("lo")) is False
    fact = table.find("network.nic_node", _nic("lo"))
    assert fact is not None
    assert fact.reason == "a virtual interface has no device"


def test_an_unknown_node_is_unknown_and_not_node_zero(two_nodes: Tree) -> None:
    two_nodes.write("sys/devices/pci0000:40/0000:40:00.0/0000:41:00.0/numa_node", "-1\n")
    table = two_nodes.facts()
    for name in ("network.nic_node", "network.nic_local_cpus", "network.nic_irq_remote_share"):
        fact = table.find(name, _nic("eth1"))
        assert fact is not None
        assert fact.value is None
        assert fact.reason == "the platform does not say which node it is on (numa_node is -1)"
    assert table.value("network.nic_irqs", _nic("eth1")) == ("50", "51", "52")


def test_on_a_single_node_every_cpu_is_local_whatever_the_platform_says(tree: Tree) -> None:
    tree.cpus("0-3", "0-3")
    tree.nodes("0")
    tree.node(0, "0-3", "10")
    tree.nic("eth0", tree.pci("pci0000:00/0000:00:03.0", node=-1, local="0-3", irqs=(60,)))
    tree.irq(60, "0-3", "2")
    table = tree.facts()
    assert table.value("network.nic_node", _nic("eth0")) is None
    assert table.value("network.nic_local_cpus", _nic("eth0")) == "0-3"
    assert table.value("network.nic_irq_remote_share", _nic("eth0")) == 0


def test_a_nic_on_a_node_of_memory_is_next_to_the_nearest_cpus(tree: Tree) -> None:
    tree.cpus("0-3", "0-3")
    tree.nodes("0-2")
    tree.node(0, "0-1", "10 40 80")
    tree.node(1, "2-3", "40 10 20")
    tree.node(2, "", "80 20 10")
    tree.nic("eth0", tree.pci("pci0000:00/0000:00:03.0", node=2, local=""))
    assert tree.facts().value("network.nic_local_cpus", _nic("eth0")) == "2-3"


def test_interrupts_that_cannot_be_moved_are_told_by_the_mode_of_their_file(two_nodes: Tree) -> None:
    two_nodes.irq(52, "0-3", "2", managed=True)
    table = two_nodes.facts()
    assert table.value("network.nic_irq_managed", _nic("eth1")) == ("52",)
    assert table.value("network.nic_irqs_movable", _nic("eth1")) == ("50", "51")


def test_an_older_kernel_does_not_tell_which_interrupts_can_be_moved(two_nodes: Tree) -> None:
    two_nodes.write("proc/sys/kernel/osrelease", "5.15.0-91-generic\n")
    two_nodes.irq(61, "0-7", "4")
    (two_nodes.folder / "proc/irq/61/smp_affinity_list").chmod(0o644)
    table = two_nodes.facts()
    fact = table.find("network.nic_irq_managed", _nic("eth1"))
    assert fact is not None
    assert fact.value is None
    assert fact.reason == "a kernel before 6.12 tells it only in debugfs"
    for irq, flags in ((50, ""), (51, "IRQD_AFFINITY_MANAGED"), (52, ""), (60, ""), (61, "")):
        two_nodes.write(f"sys/kernel/debug/irq/irqs/{irq}", f"handler: x\ndstate: 0x1\n            {flags}\n")
    assert two_nodes.facts().value("network.nic_irq_managed", _nic("eth1")) == ("51",)


def test_a_stacked_interface_and_a_representor_are_not_physical(two_nodes: Tree) -> None:
    device = "sys/devices/pci0000:40/0000:40:00.0/0000:41:00.0"
    two_nodes.nic("eth1_0", device, phys_port_name="pf0vf0")
    two_nodes.nic("netvsc", "sys/devices/LNXSYSTM:00/vmbus", lower_eth1="")
    table = two_nodes.facts()
    assert table.value("network.nic_physical", _nic("eth1")) is True
    assert table.value("network.nic_physical", _nic("eth1_0")) is False
    assert table.value("network.nic_physical", _nic("netvsc")) is False


def test_a_link_that_is_down_or_silent_has_no_speed(two_nodes: Tree) -> None:
    device = "sys/devices/pci0000:40/0000:40:00.0/0000:41:00.0/net/eth1"
    two_nodes.write(f"{device}/operstate", "down\n")
    two_nodes.write("sys/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/speed", "4294967295\n")
    table = two_nodes.facts()
    assert table.find("network.nic_speed", _nic("eth1")).reason == "the link is down"  # type: ignore[union-attr]
    assert table.value("network.nic_speed", _nic("eth0")) is None


def test_hundreds_of_veths_do_not_push_a_device_out(two_nodes: Tree) -> None:
    for number in range(MAX_NICS + 20):
        two_nodes.virtual_nic(f"a{number}")
    table = two_nodes.facts()
    assert len(table.entities(EntityKind.NIC)) == MAX_NICS
    assert table.value("network.nic_node", _nic("eth1")) == 1


def test_an_interface_that_is_a_folder_and_no_link_counts_and_a_file_does_not(two_nodes: Tree) -> None:
    before = two_nodes.facts().entities(EntityKind.NIC)
    two_nodes.write("sys/class/net/old0/speed", "1000\n")
    two_nodes.write("sys/class/net/bonding_masters", "bond0\n")
    assert set(two_nodes.facts().entities(EntityKind.NIC)) - set(before) == {_nic("old0")}


def test_a_legacy_interrupt_is_found_where_there_are_no_vectors(tree: Tree) -> None:
    tree.cpus("0-1", "0-1")
    device = tree.pci("pci0000:00/0000:00:04.0", node=0, local="0-1")
    tree.write(f"{device}/irq", "19\n")
    tree.nic("eth0", device)
    tree.irq(19, "0-1", None, action="eth0,uhci_hcd:usb1")
    table = tree.facts()
    assert table.value("network.nic_irqs", _nic("eth0")) == ("19",)
    assert table.value("cpu.irq_action", Entity(EntityKind.IRQ, "19")) == "eth0,uhci_hcd:usb1"


def test_a_bond_tells_how_many_of_its_legs_are_down(two_nodes: Tree) -> None:
    two_nodes.virtual_nic("bond0")
    two_nodes.write("sys/devices/virtual/net/bond0/bonding/slaves", "eth0 eth1\n")
    assert two_nodes.facts().value("network.nic_legs_down", _nic("bond0")) == 0
    two_nodes.write("sys/devices/pci0000:40/0000:40:00.0/0000:41:00.0/net/eth1/operstate", "down\n")
    assert two_nodes.facts().value("network.nic_legs_down", _nic("bond0")) == 1
    assert two_nodes.facts().value("network.nic_legs_down", _nic("lo")) is None


def test_a_nic_tells_its_duplex_its_queue_and_the_cpus_that_it_interrupts(two_nodes: Tree) -> None:
    folder = "sys/devices/pci0000:40/0000:40:00.0/0000:41:00.0/net/eth1"
    two_nodes.write(f"{folder}/duplex", "half\n")
    table = two_nodes.facts()
    assert table.value("network.nic_duplex", _nic("eth1")) == "half"
    assert table.value("network.nic_irq_cpus", _nic("eth1")) == 3  # 5, 0 and 2
    assert table.value("network.nic_irq_cpus", _nic("eth0")) == 1
    assert table.value("network.nic_local_mask", _nic("eth1")) == "70"
    two_nodes.write(f"{folder}/operstate", "down\n")
    assert two_nodes.facts().value("network.nic_duplex", _nic("eth1")) is None


def test_the_queue_to_a_guest_is_a_setting(two_nodes: Tree) -> None:
    two_nodes.virtual_nic("tap0")
    two_nodes.write("sys/devices/virtual/net/tap0/tx_queue_len", "1000\n")
    fact = two_nodes.facts().find("network.nic_tx_queue_length", _nic("tap0"))
    assert fact is not None
    assert (fact.value, fact.setting) == (1000, "file:/sys/class/net/tap0/tx_queue_len")
