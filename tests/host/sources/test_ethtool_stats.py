"""Counters of drivers: names of real drivers, and the real NIC of this machine."""

from __future__ import annotations

import ctypes
import os
import struct
from array import array
from pathlib import Path

import pytest

from unveil.errors import SourceAbsentError
from unveil.host.sources import ethtool_stats
from unveil.host.sources.ethtool_stats import DRIVERS, METRICS, MOST_COUNTERS, EthtoolStatistics, places

NAMES = {
    "mlx5_core": ["rx_packets", "rx_out_of_buffer", "rx0_packets", "rx_prio3_pause", "rx_prio3_pause_duration",
                  "tx_pause_ctrl_phy", "rx_symbol_err_phy"],
    "ice": ["rx_dropped.nic", "link_xoff_rx.nic", "rx_priority_3_xoff.nic", "tx_priority_3_xon.nic", "tx_busy"],
    "i40e": ["port.rx_dropped", "port.link_xoff_rx", "port.tx_priority_0_xoff", "rx_alloc_fail", "tx_restart"],
    "ixgbe": ["rx_missed_errors", "rx_no_buffer_count", "alloc_rx_page_failed", "tx_flow_control_xoff"],
    "ena": ["bw_in_allowance_exceeded", "pps_allowance_exceeded", "queue_0_tx_queue_stop", "queue_9_rx_refil_partial"],
    "virtio_net": ["rx_drops", "rx0_drops", "rx_queue_1_drops", "tx0_tx_timeouts"],
    "bnxt_en": ["[0]: rx_discards", "[15]: rx_discards", "rx_pause_frames", "rx_fcs_err_frames"],
}  # fmt: skip


@pytest.mark.parametrize("driver", sorted(DRIVERS))
def test_the_names_of_each_driver_are_known_by_their_meaning(driver: str) -> None:
    found = places(driver, NAMES[driver])
    taken = [place for each in found.values() for place in each]
    assert len(taken) == len(set(taken)), "no counter is taken twice"
    assert len(taken) >= 3
    assert {f"network.{metric}" for metric in found} <= {metric.name for metric in METRICS}


def test_names_are_taken_whole_and_those_of_all_queues_together() -> None:
    assert places("bnxt_en", NAMES["bnxt_en"])["driver_no_buffer"] == (0, 1)
    assert places("mlx5_core", NAMES["mlx5_core"])["driver_pause_rx"] == (3,), "a duration is no number of frames"
    assert places("bnxt_en", ["rx_corrected_bits"]) == {}, "bits, of which a healthy fast link corrects thousands"
    assert places("virtio_net", NAMES["virtio_net"])["driver_no_buffer"] == (1, 2), "not the sum of all, too"


def test_duplicates_keep_their_places_and_drivers_that_are_not_known_are_left_alone() -> None:
    assert places("ixgbe", ["rx_missed_errors", "rx_missed_errors"])["driver_no_buffer"] == (0, 1)
    assert places("vmxnet3", ["giant hdr", "giant hdr"]) == {}


def test_a_host_without_such_a_nic_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsentError, match="no NIC here"):
        EthtoolStatistics(tmp_path).open()


def test_a_nic_that_vanished_costs_the_others_nothing(tmp_path: Path) -> None:
    for nic in os.listdir("/sys/class/net"):  # noqa: PTH208  # names
        (tmp_path / nic).symlink_to(Path("/sys/class/net") / nic)
    ghost = tmp_path / "gone0" / "device"
    ghost.mkdir(parents=True)
    (ghost / "driver").symlink_to("/sys/bus/virtio/drivers/virtio_net")
    probe = EthtoolStatistics(tmp_path)
    probe.open()
    values = probe.read()
    assert probe.reason == ""
    assert not [channel for channel in values if channel.label("nic") == "gone0"]
    assert probe.read().keys() == values.keys()
    probe.close()


def told_as_many(monkeypatch: pytest.MonkeyPatch, count: int) -> list[int]:
    """Have a kernel count so many counters; return the sizes of the memory that it is given for its answers."""
    sizes: list[int] = []

    def made(kind: str, content: bytes) -> array[int]:
        sizes.append(len(content))
        return array(kind, content)

    def ioctl(_door: object, _number: int, word: bytes) -> int:
        _name, pointer = struct.unpack_from("16sP", word)
        if ctypes.c_uint32.from_address(pointer).value == 0x37:  # ETHTOOL_GSSET_INFO
            ctypes.c_uint32.from_address(pointer + 16).value = count
        return 0

    monkeypatch.setattr(ethtool_stats, "array", made)
    monkeypatch.setattr("unveil.host.sources.ethtool_stats.fcntl.ioctl", ioctl)
    return sizes


def one_nic(folder: Path) -> EthtoolStatistics:
    (folder / "eth0/device").mkdir(parents=True)
    (folder / "eth0/device/driver").symlink_to("/sys/bus/virtio/drivers/virtio_net")
    probe = EthtoolStatistics(folder)
    probe.open()
    return probe


def test_there_is_memory_for_the_most_counters_whatever_was_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = told_as_many(monkeypatch, 3)
    probe = one_nic(tmp_path)
    probe.read()
    assert len(probe._strings("eth0", 3)) == 3
    assert sizes[-1] >= 12 + 32 * MOST_COUNTERS
    probe.close()


def test_a_counter_that_the_driver_does_not_know_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [b"rx0_drops", b"tx0_tx_timeouts", b"rx1_drops"]

    def ioctl(_door: object, _number: int, word: bytes) -> int:
        pointer = struct.unpack_from("16sP", word)[1]
        asked = ctypes.c_uint32.from_address(pointer).value
        if asked == 0x37:  # ETHTOOL_GSSET_INFO
            ctypes.c_uint32.from_address(pointer + 16).value = len(names)
        elif asked == 0x1B:  # ETHTOOL_GSTRINGS
            ctypes.memmove(pointer + 12, b"".join(name.ljust(32, b"\0") for name in names), 32 * len(names))
        else:
            ctypes.memmove(pointer + 8, struct.pack("3Q", 4, (1 << 64) - 1, 5), 24)
        return 0

    monkeypatch.setattr("unveil.host.sources.ethtool_stats.fcntl.ioctl", ioctl)
    probe = one_nic(tmp_path)
    assert {str(channel): value for channel, value in probe.read().items()} == {
        "network.driver_no_buffer{nic=eth0}": 9.0
    }
    probe.close()


def test_virtual_functions_push_no_physical_nic_out(tmp_path: Path) -> None:
    for number in range(ethtool_stats.MOST_NICS + 3):
        device = tmp_path / (f"a{number}" if number else "z0") / "device"
        device.mkdir(parents=True)
        (device / "driver").symlink_to("/sys/bus/pci/drivers/mlx5_core")
        if number:
            (device / "physfn").mkdir()
    nics = EthtoolStatistics(tmp_path)._nics()
    assert len(nics) == ethtool_stats.MOST_NICS
    assert "z0" in nics


def test_a_nic_with_more_counters_than_there_is_memory_for_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = told_as_many(monkeypatch, MOST_COUNTERS + 1)
    probe = one_nic(tmp_path)
    assert probe.read() == {}
    assert "too long" in probe.reason, "E2BIG"
    assert max(sizes) < 100
    probe.close()
