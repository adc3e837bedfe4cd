"""FAULTS: silent inefficiencies that can be laid on a host and taken away again. Nothing fails; it is only slower.

Each is a context manager over a place and what the workload uses of it: entering lays it on, leaving puts every value
back that was there before, also when it was only half laid on. A kernel that does not permit one, or a workload that
uses nothing of what it limits, raises `ImpossibleError` with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.lab import in_cgroups, on_host, on_links
from unveil.lab.neighbours import busy_but_healthy, cpu_hogs, memory_hogs, nobody

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from unveil.lab.place import Place
    from unveil.lab.uses import Uses

HEALTHY = ("none", "busy_but_healthy")
"""Kinds of time that are laid on like a fault and are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        title: what an operator would call it.
        label: fingerprint that shall find it; empty when the knowledge base has none.
        subsystem: where it is, for a fault without a label.
    """

    title: str
    label: str
    inject: Callable[[Place, Uses], AbstractContextManager[None]]
    subsystem: str = ""


FAULTS = {
    "none": Fault(title="nothing: a healthy run", label="", inject=nobody),
    "busy_but_healthy": Fault(title="a modest neighbour that comes and goes", label="", inject=busy_but_healthy),
    "huge_pages_off": Fault(
        title="transparent huge pages turned off", label="reduced_huge_page_coverage", inject=on_host.huge_pages_off
    ),
    "cpu_quota": Fault(
        title="a CFS quota of 45 % of what is used", label="cgroup_cpu_quota_throttling", inject=in_cgroups.cpu_quota
    ),
    "io_throttle": Fault(
        title="block I/O limited to 40 % of what is used", label="", inject=in_cgroups.io_throttle,
        subsystem="storage",
    ),
    "memory_limit": Fault(
        title="memory limited to little more than what is not cache", label="", inject=in_cgroups.memory_limit,
        subsystem="memory",
    ),
    "small_dirty_limit": Fault(
        title="2 MB may be dirty", label="dirty_writeback_stall", inject=on_host.small_dirty_limit
    ),
    "small_read_ahead": Fault(
        title="no read-ahead but a page", label="", inject=on_host.small_read_ahead, subsystem="storage"
    ),
    "interrupts_on_one_cpu": Fault(
        title="interrupts and packets on CPU 0 only", label="", inject=on_links.interrupts_on_one_cpu,
        subsystem="network",
    ),
    "offloads_off": Fault(
        title="segmentation offloads off", label="", inject=on_links.offloads_off, subsystem="network"
    ),
    "slow_link": Fault(
        title="links limited to 70 % of their traffic", label="", inject=on_links.slow_link, subsystem="network"
    ),
    "packet_loss": Fault(
        title="2 % of packets lost", label="", inject=on_links.packet_loss, subsystem="network"
    ),
    "cpu_neighbour": Fault(title="a busy neighbour on every CPU", label="", inject=cpu_hogs, subsystem="cpu"),
    "memory_neighbour": Fault(
        title="a memory-bandwidth hog on every CPU", label="", inject=memory_hogs, subsystem="memory"
    ),
    "caches_dropped": Fault(
        title="page cache dropped each second", label="", inject=on_host.caches_dropped, subsystem="memory"
    ),
    "memory_compacted": Fault(
        title="all memory compacted, over and over", label="", inject=on_host.memory_compacted, subsystem="memory"
    ),
}  # fmt: skip
"""By name; one entry a fault."""
