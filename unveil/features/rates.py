"""Rates: how fast each counter counts, for the host and for its parts."""

from __future__ import annotations

from unveil.features.families import device_irqs, plain
from unveil.features.feature import SHARE, Channels, Feature, Formula, Stat, Trouble, feature
from unveil.records.entity import EntityKind

_RATE = (Stat.RATE,)
_EITHER = Trouble.EITHER
_NIC, _DISK = (EntityKind.NIC,), (EntityKind.DISK,)

_PRESSURE = {
    "psi_some": "share of time in which some task waited for {}",
    "psi_full": "share of time in which all tasks waited for {}",
}
_PACKETS = {"bytes": "bytes {}", "packets": "packets {}"}
_LOSSES = {"errors": "packets {} in error", "dropped": "packets dropped that should have been {}"}
_TRAFFIC = {
    f"{way}_{name}": text.format({"rx": "received", "tx": "sent"}[way])
    for way in ("rx", "tx")
    for name, text in _PACKETS.items()
}
_LOST = {
    f"{way}_{name}": text.format({"rx": "received", "tx": "sent"}[way])
    for way in ("rx", "tx")
    for name, text in _LOSSES.items()
}
_BLOCK_IO = {
    "reads": "reads completed",
    "writes": "writes completed",
    "read_bytes": "bytes read",
    "write_bytes": "bytes written",
}
_SOFTIRQS = "HI TIMER NET_TX NET_RX BLOCK IRQ_POLL TASKLET SCHED HRTIMER RCU"
_IPIS = {
    "RES": "wake-ups of other CPUs (rescheduling interrupts)",
    "CAL": "functions run on other CPUs",
    "TLB": "address translations revoked on other CPUs",
    "LOC": "local timer interrupts",
    "TRM": "thermal interrupts",
    "THR": "thresholds of machine checks reached",
}

# What explains a finding and is none by itself: fingerprints may ask for it, the detectors do not see it.
_MEMORY_BY_THE_WAY = {
    "thp_split_failed": "huge pages that could not be split",
    "thp_split_pmd": "huge mappings split into small ones",
    "thp_deferred_split": "huge pages put aside for splitting, partly unused",
    "thp_swap_out": "huge pages swapped out in one piece",
    "thp_swap_out_fallback": "huge pages split to be swapped out",
    "thp_file_alloc": "huge pages given to shared memory and files",
    "thp_file_fallback": "shared memory that wanted a huge page and got small ones",
    "compact_isolated": "pages taken aside by compaction",
    "compact_scanned": "pages that compaction looked at",
    "compact_wakeups": "times the compaction daemon was woken",
    "allocated": "pages given out",
    "freed": "pages given back",
    "activated": "pages found to be in use",
    "deactivated": "pages found to be out of use",
    "kswapd_runs": "times kswapd began to reclaim",
    "kswapd_low_hits": "times memory ran low again at once after kswapd",
    "slab_scanned": "kernel objects that reclaim looked at",
    "reclaim_writeback": "pages being written back that reclaim met",
    "balloon_deflate": "pages given back to this virtual machine",
    "swap_read_ahead": "pages read from swap in advance",
    "zswap_in": "pages taken from compressed swap",
    "zswap_out": "pages put into compressed swap",
    "huge_pool_fail": "pages for the pool of explicit huge pages that were not to be had",
}
_MOVES_BY_THE_WAY = {
    "numa_interleave": "pages allocated on nodes in turn",
    "numa_huge_pte_updates": "huge translations marked to find out who uses them",
    "pgmigrate_success": "pages moved, for whatever reason",
    "zone_reclaim_success": "reclaims on a node that made room",
    "pgpromote_success": "pages moved from slow memory to fast",
}
_NETWORK_BY_THE_WAY = {
    "tcp_attempt_fails": "TCP connections that were not made",
    "tcp_resets": "TCP connections that were cut",
    "tcp_out_resets": "TCP segments sent that cut or refuse a connection",
    "tcp_listen_overflows": "TCP connections that met a full accept queue",
    "tcp_syn_drops": "requests for TCP connections dropped for a full queue",
    "tcp_window_drops": "TCP segments dropped as the window was shut",
    "tcp_window_shut": "times a TCP receiver here shut its window",
    "tcp_collapsed": "TCP segments squeezed together for want of buffer",
    "tcp_pruned": "TCP receive queues cleared for want of buffer",
    "tcp_memory_aborts": "TCP connections cut for want of memory",
    "tcp_timeout_aborts": "TCP connections given up after too many timeouts",
    "ip_in_discards": "packets received and dropped for want of memory",
    "ip_out_discards": "packets dropped that should have been sent",
    "ip_reassembly_fails": "packets that could not be put together",
    "udp_no_ports": "UDP datagrams that nobody waited for",
    "udp_sndbuf_errors": "UDP datagrams not sent for a full send buffer",
}
_NETWORK_WORK = {
    "tcp_active_opens": "TCP connections opened from here",
    "tcp_passive_opens": "TCP connections opened from elsewhere",
    "udp_in_datagrams": "UDP datagrams delivered",
    "udp_out_datagrams": "UDP datagrams sent",
}

HOST_RATES: tuple[Feature, ...] = (
    *plain(
        "cpu",
        _RATE,
        "1/s",
        {
            "context_switches": "context switches",
            "forks": "processes and threads begun",
            "interrupts": "interrupts",
        },
        trouble=_EITHER,
    ),
    *plain("cpu", _RATE, "1/s", {"watcher_missed": "ticks that the watcher missed"}),
    *(
        feature_
        for room, what in (("cpu", "a CPU"), ("memory", "memory"), ("storage", "I/O"))
        for feature_ in plain(room, _RATE, SHARE, {name: text.format(what) for name, text in _PRESSURE.items()})
    ),
    *(
        feature(
            f"cpu.softirq_{vector.lower()}.rate",
            f"{vector} softirqs",
            Formula(numerator=(Channels(metric="cpu.softirqs", stat=Stat.RATE, where=(("vector", vector),)),)),
            unit="1/s",
            trouble=_EITHER,
        )
        for vector in _SOFTIRQS.split()
    ),
    *(
        feature(
            f"cpu.ipi_{vector.lower()}.rate",
            meaning,
            Formula(numerator=(Channels(metric="cpu.ipi", stat=Stat.RATE, where=(("vector", vector),)),)),
            unit="1/s",
            trouble=_EITHER,
        )
        for vector, meaning in _IPIS.items()
    ),
    feature(
        "cpu.device_irqs.rate",
        "interrupts of devices",
        Formula(numerator=(device_irqs(),)),
        unit="1/s",
        trouble=_EITHER,
    ),
    *plain(
        "memory",
        _RATE,
        "1/s",
        {
            "page_faults": "page faults",
            "page_in": "kilobytes paged in from disks",
            "page_out": "kilobytes paged out to disks",
            "thp_fault_alloc": "huge pages given out on a fault",
            "thp_collapse_alloc": "huge pages made from small ones",
            "compact_success": "compactions that made a huge page possible",
            "dirtied": "pages made dirty",
            "written": "pages written back",
        },
        trouble=_EITHER,
    ),
    *plain(
        "memory",
        _RATE,
        "1/s",
        {
            "major_faults": "page faults that had to wait for a disk",
            "pgscan": "pages looked at for reclaim",
            "pgsteal": "pages reclaimed",
            "alloc_stall": "allocations that had to reclaim by themselves",
            "swap_in": "pages swapped in",
            "swap_out": "pages swapped out",
            "thp_fault_fallback": "faults that got small pages for want of a huge one",
            "thp_split": "huge pages split",
            "compact_stall": "allocations that had to compact by themselves",
            "compact_fail": "compactions in vain",
            "oom_kill": "processes killed for want of memory",
            "refault_anon": "pages swapped in soon after they were reclaimed",
            "refault_file": "file pages read again soon after they were reclaimed",
            "thp_collapse_failed": "huge pages that khugepaged could not get",
            "throttled_written": "pages written while reclaim waited for them",
            "balloon_inflate": "pages taken from this virtual machine by its host",
            "cache_drops": "times somebody dropped caches by hand",
        },
    ),
    *plain("memory", _RATE, "1/s", _MEMORY_BY_THE_WAY, trouble=_EITHER, detect=False),
    *plain(
        "interconnect",
        _RATE,
        "1/s",
        {
            "numa_hit": "pages allocated on the wanted node",
            "numa_local": "pages allocated on the node of the CPU that asked",
            "numa_pte_updates": "translations marked to find out who uses a page",
            "numa_hint_faults": "faults on pages so marked",
            "numa_hint_faults_local": "such faults that found the page on their own node",
        },
        trouble=_EITHER,
    ),
    *plain(
        "interconnect",
        _RATE,
        "1/s",
        {
            "numa_miss": "pages allocated on another node than wanted",
            "numa_foreign": "pages wanted on a node and allocated elsewhere",
            "numa_other": "pages allocated on another node than that of the CPU that asked",
            "numa_pages_migrated": "pages moved between nodes by the kernel",
            "pgmigrate_fail": "pages that could not be moved",
            "zone_reclaim_failed": "reclaims on a node that made no room",
            "pgdemote": "pages moved from fast memory to slow",
        },
    ),
    *plain("interconnect", _RATE, "1/s", _MOVES_BY_THE_WAY, trouble=_EITHER, detect=False),
    *plain("network", _RATE, "1/s", _TRAFFIC, name="{}_total", over=_NIC, trouble=_EITHER),
    *plain("network", _RATE, "1/s", _LOST, name="{}_total", over=_NIC),
    *plain(
        "network",
        _RATE,
        "1/s",
        {"tcp_in_segs": "TCP segments received", "tcp_out_segs": "TCP segments sent"},
        trouble=_EITHER,
    ),
    *plain(
        "network",
        _RATE,
        "1/s",
        {
            "tcp_retrans": "TCP segments sent again",
            "tcp_in_errors": "TCP segments received damaged",
            "tcp_timeouts": "TCP retransmission timers that ran out",
            "tcp_listen_drops": "connections dropped by a full accept queue",
            "tcp_backlog_drop": "TCP segments dropped by a full backlog",
            "tcp_ofo_queue": "TCP segments received out of order",
            "tcp_fast_retrans": "TCP segments sent again before the timer ran out",
            "udp_in_errors": "UDP datagrams lost on receipt",
            "udp_rcvbuf_errors": "UDP datagrams lost to a full receive buffer",
            "tcp_lost_retrans": "TCP segments sent again and lost again",
            "tcp_syn_retrans": "requests for TCP connections sent again",
            "tcp_receive_drops": "TCP segments dropped by a full receive queue",
            "tcp_memory_pressures": "times TCP's memory ran short",
            "ip_congestion_marks": "packets received with a mark of congestion",
        },
    ),
    *plain("network", _RATE, "1/s", _NETWORK_BY_THE_WAY, detect=False),
    *plain("network", _RATE, "1/s", _NETWORK_WORK, trouble=_EITHER, detect=False),
    *plain("storage", _RATE, "1/s", _BLOCK_IO, over=_DISK, trouble=_EITHER),
    *plain(
        "storage",
        _RATE,
        "requests",
        {"read_time": "reads under way", "write_time": "writes under way"},
        over=_DISK,
    ),
    *plain("storage", _RATE, "requests", {"queue_time": "requests under way at all disks"}, over=_DISK),
    *plain(
        "storage",
        _RATE,
        "1/s",
        {
            "read_merges": "reads joined to others",
            "write_merges": "writes joined to others",
            "discards": "discards completed",
            "discard_bytes": "bytes discarded",
            "flushes": "flushes of disks' caches",
        },
        over=_DISK,
        trouble=_EITHER,
        detect=False,
    ),
    *plain(
        "gpu", _RATE, "W", {"energy": "energy of all GPUs"}, name="{}_total", over=(EntityKind.GPU,), trouble=_EITHER
    ),
)

PART_RATES: tuple[Feature, ...] = (
    *plain("network", _RATE, "1/s", _TRAFFIC, over=_NIC, each=EntityKind.NIC, trouble=_EITHER),
    *plain("network", _RATE, "1/s", _LOST, over=_NIC, each=EntityKind.NIC),
    *plain("storage", _RATE, "1/s", _BLOCK_IO, name="disk_{}", over=_DISK, each=EntityKind.DISK, trouble=_EITHER),
    *plain(
        "storage",
        _RATE,
        "requests",
        {"queue_time": "requests under way at the disk"},
        name="disk_{}",
        over=_DISK,
        each=EntityKind.DISK,
    ),
    *plain(
        "cpu",
        _RATE,
        "cores",
        {"cgroup_usage": "CPUs in use", "cgroup_throttled_time": "CPU time waited for because of the quota"},
        over=(EntityKind.CGROUP,),
        each=EntityKind.CGROUP,
    ),
    *plain(
        "cpu",
        _RATE,
        "1/s",
        {"cgroup_periods": "periods of the quota", "cgroup_throttled": "periods in which the quota ran out"},
        over=(EntityKind.CGROUP,),
        each=EntityKind.CGROUP,
    ),
    *plain(
        "memory",
        _RATE,
        "1/s",
        {"cgroup_page_faults": "page faults", "cgroup_major_faults": "page faults that had to wait for a disk"},
        over=(EntityKind.CGROUP,),
        each=EntityKind.CGROUP,
    ),
    *plain(
        "gpu", _RATE, "W", {"energy": "power, from the energy counter"}, over=(EntityKind.GPU,), each=EntityKind.GPU
    ),
    *plain(
        "gpu", _RATE, "1/s", {"ecc_corrected": "memory errors corrected"}, over=(EntityKind.GPU,), each=EntityKind.GPU
    ),
)
