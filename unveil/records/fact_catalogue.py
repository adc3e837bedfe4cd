"""FACTS: every fact that unveil reads, by name. A table: the reader, the knowledge base and the docs all go by it.

A fact of type *list* holds texts; a *number* is a float in its unit; *text* that is a list of CPUs or nodes is in the
kernel's form (``0-3,8``). Every one can be absent, with a reason.
"""

from __future__ import annotations

from unveil.records.entity import EntityKind
from unveil.records.fact import FactKind
from unveil.records.subsystem import Subsystem

_TEXT, _NUMBER, _BOOLEAN, _LIST = "text", "number", "boolean", "list"


def _kinds(per: EntityKind, *rows: tuple[str, str, str, str]) -> tuple[FactKind, ...]:
    """Return the kinds of rows of (name, type, unit, meaning); the subsystem is the first word of the name."""
    return tuple(
        FactKind(name=name, subsystem=Subsystem(name.partition(".")[0]), per=per, type=kind, unit=unit, meaning=meaning)
        for name, kind, unit, meaning in rows
    )


_HOST = _kinds(
    EntityKind.HOST,
    ("cpu.count", _NUMBER, "CPUs", "CPUs that are present, offline ones included"),
    ("cpu.online_count", _NUMBER, "CPUs", "CPUs that are online"),
    ("cpu.offline", _TEXT, "", "CPUs that are present and offline"),
    ("cpu.model", _TEXT, "", "model of the first CPU"),
    ("cpu.kernel", _TEXT, "", "release of the kernel"),
    ("cpu.boot_parameters", _LIST, "", "what the kernel was told at boot, as far as it changes how fast the host is"),
    ("cpu.hypervisor", _TEXT, "", "the hypervisor below this host; 'none' on bare metal"),
    ("cpu.managers", _LIST, "", "running daemons that change settings by themselves"),
    ("cpu.cgroup_count", _NUMBER, "cgroups", "cgroups of the host down to containers, virtual machines and jobs"),
    ("cpu.smt", _TEXT, "", "simultaneous multithreading: on, off, forceoff, notsupported"),
    ("cpu.isolated", _TEXT, "", "CPUs kept from the scheduler at boot"),
    ("cpu.clocksource", _TEXT, "", "what the kernel tells time by"),
    ("cpu.clocksources", _LIST, "", "clock sources the kernel would accept"),
    ("cpu.frequency_driver", _TEXT, "", "driver that sets the frequency: intel_pstate, acpi-cpufreq, …"),
    ("cpu.frequency_rated", _NUMBER, "MHz", "frequency that the first CPU is rated for, without turbo where known"),
    ("cpu.frequency_limit_share", _NUMBER, "1", "lowest limit of a CPU's frequency against what it is rated for"),
    ("cpu.governors", _LIST, "", "governors of frequency in use"),
    ("cpu.energy_preference", _TEXT, "", "what the hardware shall prefer between speed and energy, of the first CPU"),
    ("cpu.steered", _LIST, "", "CPUs whose frequency the kernel steers"),
    ("cpu.power_limit_share", _NUMBER, "1", "lowest power limit of a CPU package against the most its maker allows"),
    ("cpu.sleep_latency", _NUMBER, "us", "time to leave the deepest idle state that is allowed"),
    ("cpu.sleep_steered", _LIST, "", "CPUs that can be told how long leaving an idle state may take"),
    ("cpu.sleep_limited", _BOOLEAN, "", "every one of them has been told"),
    ("cpu.autogroup", _NUMBER, "", "1 when sessions are scheduled as groups"),
    ("memory.total", _NUMBER, "bytes", "memory the kernel manages"),
    ("memory.thp_enabled", _TEXT, "", "transparent huge pages: always, madvise or never"),
    ("memory.thp_defrag", _TEXT, "", "when a page fault waits for compaction"),
    ("memory.thp_shmem", _TEXT, "", "transparent huge pages of shared memory"),
    ("memory.khugepaged_defrag", _NUMBER, "", "1 when khugepaged may compact memory"),
    ("memory.khugepaged_scan_sleep", _NUMBER, "ms", "pause of khugepaged between two scans"),
    ("memory.khugepaged_pages_to_scan", _NUMBER, "pages", "pages that khugepaged looks at in one scan"),
    ("memory.swappiness", _NUMBER, "", "how readily anonymous memory is swapped, 0 to 200"),
    ("memory.dirty_ratio", _NUMBER, "%", "share of available memory at which writers are throttled; 0 when in bytes"),
    ("memory.dirty_background_ratio", _NUMBER, "%", "share at which writeback begins; 0 when in bytes"),
    ("memory.dirty_bytes", _NUMBER, "bytes", "dirty memory at which writers are throttled; 0 when as a ratio"),
    ("memory.dirty_background_bytes", _NUMBER, "bytes", "dirty memory at which writeback begins; 0 when as a ratio"),
    ("memory.dirty_expire", _NUMBER, "cs", "age at which dirty memory must be written"),
    ("memory.dirty_writeback", _NUMBER, "cs", "pause between two rounds of writeback"),
    ("memory.min_free", _NUMBER, "kB", "memory kept free for the kernel"),
    ("memory.watermark_scale", _NUMBER, "1/10000", "distance of the watermarks of reclaim"),
    ("memory.overcommit", _NUMBER, "", "0 heuristic, 1 always, 2 never beyond the limit"),
    ("memory.huge_pages", _NUMBER, "pages", "size of the pool of explicit huge pages"),
    ("memory.compaction_proactiveness", _NUMBER, "", "how hard memory is compacted in the background, 0 to 100"),
    ("memory.dying_cgroups", _NUMBER, "cgroups", "deleted cgroups that memory still belongs to"),
    ("storage.filesystem_used", _NUMBER, "1", "share of room in use on the fullest file system on a disk"),
    ("storage.filesystem_files", _NUMBER, "1", "share of files (inodes) in use on the one with the fewest left"),
    ("storage.filesystem_fullest", _TEXT, "", "where the fullest file system is mounted"),
    ("storage.discarding", _NUMBER, "file systems", "file systems that discard blocks as soon as they are freed"),
    ("storage.nfs_read_ahead", _NUMBER, "kB", "how far NFS reads ahead, on the mount where it is least"),
    ("storage.nfs_mounts", _LIST, "", "device numbers of NFS mounts"),
    ("interconnect.numa_balancing", _NUMBER, "", "automatic NUMA balancing: a mask, 0 is off"),
    ("interconnect.zone_reclaim_mode", _NUMBER, "", "a mask; not 0 reclaims locally before memory is taken elsewhere"),
    ("interconnect.node_count", _NUMBER, "nodes", "NUMA nodes that are online"),
    ("interconnect.cpu_nodes", _LIST, "", "nodes that have online CPUs"),
    ("interconnect.memory_nodes", _LIST, "", "nodes that have memory"),
    ("network.somaxconn", _NUMBER, "", "longest queue of connections to accept"),
    ("network.busy_poll", _NUMBER, "us", "how long poll and select spin for packets"),
    ("network.busy_read", _NUMBER, "us", "how long a read spins for packets"),
    ("network.netdev_budget", _NUMBER, "packets", "packets handled in one softirq round"),
    ("network.netdev_budget_usecs", _NUMBER, "us", "longest softirq round"),
    ("network.netdev_max_backlog", _NUMBER, "packets", "longest input queue of a CPU"),
    ("network.rmem_max", _NUMBER, "bytes", "largest receive buffer a program may ask for"),
    ("network.wmem_max", _NUMBER, "bytes", "largest send buffer a program may ask for"),
    ("network.rps_flow_entries", _NUMBER, "flows", "size of the table that steers flows to their readers"),
    ("network.fastest_link", _NUMBER, "Mbit/s", "speed of the fastest link of a NIC that is a device of its own"),
    ("network.conntrack_max", _NUMBER, "connections", "connections that can be tracked"),
    ("network.tcp_receive_max", _NUMBER, "bytes", "largest receive buffer that TCP gives a connection by itself"),
)

_NODE = _kinds(
    EntityKind.NODE,
    ("interconnect.node_cpus", _TEXT, "", "online CPUs of the node; empty for a node of memory only"),
    ("interconnect.node_memory", _NUMBER, "bytes", "memory of the node"),
    ("interconnect.node_distances", _LIST, "", "distance to each online node in ascending order of id; 10 is itself"),
    ("interconnect.node_nearest_cpus", _TEXT, "", "CPUs of the node, or of the nearest node that has any"),
)

_CPU = _kinds(
    EntityKind.CPU,
    ("cpu.node", _NUMBER, "", "the node the CPU belongs to"),
    ("cpu.governor", _TEXT, "", "what decides the CPU's frequency"),
)

_NIC = _kinds(
    EntityKind.NIC,
    ("network.nic_node", _NUMBER, "", "the node the NIC is attached to"),
    ("network.nic_local_cpus", _TEXT, "", "online CPUs next to the NIC"),
    ("network.nic_irqs", _LIST, "", "interrupts of the NIC that are in use"),
    ("network.nic_irqs_movable", _LIST, "", "those of them that the kernel is not known to hold in place"),
    ("network.nic_irq_places", _LIST, "", "a CPU next to the NIC for each of these, dealt out"),
    ("network.nic_irq_managed", _LIST, "", "interrupts the kernel does not let anyone move"),
    ("network.nic_irq_remote_share", _NUMBER, "1", "share of its interrupts that no CPU next to the NIC can get"),
    ("network.nic_driver", _TEXT, "", "driver of the device"),
    ("network.nic_physical", _BOOLEAN, "", "a device of its own, not stacked on or standing for another one"),
    ("network.nic_speed", _NUMBER, "Mbit/s", "speed of the link"),
    ("network.nic_pci", _TEXT, "", "address of the PCI function behind the NIC"),
    ("network.nic_mtu", _NUMBER, "bytes", "largest packet"),
    ("network.nic_state", _TEXT, "", "operational state: up, down, dormant, unknown"),
    ("network.nic_rx_queues", _NUMBER, "queues", "receive queues"),
    ("network.nic_tx_queue_length", _NUMBER, "packets", "packets that may wait to be sent, per queue"),
    ("network.nic_duplex", _TEXT, "", "full, half or unknown"),
    ("network.nic_speed_max", _NUMBER, "Mbit/s", "fastest link that the NIC could have"),
    ("network.nic_speed_share", _NUMBER, "1", "speed of the link against the fastest that the NIC could have"),
    ("network.nic_rx_ring", _NUMBER, "packets", "received packets that may wait, per queue"),
    ("network.nic_rx_ring_max", _NUMBER, "packets", "the most that the NIC could let wait"),
    ("network.nic_tx_ring", _NUMBER, "packets", "packets that may wait to be sent by the NIC, per queue"),
    ("network.nic_tx_ring_max", _NUMBER, "packets", "the most that the NIC could let wait to be sent"),
    ("network.nic_pause_rx", _BOOLEAN, "", "whether the NIC stops sending when the other side asks for a pause"),
    ("network.nic_pause_tx", _BOOLEAN, "", "whether the NIC asks the other side for a pause when its ring is full"),
    ("network.nic_gro", _BOOLEAN, "", "whether received packets of one flow are joined"),
    ("network.nic_tso", _BOOLEAN, "", "whether the NIC cuts what TCP sends into packets"),
    ("network.nic_irq_cpus", _NUMBER, "CPUs", "CPUs that its interrupts in use go to"),
    ("network.nic_local_mask", _TEXT, "", "online CPUs next to the NIC, as a mask"),
    ("network.nic_rps_cpus", _NUMBER, "CPUs", "CPUs that its received packets are spread over by the kernel; 0 is off"),
    ("network.nic_rx_queue_names", _LIST, "", "names of its receive queues"),
    ("network.nic_tx_queue_names", _LIST, "", "names of its transmit queues"),
    ("network.nic_tx_queues", _NUMBER, "queues", "transmit queues"),
    ("network.nic_xps_cpus", _NUMBER, "CPUs", "CPUs that are told which of its queues to send through; 0 is none"),
    ("network.nic_xps_masks", _LIST, "", "the CPUs next to the NIC dealt out to its transmit queues, a mask for each"),
    ("network.nic_rx_usecs", _NUMBER, "us", "how long the NIC may gather packets before it interrupts"),
    ("network.nic_adaptive_rx", _BOOLEAN, "", "whether the driver sets that by itself, by the load"),
    ("network.nic_legs_down", _NUMBER, "interfaces", "legs of a bond that have no link"),
    ("network.nic_iommu", _TEXT, "", "how its memory accesses are translated: identity (not at all), DMA, DMA-FQ"),
    ("network.nic_pcie_width", _NUMBER, "lanes", "lanes of PCIe in use"),
    ("network.nic_pcie_width_max", _NUMBER, "lanes", "lanes of PCIe the device has"),
)

_IRQ = _kinds(
    EntityKind.IRQ,
    ("cpu.irq_affinity", _TEXT, "", "CPUs that may get the interrupt"),
    ("cpu.irq_effective", _TEXT, "", "CPUs that do get it"),
    ("cpu.irq_device", _TEXT, "", "the entity it belongs to, e.g. nic:eth0"),
    ("cpu.irq_action", _TEXT, "", "name that the driver gave its handler"),
)

_DISK = _kinds(
    EntityKind.DISK,
    ("storage.scheduler", _TEXT, "", "I/O scheduler; none passes requests on"),
    ("storage.read_ahead", _NUMBER, "kB", "how far a sequential reader is read ahead"),
    ("storage.nr_requests", _NUMBER, "requests", "requests that may wait per queue"),
    ("storage.rotational", _BOOLEAN, "", "whether it is made of spinning disks"),
    ("storage.wbt_latency", _NUMBER, "us", "latency that throttles writeback; 0 is off"),
    ("storage.node", _NUMBER, "", "the node the disk is attached to"),
    ("storage.size", _NUMBER, "bytes", "size of the disk"),
    ("storage.pci", _TEXT, "", "address of the PCI function behind the disk"),
    ("storage.hardware_queues", _NUMBER, "queues", "queues of requests that the hardware has"),
    ("storage.merging", _NUMBER, "", "0 joins requests wherever it can, 1 only simply, 2 not at all"),
    ("storage.completion_affinity", _NUMBER, "", "0 completes anywhere, 1 near the CPU that asked, 2 on that very CPU"),
    ("storage.largest_request", _NUMBER, "kB", "largest request"),
    ("storage.write_cache", _TEXT, "", "whether the disk's own cache must be flushed: write back, write through"),
)

_GPU = _kinds(
    EntityKind.GPU,
    ("gpu.name", _TEXT, "", "product name"),
    ("gpu.pci", _TEXT, "", "address of the PCI function"),
    ("gpu.node", _NUMBER, "", "the node the GPU is attached to"),
    ("gpu.power_limit", _NUMBER, "W", "power limit in force"),
    ("gpu.power_default", _NUMBER, "W", "power limit the vendor set"),
    ("gpu.power_max", _NUMBER, "W", "highest power limit that may be set"),
    ("gpu.power_min", _NUMBER, "W", "lowest power limit that may be set"),
    ("gpu.pids", _LIST, "", "processes that hold a context, by the host's numbers"),
    ("gpu.persistence", _BOOLEAN, "", "whether the driver stays loaded while nobody uses the GPU"),
    ("gpu.compute_mode", _TEXT, "", "who may use it: default, exclusive_process, prohibited"),
    ("gpu.bar1_total", _NUMBER, "bytes", "memory that can be mapped for others through BAR1"),
    ("gpu.mig", _BOOLEAN, "", "whether it is cut into instances"),
    ("gpu.sm_clock_max", _NUMBER, "MHz", "highest clock of the multiprocessors"),
    ("gpu.applications_clock", _NUMBER, "MHz", "clock of the multiprocessors that applications are held to"),
    ("gpu.applications_clock_share", _NUMBER, "1", "that clock against the vendor's"),
    ("gpu.applications_clocks_default", _TEXT, "", "the vendor's clocks of memory and multiprocessors: 2619,1980"),
    ("gpu.repair_pending", _BOOLEAN, "", "whether bad memory waits for a reset to be put out of use"),
    ("gpu.repair_failed", _BOOLEAN, "", "whether putting bad memory out of use has failed"),
    ("gpu.iommu", _TEXT, "", "how its memory accesses are translated: identity (not at all), DMA, DMA-FQ"),
    ("gpu.nvlink_peers", _LIST, "", "PCI addresses of what its active NVLink links lead to: GPUs or switches"),
    ("gpu.redirecting_ports", _NUMBER, "ports", "PCIe ports above it that send its peers' traffic up to the root"),
)

_CGROUP = _kinds(
    EntityKind.CGROUP,
    ("cpu.cgroup_kind", _TEXT, "", "container, vm, service, slice (it holds others), job or other"),
    ("cpu.cgroup_runtime", _TEXT, "", "what made it: docker, containerd, cri-o, podman, libvirt, systemd, slurm, …"),
    ("cpu.cgroup_name", _TEXT, "", "the name its maker chose; hostile text"),
    ("cpu.cgroup_quota", _NUMBER, "cores", "CPU time it may use"),
    ("cpu.cgroup_period", _NUMBER, "us", "period that the quota is counted in"),
    ("cpu.cgroup_burst", _NUMBER, "us", "CPU time it may save up and use beyond its quota"),
    ("cpu.cgroup_vcpus", _NUMBER, "vCPUs", "virtual CPUs of a virtual machine"),
    ("network.cgroup_taps", _LIST, "", "interfaces that carry a virtual machine's packets"),
    ("cpu.cgroup_weight", _NUMBER, "", "weight against its siblings: cpu.weight, or cpu.shares in v1"),
    ("cpu.cgroup_cpus", _TEXT, "", "CPUs it may run on"),
    ("cpu.cgroup_own_cpus", _TEXT, "", "these, where they are not all and no other workload is held to any of them"),
    ("network.cgroup_irqs", _LIST, "", "interrupts of NICs that come to its own CPUs only, and could go elsewhere"),
    ("network.cgroup_irq_places", _LIST, "", "for each a CPU next to the NIC that no workload has to itself"),
    ("network.cgroup_irq_count", _NUMBER, "interrupts", "how many these are"),
    ("gpu.cgroup_gpus", _LIST, "", "the GPUs that its processes use"),
    ("interconnect.cgroup_home_node", _NUMBER, "", "the node where its memory belongs"),
    ("interconnect.cgroup_mems", _TEXT, "", "nodes it may take memory from"),
    ("memory.cgroup_limit", _NUMBER, "bytes", "memory it may use"),
    ("memory.cgroup_high", _NUMBER, "bytes", "memory above which it is slowed down"),
    ("storage.cgroup_io_device", _TEXT, "", "number of the one disk that it is limited on, major and minor"),
    ("storage.cgroup_read_limit", _NUMBER, "bytes/s", "bytes that it may read from that disk"),
    ("storage.cgroup_write_limit", _NUMBER, "bytes/s", "bytes that it may write to that disk"),
    ("storage.cgroup_reads_limit", _NUMBER, "1/s", "reads from that disk that it may make"),
    ("storage.cgroup_writes_limit", _NUMBER, "1/s", "writes to that disk that it may make"),
)

FACTS: dict[str, FactKind] = {
    kind.name: kind for kind in (*_HOST, *_NODE, *_CPU, *_NIC, *_IRQ, *_DISK, *_GPU, *_CGROUP)
}
