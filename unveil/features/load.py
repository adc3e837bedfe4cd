"""Load: which features tell how much is done, and by whom, rather than how well.

A host that is busier than ever is not a slower one: a neighbour's job changes its CPU time, its page faults, its
traffic and the pressure on its CPUs, and nothing is wrong. What tells of inefficiency is what work has to put up with
(stalls, throttling, losses, retries, misses) and by which way it is done (huge pages, locality, softirqs that
offloading spares). A detector that looks for changes which stay leaves the load out: on recorded faults the same
detector found 46 % (F1) with it and 87 % without, at the same false alarms.
"""

from __future__ import annotations

LOAD = (
    # CPU time, whoever takes it, and the queue for it
    "cpu.user", "cpu.nice", "cpu.system", "cpu.idle", "cpu.iowait", "cpu.irq", "cpu.steal", "cpu.busy",
    "cpu.kernel_share", "cpu.running", "cpu.psi_", "cpu.run_delay", "cpu.cgroup_usage", "cpu.cgroup_psi",
    "cpu.cgroup_quota_share", "cpu.package_power", "cpu.watcher",
    # events that come with the work
    "cpu.context_switches", "cpu.forks", "cpu.interrupts", "cpu.device_irqs", "cpu.ipi_", "cpu.softirq.",
    "cpu.softirq_hi", "cpu.softirq_imbalance", "cpu.softirq_timer", "cpu.softirq_sched", "cpu.softirq_rcu",
    "cpu.softirq_hrtimer", "cpu.softirq_net_rx", "cpu.softirq_block", "cpu.softirq_irq_poll",
    # memory: how much of it, how often new, how much of it dirty
    "memory.available", "memory.anon_huge_share", "memory.file_huge_share", "memory.page_tables_share",
    "memory.page_faults", "memory.cgroup_page_faults", "memory.cgroup_limit_share", "memory.node_free_share",
    "memory.page_in", "memory.page_out", "memory.dirt", "memory.writ", "memory.refault_file",
    "memory.thp_fault_share", "memory.thp_collapse_alloc",
    "interconnect.numa_hit", "interconnect.numa_local", "interconnect.numa_pte_updates",
    "interconnect.numa_hint_faults", "interconnect.pcie_to_network",
    # traffic and requests
    "network.rx_bytes", "network.tx_bytes", "network.rx_packet", "network.tx_packet", "network.rx_utilisation",
    "network.tx_utilisation", "network.rdma_rx_bytes", "network.rdma_tx_bytes", "network.tcp_in_segs",
    "network.tcp_out_segs", "network.softirqs_per_packet", "network.interrupts_per_packet",
    # within one host segments overtake each other where several CPUs carry them; what was lost is sent again
    "network.cgroup_tcp_ofo_queue",
    "storage.read", "storage.write", "storage.disk_utilisation",
    # what GPUs do
    "gpu.util", "gpu.memory_util", "gpu.sm_clock_average", "gpu.sm_clock_highest", "gpu.sm_clock_lowest",
    "gpu.memory_clock", "gpu.energy", "gpu.power_average", "gpu.power_highest", "gpu.power_lowest",
    "gpu.power_imbalance", "gpu.power_to_limit", "gpu.power_per_util", "gpu.temperature", "gpu.pcie_rx", "gpu.pcie_tx",
)  # fmt: skip
"""Beginnings of the names of such features."""

WORK = {"cpu.work_moved.rate": 0.03}
"""Features that tell how much gets done, and are no load: less of it is worse, unless less was wanted. Each with its
least sigma in log1p units: what is a twentieth slower has to be told."""
READS = {"storage.read_bytes.rate": 1e6}
"""What tells how much gets done, too, where more is read from disks than sent. It stays load: it falls as well where
files come from the page cache. Each with the least a second that is work, and no heartbeat."""
FRESH = ("memory.page_faults.rate", "memory.thp_fault_alloc.rate")
"""What comes with work that needs memory for what it reads, wherever that comes from."""
INSTEAD = {"memory.thp_fault_alloc.rate": "memory.page_faults.rate"}
"""What comes with the work, so that less of it means something only where there is more of another instead."""
QUEUES = ("cpu.psi_some.rate",)
"""What rises with the load as well, and tells how well the work is done only where less of it gets done."""
BUSY = ("cpu.busy.rate",)
"""What falls where less is wanted of the host."""
WAITS = ("cpu.psi_some.rate", "memory.psi_some.rate", "storage.psi_some.rate")
"""What rises where work is kept waiting."""
COUNTS = frozenset(("1/s", "tasks", "requests"))
"""Units of features that count; the first of something is no change yet."""


def is_load(name: str) -> bool:
    """Return whether a feature tells how much is done."""
    return name.startswith(LOAD) and name not in QUEUES
