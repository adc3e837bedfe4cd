"""``/proc/*/mountstats``: what NFS mounts did, folded to totals.

Each NFS mount has a paragraph with bytes and, for each operation, nine or so numbers. The same export mounted twice
has two equal paragraphs, as both tell of one superblock; it counts once.

Source: fs/nfs/iostat.h, net/sunrpc/stats.c (rpc_clnt_show_stats), statvers 1.0 and 1.1.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.host.parsers.folded import folded

if TYPE_CHECKING:
    from collections.abc import Iterator

_BYTES = re.compile(rb"\n\tbytes:\t((?:[0-9]{1,20} ){7}[0-9]{1,20})", re.ASCII)
_OPERATION = re.compile(rb"\n\t +([A-Z_]+): ((?:[0-9]{1,20} ){7,8}[0-9]{1,20})", re.ASCII)
_WRAPPED = 1 << 62  # a time that went below zero, printed unsigned
_PER_OPERATION = (b"operations", b"transmissions", b"timeouts", b"", b"", b"queue_ms", b"rtt_ms", b"execute_ms")


def fold_mountstats(raw: bytes) -> bytes:
    """Return the totals over all NFS mounts; their number stands for *rows*."""
    totals = dict.fromkeys((b"read_bytes", b"write_bytes", *filter(None, _PER_OPERATION)), 0)
    mounts = frozenset(_mounts(raw))
    for mount in mounts:
        if (found := _BYTES.search(mount)) is not None:
            numbers = [int(number) for number in found[1].split()]
            totals[b"read_bytes"] += numbers[4]
            totals[b"write_bytes"] += numbers[5]
        for operation in _OPERATION.finditer(mount):
            for name, number in zip(_PER_OPERATION, map(int, operation[2].split()), strict=False):
                if name and number < _WRAPPED:
                    totals[name] += number
    return folded(len(mounts), totals)


def _mounts(raw: bytes) -> Iterator[bytes]:
    """Yield what is told of each NFS mount, without the place it is mounted at."""
    for paragraph in (b"\n" + raw).split(b"\ndevice ")[1:]:
        first, newline, rest = paragraph.partition(b"\n")
        device, _, kind = first.rpartition(b" with fstype ")
        if kind.startswith((b"nfs ", b"nfs4 ")):
            yield device.partition(b" mounted on ")[0] + newline + rest
