"""``cpu.stat``, ``cpuacct.usage``, ``memory.stat``, ``memory.numa_stat``, ``memory.max`` of a cgroup, versions 1 and 2.

Source: Documentation/admin-guide/cgroup-v2.rst; cgroup-v1/memory.rst and cpuacct.rst; scheduler/sched-bwc.rst. Both
versions come out under the same metrics: of version 1 the totals over the whole subtree are taken, as version 2 has
only those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.keyed import Part, parse_keyed
from unveil.host.parsers.text import Reading, Text, name_of
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

CPU_STAT_V1 = {
    b"nr_periods": Part("cpu.cgroup_periods"),
    b"nr_throttled": Part("cpu.cgroup_throttled"),
    b"throttled_time": Part("cpu.cgroup_throttled_time", 1e-9),
}
CPU_STAT_V2 = {
    b"usage_usec": Part("cpu.cgroup_usage", 1e-6),
    b"nr_periods": Part("cpu.cgroup_periods"),
    b"nr_throttled": Part("cpu.cgroup_throttled"),
    b"throttled_usec": Part("cpu.cgroup_throttled_time", 1e-6),
}
MEMORY_STAT_V1 = {
    b"total_rss": Part("memory.cgroup_anon"),
    b"total_rss_huge": Part("memory.cgroup_anon_huge"),
    b"total_cache": Part("memory.cgroup_file"),
    b"total_pgfault": Part("memory.cgroup_page_faults"),
    b"total_pgmajfault": Part("memory.cgroup_major_faults"),
    b"hierarchical_memory_limit": Part("memory.cgroup_limit"),
}
MEMORY_STAT_V2 = {
    b"anon": Part("memory.cgroup_anon"),
    b"anon_thp": Part("memory.cgroup_anon_huge"),
    b"file": Part("memory.cgroup_file"),
    b"pgfault": Part("memory.cgroup_page_faults"),
    b"pgmajfault": Part("memory.cgroup_major_faults"),
}

_EQUALS = bytes.maketrans(b"=", b" ")


def parse_cgroup_cpu(text: Text, version: int, cgroup: str, identity: str) -> Iterator[Reading]:
    """Yield what ``cpu.stat`` tells: throttling, and in version 2 the CPU time. Times in seconds."""
    return parse_keyed(text, CPU_STAT_V1 if version == 1 else CPU_STAT_V2, (("cgroup", cgroup),), identity)


def parse_cgroup_memory(text: Text, version: int, cgroup: str, identity: str) -> Iterator[Reading]:
    """Yield what ``memory.stat`` tells, in bytes; the limit of version 1, which is in there, too."""
    return parse_keyed(text, MEMORY_STAT_V1 if version == 1 else MEMORY_STAT_V2, (("cgroup", cgroup),), identity)


def parse_single(text: Text, metric: str, scale: float, cgroup: str, identity: str) -> Iterator[Reading]:
    """Yield the one number of a file such as ``cpuacct.usage``; nothing for a word such as ``max``."""
    lines = list(text.lines())
    if len(lines) == 1 and len(lines[0].fields) == 1 and (number := lines[0].number(0)) is not None:
        yield Reading(Channel(metric, (("cgroup", cgroup),)), (number,), scale, identity)


def parse_cgroup_numa(text: Text, version: int, page_bytes: int, cgroup: str, identity: str) -> Iterator[Reading]:
    """Yield the anonymous memory of a cgroup on each node, in bytes.

    Args:
        page_bytes: unit of version 1; version 2 counts bytes.
    """
    wanted = b"hierarchical_anon" if version == 1 else b"anon"
    scale = float(page_bytes) if version == 1 else 1.0
    for line in text.lines(lambda raw: raw.translate(_EQUALS)):
        if line.fields[0] != wanted:
            continue
        for index, field in enumerate(line.fields):
            number = line.number(index + 1)
            if number is not None and field[:1] == b"N" and field[1:].isdigit():
                labels = (("cgroup", cgroup), ("node", name_of(field[1:])))
                yield Reading(Channel("interconnect.cgroup_node_anon", labels), (number,), scale, identity)
