"""``/proc/diskstats``: requests, bytes and time of each disk.

Source: Documentation/admin-guide/iostats.rst. The file grows: 14 fields are required, later ones (discards in 4.18,
flushes in 5.5) may be absent. Sectors are 512 bytes whatever the disk's own are. The device number is pinned: another
disk under the same name is another disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading, name_of
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from unveil.host.parsers.text import Text

_SECTOR = 512.0
_MS = 1e-3

_COLUMNS = (
    (3, "storage.reads", 1.0),
    (5, "storage.read_bytes", _SECTOR),
    (6, "storage.read_time", _MS),
    (7, "storage.writes", 1.0),
    (9, "storage.write_bytes", _SECTOR),
    (10, "storage.write_time", _MS),
    (11, "storage.in_flight", 1.0),
    (12, "storage.io_time", _MS),
    (13, "storage.queue_time", _MS),
    (4, "storage.read_merges", 1.0),
    (8, "storage.write_merges", 1.0),
    (14, "storage.discards", 1.0),
    (16, "storage.discard_bytes", _SECTOR),
    (17, "storage.discard_time", _MS),
    (18, "storage.flushes", 1.0),
    (19, "storage.flush_time", _MS),
)
_FEWEST_FIELDS = 14


def parse_diskstats(text: Text, wanted: Callable[[str], bool]) -> Iterator[Reading]:
    """Yield the counters of each disk, times in seconds.

    Args:
        wanted: tells by its name whether a device is a disk of its own: no partition, not made of other disks.
    """
    for line in text.lines():
        line.pin(0, 3)
        if len(line.fields) < _FEWEST_FIELDS or line.number(0) is None or line.number(1) is None:
            continue
        disk = name_of(line.fields[2])
        if not wanted(disk):
            continue
        identity = f"{line.fields[0].decode('ascii')}:{line.fields[1].decode('ascii')}"
        for index, metric, scale in _COLUMNS:
            if (number := line.number(index)) is not None:
                yield Reading(Channel(metric, (("disk", disk),)), (number,), scale, identity)
