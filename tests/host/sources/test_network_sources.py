from __future__ import annotations

from unveil.host.source import SourceState
from unveil.host.sources import conntrack, nic_faults, rdma, sockstat, softnet


def hexes(*numbers: int) -> str:
    return " ".join(f"{number:08x}" for number in numbers)


def test_input_queues_are_counted_in_hexadecimal_over_all_cpus(procfs, look) -> None:
    rows = (hexes(0x1C90, 2, 1, *[0] * 6, 7, 0, 0, 0), hexes(0x16, 0, 0xFF, *[0] * 6, 1, 3, 0, 1))
    procfs.write("proc/net/softnet_stat", "\n".join(rows) + "\n")
    assert look(softnet.SOURCE)[0] == {
        "network.softnet_processed": 0x1C90 + 0x16,
        "network.softnet_dropped": 2,
        "network.softnet_squeezed": 0x100,
        "network.softnet_rps": 8,
        "network.softnet_flow_limit": 3,
    }


def test_an_old_kernel_has_fewer_columns(procfs, look) -> None:
    procfs.write("proc/net/softnet_stat", hexes(1, 2, 3, *[0] * 6) + "\n")
    assert set(look(softnet.SOURCE)[0]) == {f"network.softnet_{name}" for name in ("processed", "dropped", "squeezed")}


def test_columns_that_are_no_hexadecimal_numbers_are_none(procfs, look) -> None:
    procfs.write("proc/net/softnet_stat", hexes(1, 2, 3, *[0] * 6).replace("00000002", "0x000002") + "\n")
    values, health = look(softnet.SOURCE)
    assert (values, health.state) == ({}, SourceState.FAILED)


def test_sockets_and_their_memory(procfs, look) -> None:
    procfs.write(
        "proc/net/sockstat",
        "sockets: used 13\nTCP: inuse 4 orphan 1 tw 2 alloc 5 mem 204\nUDP: inuse 3 mem 1\nFRAG: inuse 0 memory 7\n",
    )
    procfs.write("proc/sys/net/ipv4/tcp_mem", "100\t200\t300\n")
    values, _ = look(sockstat.SOURCE)
    assert values["network.sockets"] == 13
    assert values["network.tcp_time_wait"] == 2
    assert values["network.tcp_memory"] == 204 * 4096
    assert values["network.tcp_memory_limit"] == 300 * 4096
    assert values["network.fragment_memory"] == 7


def test_tracked_connections_and_those_that_were_turned_away(procfs, look) -> None:
    assert look(conntrack.SOURCE)[1].state is SourceState.ABSENT
    procfs.write("proc/sys/net/netfilter/nf_conntrack_count", "12\n")
    procfs.write("proc/sys/net/netfilter/nf_conntrack_max", "65536\n")
    procfs.write(
        "proc/net/stat/nf_conntrack",
        f"entries  searched insert_failed drop early_drop\n{hexes(12, 0, 1, 2, 3)}\n{hexes(12, 0, 1, 2, 0x10)}\n",
    )
    assert look(conntrack.SOURCE)[0] == {
        "network.conntrack_entries": 12,
        "network.conntrack_limit": 65536,
        "network.conntrack_insert_failed": 2,
        "network.conntrack_dropped": 4,
        "network.conntrack_evicted": 19,
    }


def test_faults_are_read_of_interfaces_with_a_device_only(procfs, look) -> None:
    for nic in ("eth0", "veth1"):
        procfs.write(f"sys/class/net/{nic}/ifindex", "2\n")
        procfs.write(f"sys/class/net/{nic}/carrier_changes", "3\n")
    assert look(nic_faults.SOURCE)[1].state is SourceState.ABSENT
    procfs.write("sys/class/net/eth0/device/vendor", "0x15b3\n")
    procfs.write("sys/class/net/eth0/statistics/rx_missed_errors", "5\n")
    values, _ = look(nic_faults.SOURCE)
    assert values == {"network.carrier_changes{nic=eth0}": 3, "network.rx_missed{nic=eth0}": 5}


def test_rdma_ports_are_followed_value_by_value(procfs, look) -> None:
    port = "sys/class/infiniband/mlx5_0/ports/1"
    procfs.write(f"{port}/counters/port_rcv_data", "1000\n")
    procfs.write(f"{port}/counters/port_xmit_data", "N/A (no PMA)\n")
    procfs.write(f"{port}/hw_counters/out_of_sequence", "6\n")
    procfs.write("sys/class/infiniband/mlx5_0/device/net/ib0/ifindex", "3\n")
    procfs.write("sys/class/infiniband/mlx5_1/ports/1/counters/port_rcv_data", "7\n")
    values, health = look(rdma.SOURCE)
    assert values == {
        "network.rdma_rx_bytes{port=mlx5_0/1,nic=ib0}": 4000,
        "network.rdma_out_of_sequence{port=mlx5_0/1,nic=ib0}": 6,
        "network.rdma_rx_bytes{port=mlx5_1/1}": 28,
    }
    assert health.state is SourceState.OK


def test_a_port_whose_interface_was_renamed_has_its_new_name(procfs, look_twice) -> None:
    procfs.write("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "1000\n")
    nets = procfs.folder / "sys/class/infiniband/mlx5_0/device/net"
    (nets / "ib0").mkdir(parents=True)
    channels = look_twice(rdma.SOURCE, lambda: (nets / "ib0").rename(nets / "ibp1s0"))
    assert channels == {"network.rdma_rx_bytes{port=mlx5_0/1,nic=ibp1s0}"}


def test_virtual_functions_push_no_physical_nic_out(procfs, look) -> None:
    for number in range(nic_faults.MOST_NICS + 3):
        nic = f"sys/class/net/a{number}" if number else "sys/class/net/z0"
        procfs.write(f"{nic}/ifindex", f"{number + 2}\n")
        procfs.write(f"{nic}/carrier_changes", "3\n")
        procfs.write(f"{nic}/device/physfn/vendor" if number else f"{nic}/device/vendor", "0x15b3\n")
    values, _ = look(nic_faults.SOURCE)
    assert len(values) == nic_faults.MOST_NICS
    assert "network.carrier_changes{nic=z0}" in values


def test_a_host_without_rdma_says_so(look) -> None:
    assert look(rdma.SOURCE)[1].reason == "this host has no RDMA adapter"
