"""What only the driver of a NIC tells, by ioctl: rings, moderation, offloads, the fastest link that it could have.

The kernel answers from its own network namespace, so a NIC is only asked where the root is that of the machine we run
on. Each call takes the network's global lock, as reading ``speed`` does.

Source: include/uapi/linux/ethtool.h.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from array import array
from typing import TYPE_CHECKING

from unveil.host.facts.sheet import why
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from unveil.host.facts.sheet import FactSheet
    from unveil.host.root import HostRoot

_OFFLOADS = {"network.nic_gro": (0x2B, "rx-gro"), "network.nic_tso": (0x1E, "tx-tcp-segmentation")}
_RINGS = ("network.nic_rx_ring", "network.nic_rx_ring_max", "network.nic_tx_ring", "network.nic_tx_ring_max")
_PAUSES = ("network.nic_pause_rx", "network.nic_pause_tx")
_MODERATION = ("network.nic_rx_usecs", "network.nic_adaptive_rx")
_FASTEST = "network.nic_speed_max"

_SIOCETHTOOL = 0x8946
_GET_MODERATION, _GET_RINGS, _GET_PAUSE, _GET_LINK = 0x0E, 0x10, 0x12, 0x4C
_LINK_HEAD = 48  # bytes of struct ethtool_link_settings before its three masks

# First and last bit of ETHTOOL_LINK_MODE_* of one speed (Mbit/s); bits in between are no speeds.
_MODES = (
    (0, 1, 10), (2, 3, 100), (4, 5, 1000), (12, 12, 10_000), (15, 15, 2500), (17, 17, 1000), (18, 20, 10_000),
    (21, 22, 20_000), (23, 26, 40_000), (27, 30, 56_000), (31, 33, 25_000), (34, 35, 50_000), (36, 39, 100_000),
    (40, 40, 50_000), (41, 41, 1000), (42, 46, 10_000), (47, 47, 2500), (48, 48, 5000), (52, 56, 50_000),
    (57, 61, 100_000), (62, 66, 200_000), (69, 73, 400_000), (75, 79, 100_000), (80, 84, 200_000), (85, 89, 400_000),
    (93, 98, 800_000),
)  # fmt: skip


def tell_offloads(sheet: FactSheet, name: str) -> None:
    """Tell which offloads of an interface are on, each with its setting."""
    for fact, (command, feature) in _OFFLOADS.items():
        answer = _ask(sheet, name, struct.pack("II", command, 0), (fact,))
        if answer is not None:
            on = bool(struct.unpack("II", answer)[1])
            sheet.tell(fact, on, _nic(name), setting=f"ethtool:{name}/feature/{feature}")
            sheet.settings[f"ethtool:{name}/feature/{feature}"] = "on\n" if on else "off\n"


def tell_driver(sheet: FactSheet, name: str) -> None:
    """Tell what the driver of an interface is asked once; what it does not serve is absent with the reason."""
    answer = _ask(sheet, name, struct.pack("9I", _GET_RINGS, *[0] * 8), _RINGS)
    if answer is not None:
        words = struct.unpack("9I", answer)  # struct ethtool_ringparam
        for fact, place, setting in zip(_RINGS, (5, 1, 8, 4), ("rx", None, "tx", None), strict=True):
            _tell_size(sheet, name, fact, words[place], setting=setting and f"ethtool:{name}/ring/{setting}")
    answer = _ask(sheet, name, struct.pack("4I", _GET_PAUSE, 0, 0, 0), _PAUSES)
    if answer is not None:
        for fact, on in zip(_PAUSES, struct.unpack("4I", answer)[2:], strict=True):
            sheet.tell(fact, bool(on), _nic(name))
    modes = _link_modes(sheet, name)
    if modes is not None:
        fastest = fastest_mbit(modes)
        if fastest is None:
            sheet.miss(_FASTEST, "the driver names no speed", _nic(name))
        else:
            sheet.tell(_FASTEST, float(fastest), _nic(name))


def tell_moderation(sheet: FactSheet, name: str) -> None:
    """Tell how long a NIC gathers received packets before it interrupts, and whether the driver sets that by itself."""
    answer = _ask(sheet, name, struct.pack("23I", _GET_MODERATION, *[0] * 22), _MODERATION)
    if answer is None:
        return
    words = struct.unpack("23I", answer)  # struct ethtool_coalesce
    for fact, item, value, text in (
        (_MODERATION[0], "rx-usecs", float(words[1]), str(words[1])),
        (_MODERATION[1], "adaptive-rx", bool(words[10]), "on" if words[10] else "off"),
    ):
        setting = f"ethtool:{name}/coalesce/{item}"
        sheet.tell(fact, value, _nic(name), setting=setting)
        sheet.settings[setting] = f"{text}\n"


def fastest_mbit(modes: int) -> int | None:
    """Return the fastest speed (Mbit/s) among link modes, which are bits of a number; None when none is a speed."""
    return max((speed for low, high, speed in _MODES if modes >> low & (1 << high - low + 1) - 1), default=None)


def _nic(name: str) -> Entity:
    return Entity(EntityKind.NIC, name)


def _tell_size(sheet: FactSheet, name: str, fact: str, packets: int, *, setting: str | None = None) -> None:
    if packets:
        sheet.tell(fact, float(packets), _nic(name), setting=setting)
        if setting is not None:
            sheet.settings[setting] = f"{packets}\n"
    else:
        sheet.miss(fact, "the driver has no ring of a size", _nic(name))


def _link_modes(sheet: FactSheet, name: str) -> int | None:
    """Return the link modes that a NIC supports, None where it does not tell (the fact then says why).

    The first call is answered with the length of a mask in words, as a negative number; the second with the masks.
    """
    answer = _ask(sheet, name, struct.pack("I", _GET_LINK) + bytes(_LINK_HEAD - 4), (_FASTEST,))
    if answer is None:
        return None
    words = -struct.unpack_from("b", answer, 15)[0]
    if words <= 0:
        sheet.miss(_FASTEST, "the kernel does not tell how many link modes it knows", _nic(name))
        return None
    request = bytearray(struct.pack("I", _GET_LINK) + bytes(_LINK_HEAD - 4 + 3 * 4 * words))
    request[15] = words
    answer = _ask(sheet, name, bytes(request), (_FASTEST,))
    if answer is None:
        return None
    supported: tuple[int, ...] = struct.unpack_from(f"{words}I", answer, _LINK_HEAD)
    return sum(word << 32 * place for place, word in enumerate(supported))


def _ask(sheet: FactSheet, name: str, request: bytes, facts: tuple[str, ...]) -> bytes | None:
    """Return the driver's answer, None where it gives none: then *facts* are absent."""
    reason = "only the host itself can ask its drivers"
    if sheet.root.live:
        try:
            return sheet.looks.see(_answer, (name, request))
        except OSError as error:
            reason = why(error, f"ethtool {name}")
    for fact in facts:
        sheet.miss(fact, reason, _nic(name))
    return None


def _answer(_root: HostRoot, question: tuple[str, bytes]) -> bytes:
    """Return what a driver answers to a question about an interface of ours."""
    name, request = question
    memory = array("B", request)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        fcntl.ioctl(door, _SIOCETHTOOL, struct.pack("16sP16x", os.fsencode(name)[:15], memory.buffer_info()[0]))
    return memory.tobytes()
