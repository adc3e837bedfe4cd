"""Counters that only a NIC's driver has, by ioctl: packets for which it had no buffer, pauses, limits of a cloud.

The names are free text of the drivers, hundreds a NIC, some of them twice; so only those of drivers that are known are
taken, by their place, and those of one meaning are added up (over queues, over priorities). The list of names is
asked for again when its length or the driver changes. The calls take the network's global lock: hence the slow pace.

Source: include/uapi/linux/ethtool.h; the drivers' own tables of names (mlx5 en_stats.c, ice, i40e and ixgbe
*_ethtool.c, ena_ethtool.c, virtio_net.c, bnxt_ethtool.c).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import socket
import struct
from array import array
from dataclasses import dataclass
from pathlib import Path

from unveil.errors import SourceAbsentError
from unveil.host.parsers.shape import NO_NUMBER
from unveil.records.metric import Channel, Kind, declare

_SIOCETHTOOL = 0x8946
_GET_STRINGS, _GET_STATS, _GET_COUNTS = 0x1B, 0x1D, 0x37
_STATISTICS = 1  # ETH_SS_STATS
_NAME_BYTES = 32
MOST_NICS = 64
MOST_COUNTERS = 16384  # of one NIC; one with more is not asked

_MEANINGS = {
    "driver_no_buffer": "packets that the NIC dropped as there was no buffer to put them in",
    "driver_alloc_failed": "buffers that the driver wanted and the kernel did not have",
    "driver_tx_stopped": "times a queue for sending was full and was stopped",
    "driver_pause_rx": "pause frames received: the other side could not take more",
    "driver_pause_tx": "pause frames sent: this side could not take more",
    "driver_link_errors": "packets or symbols that were damaged on the link",
    "driver_ecn_marked": "packets received that a switch marked as in a queue",
    "driver_allowance_exceeded": "packets queued or dropped as the cloud's limit of this instance was reached",
}
METRICS = tuple(
    declare(f"network.{name}", Kind.COUNTER, "1", meaning, labels=("nic",), source="ethtool")
    for name, meaning in _MEANINGS.items()
)

# Driver → metric → names, whole, as a regular expression.
_MLX5 = {
    "driver_no_buffer": r"rx_out_of_buffer|rx_discards_phy",
    "driver_alloc_failed": r"rx_buff_alloc_err",
    "driver_tx_stopped": r"tx_queue_stopped",
    "driver_pause_rx": r"rx_pause_ctrl_phy|rx_prio\d+_pause",
    "driver_pause_tx": r"tx_pause_ctrl_phy|tx_prio\d+_pause",
    "driver_link_errors": r"rx_crc_errors_phy|rx_symbol_err_phy",
    "driver_ecn_marked": r"rx_ecn_mark",
}
_KNOWN: dict[str, dict[str, str]] = {
    "mlx5_core": _MLX5,
    "ice": {
        "driver_no_buffer": r"rx_dropped\.nic",
        "driver_alloc_failed": r"rx_buf_failed|rx_page_failed",
        "driver_tx_stopped": r"tx_busy|tx_restart",
        "driver_pause_rx": r"(link|rx_priority_\d+)_xo(n|ff)(_rx)?\.nic",
        "driver_pause_tx": r"(link_xo(n|ff)_tx|tx_priority_\d+_xo(n|ff))\.nic",
        "driver_link_errors": r"(rx_crc_errors|illegal_bytes|mac_local_faults|mac_remote_faults)\.nic",
    },
    "i40e": {
        "driver_no_buffer": r"port\.rx_dropped|rx_dropped",
        "driver_alloc_failed": r"rx_alloc_fail|rx_pg_alloc_fail",
        "driver_tx_stopped": r"tx_busy|tx_stopped|tx_restart",
        "driver_pause_rx": r"port\.(link_xo(n|ff)_rx|rx_priority_\d+_xo(n|ff))",
        "driver_pause_tx": r"port\.(link_xo(n|ff)_tx|tx_priority_\d+_xo(n|ff))",
        "driver_link_errors": r"port\.(rx_crc_errors|illegal_bytes|mac_local_faults|mac_remote_faults)",
    },
    "ixgbe": {
        "driver_no_buffer": r"rx_missed_errors|rx_no_buffer_count|rx_no_dma_resources",
        "driver_alloc_failed": r"alloc_rx_page_failed|alloc_rx_buff_failed",
        "driver_tx_stopped": r"tx_busy|tx_restart_queue",
        "driver_pause_rx": r"rx_flow_control_xo(n|ff)|rx_pb_\d+_px(on|off)",
        "driver_pause_tx": r"tx_flow_control_xo(n|ff)|tx_pb_\d+_px(on|off)",
        "driver_link_errors": r"rx_crc_errors|rx_length_errors",
    },
    "ena": {
        "driver_no_buffer": r"rx_drops|rx_overruns",
        "driver_alloc_failed": r"queue_\d+_rx_(page_alloc_fail|skb_alloc_fail|refil_partial)",
        "driver_tx_stopped": r"queue_\d+_tx_queue_stop",
        "driver_link_errors": r"queue_\d+_rx_bad_csum",
        "driver_allowance_exceeded": r"(bw_in|bw_out|pps|conntrack|linklocal)_allowance_exceeded",
    },
    "virtio_net": {
        "driver_no_buffer": r"rx_?(queue_)?\d+_drops|rx\d+_hw_drop_overruns",
        "driver_tx_stopped": r"tx_?(queue_)?\d+_(stop|tx_timeouts)",
    },
    "bnxt_en": {
        "driver_no_buffer": r"rx_total_(discard_pkts|ring_discards|buf_errors|oom_discards)|\[\d+\]: rx_discards",
        "driver_alloc_failed": r"\[\d+\]: rx_buf_errors",
        "driver_pause_rx": r"rx_pause_frames|rx_pfc_frames",
        "driver_pause_tx": r"tx_pause_frames|tx_pfc_frames",
        "driver_link_errors": r"rx_fcs_err_frames|rx_(ber_)?sym_err_frames",
    },
}
DRIVERS: dict[str, dict[str, re.Pattern[str]]] = {
    driver: {metric: re.compile(names, re.ASCII) for metric, names in known.items()} for driver, known in _KNOWN.items()
}


def places(driver: str, names: list[str]) -> dict[str, tuple[int, ...]]:
    """Return metric → places of the counters that belong to it; nothing of a driver that is not known."""
    return {
        metric: found
        for metric, pattern in DRIVERS.get(driver, {}).items()
        if (found := tuple(place for place, name in enumerate(names) if pattern.fullmatch(name)))
    }


@dataclass(frozen=True, slots=True)
class _Names:
    """What the counters of one NIC are called, as far as they matter."""

    driver: str
    count: int
    places: dict[str, tuple[int, ...]]


class EthtoolStatistics:
    """The probe."""

    name = "ethtool"
    period_s = 10.0

    def __init__(self, folder: Path = Path("/sys/class/net")) -> None:
        self.reason = ""
        self._folder = folder
        self._door: socket.socket | None = None
        self._names: dict[str, _Names] = {}

    def open(self) -> None:
        """Open the socket that the calls go through.

        Raises:
            SourceAbsentError: no NIC here has a driver that is known.
        """
        try:
            nics = self._nics()
        except OSError as error:
            raise SourceAbsentError(f"the interfaces cannot be listed: {os.strerror(error.errno or 0)}") from error
        if not nics:
            raise SourceAbsentError(f"no NIC here has one of the drivers that are known: {', '.join(sorted(DRIVERS))}")
        self._door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def read(self) -> dict[Channel, float]:
        """Return the counters of every NIC; one that is gone, or refuses, costs the others nothing."""
        nics = self._nics()
        self._names = {nic: names for nic, names in self._names.items() if nic in nics}
        refusals: dict[str, str] = {}
        values: dict[Channel, float] = {}
        for nic, driver in nics.items():
            try:
                values |= self._read(nic, driver)
            except OSError as error:
                self._names.pop(nic, None)
                if error.errno != errno.ENODEV:  # renamed or gone since it was listed
                    refusals[nic] = os.strerror(error.errno or 0)
        self.reason = "; ".join(f"{nic}: {why}" for nic, why in sorted(refusals.items()))
        return values

    def close(self) -> None:
        """Close the socket."""
        if self._door is not None:
            self._door.close()
            self._door = None

    def _nics(self) -> dict[str, str]:
        """Return the NICs whose driver is known, and the driver."""
        found: dict[str, str] = {}
        for nic in sorted(os.listdir(self._folder)):  # noqa: PTH208  # names, many of them, every time
            try:
                driver = os.path.basename(os.readlink(self._folder / nic / "device/driver"))  # noqa: PTH115, PTH119
            except OSError:
                continue  # virtual, or gone
            if driver in DRIVERS:
                found[nic] = driver
        nics = list(found.items())
        if len(nics) > MOST_NICS:  # virtual functions must not push physical ones out
            nics.sort(key=lambda nic: os.path.lexists(self._folder / nic[0] / "device/physfn"))
        return dict(nics[:MOST_NICS])

    def _read(self, nic: str, driver: str) -> dict[Channel, float]:
        count = self._count(nic)
        known = self._names.get(nic)
        if known is None or (known.driver, known.count) != (driver, count):
            known = self._names[nic] = _Names(driver, count, places(driver, self._strings(nic, count)))
        if not known.places:
            return {}
        answer = self._ask(nic, struct.pack("II", _GET_STATS, count), 8 * MOST_COUNTERS)
        if struct.unpack_from("I", answer, 4)[0] != count:  # queues came or went between two calls
            raise OSError(errno.ENODEV, "its counters changed")
        numbers = struct.unpack_from(f"{count}Q", answer, 8)
        labels = (("nic", nic),)
        return {
            Channel(f"network.{metric}", labels): float(sum(numbers[place] for place in found))
            for metric, found in known.places.items()
            if max(numbers[place] for place in found) < NO_NUMBER
        }

    def _count(self, nic: str) -> int:
        answer = self._ask(nic, struct.pack("IIQI", _GET_COUNTS, 0, 1 << _STATISTICS, 0))
        mask, count = struct.unpack_from("QI", answer, 8)
        if mask and count > MOST_COUNTERS:
            raise OSError(errno.E2BIG, "too many counters")
        return count if mask else 0

    def _strings(self, nic: str, count: int) -> list[str]:
        answer = self._ask(nic, struct.pack("III", _GET_STRINGS, _STATISTICS, count), _NAME_BYTES * MOST_COUNTERS)
        told = min(count, struct.unpack_from("I", answer, 8)[0])
        raw = (answer[12 + _NAME_BYTES * place : 12 + _NAME_BYTES * (place + 1)] for place in range(told))
        return [name.split(b"\0", 1)[0].decode("ascii", "replace") for name in raw]

    def _ask(self, nic: str, request: bytes, room: int = 0) -> bytes:
        """Return the driver's answer.

        Args:
            room: bytes for it behind the request. Kernels write as many counters as there are by then, whatever they
                were told of our memory; with more queues since they were counted, or another NIC of that name, that
                is more than were counted. So there is always room for the most that is asked for at all.
        """
        assert self._door is not None
        memory = array("B", request + bytes(room))
        word = struct.pack("16sP16x", os.fsencode(nic)[:15], memory.buffer_info()[0])
        fcntl.ioctl(self._door, _SIOCETHTOOL, word)
        return memory.tobytes()
