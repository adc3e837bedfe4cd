"""``io.stat`` of a cgroup: a line for each device, ``8:0 rbytes=… wbytes=… rios=… wios=…``, summed over the disks.

A cgroup's I/O to a stacked device (device mapper, software RAID) is counted there and again at the disks below, so
only whole disks count. Version 1 has a file for bytes and one for requests with lines ``8:0 Read …``.

Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/blkio-controller.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.host.parsers.text import Text

_V2 = {
    b"rbytes": "storage.cgroup_read_bytes",
    b"wbytes": "storage.cgroup_write_bytes",
    b"rios": "storage.cgroup_reads",
    b"wios": "storage.cgroup_writes",
}
_EQUALS = bytes.maketrans(b"=", b" ")


def parse_cgroup_io(text: Text, wanted: Callable[[str], bool], cgroup: str, identity: str) -> Iterator[Reading]:
    """Yield what ``io.stat`` tells.

    Args:
        wanted: tells by its number (``8:0``) whether a device is a disk of its own.
    """
    sums: dict[str, list[int]] = {}
    devices: list[str] = []
    for line in text.lines(lambda raw: raw.translate(_EQUALS)):
        device = line.fields[0].decode("ascii", "replace")
        if not wanted(device):
            continue
        devices.append(device)
        for place, name in enumerate(line.fields[1::2]):
            if name in _V2 and (number := line.number(2 * place + 2)) is not None:
                sums.setdefault(_V2[name], []).append(number)
    known_by = f"{identity} {' '.join(devices)}"  # a disk that the sum lacked until now is no burst of I/O
    for metric, numbers in sums.items():
        yield Reading(Channel(metric, (("cgroup", cgroup),)), numbers, 1.0, known_by)
