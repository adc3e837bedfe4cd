"""The home node of a cgroup: the NUMA node where its memory belongs, because its GPU or its NIC is there."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unveil.host.facts.cgroup_walk import cgroup_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unveil.host.facts.cgroup_mounts import CgroupMounts
    from unveil.host.facts.topology import Topology
    from unveil.host.root import HostRoot
    from unveil.records.fact import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where cgroups are at home.

    Attributes:
        users: nodes of the GPUs that each cgroup uses; None stands for a GPU that does not tell its node.
        gpus: keys of the GPUs that each cgroup uses.
        common: the node that every cgroup without a GPU belongs to, None where there is no such one, with *reason*.
    """

    users: Mapping[str, frozenset[int | None]] = field(default_factory=dict)
    gpus: Mapping[str, frozenset[str]] = field(default_factory=dict)
    common: int | None = None
    reason: str = ""

    def of(self, key: str) -> tuple[int | None, str]:
        """Return the home node of a cgroup, or None and why."""
        nodes = self.users.get(key)
        if not nodes or self.common is not None:
            return self.common, self.reason
        if None in nodes:
            return None, "a GPU it uses does not tell its node"
        if len(nodes) > 1:
            listed = ", ".join(str(node) for node in sorted(node for node in nodes if node is not None))
            return None, f"its GPUs are on different nodes: {listed}"
        return next(iter(nodes)), ""


def find_home(
    root: HostRoot,
    mounts: CgroupMounts,
    topology: Topology,
    *,
    gpu_facts: Iterable[Fact],
    nic_nodes: Iterable[int | None],
) -> Home:
    """Find the home of cgroups: by the GPUs their processes use, else by the only node that has devices.

    Args:
        gpu_facts: ``gpu.node`` and ``gpu.pids`` of each GPU; process numbers are the host's.
        nic_nodes: node of each physical NIC, None where unknown.
    """
    gpu_nodes: dict[str, int | None] = {}
    pids: dict[str, tuple[str, ...]] = {}
    for fact in gpu_facts:
        gpu_nodes.setdefault(fact.entity.key, None)
        if fact.name == "gpu.node":
            gpu_nodes[fact.entity.key] = _place(topology, fact.value)
        elif fact.name == "gpu.pids" and isinstance(fact.value, tuple):
            pids[fact.entity.key] = fact.value
    users: defaultdict[str, set[int | None]] = defaultdict(set)
    used: defaultdict[str, set[str]] = defaultdict(set)
    blind = ""
    if pids and not sees_all_processes(root):
        pids = {}
        blind = "the numbers of GPU processes are the host's, and this procfs does not show the host's processes"
    for gpu, numbers in pids.items():
        for pid in numbers:
            if key := cgroup_of(root, mounts, pid):
                users[key].add(gpu_nodes.get(gpu))
                used[key].add(gpu)
    common, reason = _common(topology, [*gpu_nodes.values(), *nic_nodes])
    return Home(
        users={key: frozenset(nodes) for key, nodes in users.items()},
        gpus={key: frozenset(gpus) for key, gpus in used.items()},
        common=common,
        reason=blind or reason,
    )


def _place(topology: Topology, value: object) -> int | None:
    """Return the node a GPU's host memory belongs to: its own, or the nearest with CPUs when it is memory only."""
    if not isinstance(value, float | int) or value < 0:
        return None
    return topology.nearest_cpu_node(int(value)) if int(value) in topology.cpus else int(value)


def _common(topology: Topology, devices: list[int | None]) -> tuple[int | None, str]:
    if len(topology.memory_nodes) == 1:
        return topology.memory_nodes[0], ""  # nothing can be remote
    if not devices:
        return None, "it uses no GPU, and the host has no GPU and no physical NIC to go by"
    if None in devices:
        return None, "it uses no GPU, and a NIC or GPU of the host does not tell its node"
    nodes = sorted({node for node in devices if node is not None})
    if len(nodes) > 1:
        return None, f"it uses no GPU, and the host's devices are on nodes {', '.join(map(str, nodes))}"
    return nodes[0], ""


def sees_all_processes(root: HostRoot) -> bool:
    """Tell whether process numbers in this procfs are the host's, as the numbers that NVML tells are.

    Only the first PID namespace has kthreadd as its process 2. Where it is hidden, other users' processes are, too.
    """
    try:
        return root.read("proc/2/comm").strip() == b"kthreadd"
    except OSError:
        return False
