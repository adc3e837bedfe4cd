"""Settings of the kernel that hold for the whole host: huge pages, writeback, NUMA, network, scheduling.

Sources: Documentation/admin-guide/mm/transhuge.rst, sysctl/vm.rst, sysctl/kernel.rst, sysctl/net.rst.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.sheet import chosen, number

if TYPE_CHECKING:
    from unveil.host.facts.sheet import FactSheet

_THP = "sys/kernel/mm/transparent_hugepage"
_CLOCK = "sys/devices/system/clocksource/clocksource0"

# fact → sysctl, all of them numbers
SYSCTLS: dict[str, str] = {
    "memory.swappiness": "vm.swappiness",
    "memory.dirty_ratio": "vm.dirty_ratio",
    "memory.dirty_background_ratio": "vm.dirty_background_ratio",
    "memory.dirty_bytes": "vm.dirty_bytes",
    "memory.dirty_background_bytes": "vm.dirty_background_bytes",
    "memory.dirty_expire": "vm.dirty_expire_centisecs",
    "memory.dirty_writeback": "vm.dirty_writeback_centisecs",
    "memory.min_free": "vm.min_free_kbytes",
    "memory.watermark_scale": "vm.watermark_scale_factor",
    "memory.overcommit": "vm.overcommit_memory",
    "memory.huge_pages": "vm.nr_hugepages",
    "memory.compaction_proactiveness": "vm.compaction_proactiveness",
    "interconnect.numa_balancing": "kernel.numa_balancing",
    "interconnect.zone_reclaim_mode": "vm.zone_reclaim_mode",
    "cpu.autogroup": "kernel.sched_autogroup_enabled",
    "network.somaxconn": "net.core.somaxconn",
    "network.busy_poll": "net.core.busy_poll",
    "network.busy_read": "net.core.busy_read",
    "network.netdev_budget": "net.core.netdev_budget",
    "network.netdev_budget_usecs": "net.core.netdev_budget_usecs",
    "network.netdev_max_backlog": "net.core.netdev_max_backlog",
    "network.rmem_max": "net.core.rmem_max",
    "network.wmem_max": "net.core.wmem_max",
    "network.rps_flow_entries": "net.core.rps_sock_flow_entries",
    "network.conntrack_max": "net.netfilter.nf_conntrack_max",
}

# fact → sysctl of three numbers (least, default, most), the last of which it is
_SPANS: dict[str, str] = {"network.tcp_receive_max": "net.ipv4.tcp_rmem"}

# fact → file of one number
_NUMBERS: dict[str, str] = {
    "memory.khugepaged_defrag": f"{_THP}/khugepaged/defrag",
    "memory.khugepaged_scan_sleep": f"{_THP}/khugepaged/scan_sleep_millisecs",
    "memory.khugepaged_pages_to_scan": f"{_THP}/khugepaged/pages_to_scan",
}

# fact → file of a choice, the one in force in brackets
_CHOICES: dict[str, str] = {
    "memory.thp_enabled": f"{_THP}/enabled",
    "memory.thp_defrag": f"{_THP}/defrag",
    "memory.thp_shmem": f"{_THP}/shmem_enabled",
    "cpu.clocksource": f"{_CLOCK}/current_clocksource",
}


def sysctl_path(name: str) -> str:
    """Return the file of a sysctl, relative to the root: ``vm.dirty_bytes`` → ``proc/sys/vm/dirty_bytes``."""
    return f"proc/sys/{name.replace('.', '/')}"


def read_settings(sheet: FactSheet) -> None:
    """Read every host-wide setting, with its address and its raw content."""
    for fact, name in SYSCTLS.items():
        sheet.read(fact, sysctl_path(name), number, setting=f"sysctl:{name}")
    for fact, name in _SPANS.items():
        sheet.read(fact, sysctl_path(name), lambda text: number(text.rpartition("\t")[2]), setting=f"sysctl:{name}")
    for fact, path in _NUMBERS.items():
        sheet.read(fact, path, number, setting=f"file:/{path}")
    for fact, path in _CHOICES.items():
        sheet.read(fact, path, chosen, setting=f"file:/{path}")
    sheet.read("cpu.clocksources", f"{_CLOCK}/available_clocksource", lambda text: tuple(text.split()))
