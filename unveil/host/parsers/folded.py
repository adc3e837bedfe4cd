"""Tables with a row for each CPU, folded into totals before they are parsed: ``softnet_stat``, ``schedstat`` and such.

They are read seldom, hold much that nobody asks for, and some write hexadecimal, which the batch cannot read. So a
feed's ``cut`` sums the columns that are wanted and writes one line for each, behind a line that says how many rows
there were: when that changes (a CPU went offline) the totals begin anew, as they jump by all that its CPU ever counted.
A text that is no such table is left as it is, and holds nothing that the parser knows.

Source: net/core/net-procfs.c for softnet_stat, Documentation/scheduler/sched-stats.rst, net/netfilter/
nf_conntrack_standalone.c.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.host.parsers.text import Text

_HEX = re.compile(rb"[0-9a-f]{8,16}", re.ASCII)
_DECIMAL = re.compile(rb"[0-9]{1,20}", re.ASCII)
_SOFTNET = {b"processed": 0, b"dropped": 1, b"squeezed": 2, b"rps": 9, b"flow_limit": 10}
_FEWEST_SOFTNET = 9
_CONNTRACK = (b"drop", b"early_drop", b"insert_failed", b"search_restart")
_NS_PER_US = 1000  # so that a thousand CPUs in use for years stay far below NO_NUMBER


def folded(rows: int, totals: Mapping[bytes, int]) -> bytes:
    """Return the text of totals over so many rows."""
    return b"rows %d\n" % rows + b"".join(b"%s %d\n" % item for item in totals.items())


def parse_folded(
    text: Text, metrics: Mapping[bytes, tuple[str, float]], labels: tuple[tuple[str, str], ...] = ()
) -> Iterator[Reading]:
    """Yield the totals of a folded table.

    Args:
        metrics: name of the line → metric, and its scale.
        labels: labels of every channel.
    """
    rows = ""
    for number, line in enumerate(text.lines()):
        if len(line.fields) != 2:
            return
        if number == 0:
            if line.fields[0] != b"rows" or line.number(1) is None:
                return
            line.pin(1, 2)
            rows = line.fields[1].decode("ascii")
        elif (metric := metrics.get(line.fields[0])) is not None and (total := line.number(1)) is not None:
            yield Reading(Channel(metric[0], labels), (total,), metric[1], rows)


def fold_softnet(raw: bytes) -> bytes:
    """Return the totals of ``softnet_stat``, which has hexadecimal columns without names; later kernels have more."""
    rows = [line.split() for line in raw.splitlines()]
    width = min((len(row) for row in rows), default=0)
    wanted = {name: column for name, column in _SOFTNET.items() if column < width}
    if width < _FEWEST_SOFTNET or not all(_HEX.fullmatch(row[column]) for row in rows for column in wanted.values()):
        return raw
    return folded(len(rows), {name: sum(int(row[column], 16) for row in rows) for name, column in wanted.items()})


def fold_conntrack(raw: bytes) -> bytes:
    """Return the totals of ``/proc/net/stat/nf_conntrack``: hexadecimal columns below a line of their names."""
    header, *rows = [line.split() for line in raw.splitlines()] or [[]]
    wanted = {name: header.index(name) for name in _CONNTRACK if name in header}
    if not rows or not wanted or any(len(row) != len(header) for row in rows):
        return raw
    if not all(_HEX.fullmatch(row[column]) for row in rows for column in wanted.values()):
        return raw
    return folded(len(rows), {name: sum(int(row[column], 16) for row in rows) for name, column in wanted.items()})


def fold_schedstat(raw: bytes) -> bytes:
    """Return the totals of ``/proc/schedstat`` over the CPUs; times in microseconds.

    The lines of scheduling domains between them, far longer, are not looked at. Versions before 15 (Linux 2.6.38) have
    other columns.
    """
    first, _, rest = raw.partition(b"\n")
    version = first.removeprefix(b"version ")
    if version == first or not _DECIMAL.fullmatch(version) or int(version) < 15:
        return raw
    rows = [line.split() for line in rest.split(b"\n") if line.startswith(b"cpu")]
    if not rows or any(len(row) != 10 or not all(map(_DECIMAL.fullmatch, row[7:])) for row in rows):
        return raw
    run, wait, slices = (sum(int(row[column]) for row in rows) for column in (7, 8, 9))
    return folded(len(rows), {b"run": run // _NS_PER_US, b"wait": wait // _NS_PER_US, b"slices": slices})
