"""CPUs, NUMA nodes and how far they are from each other.

Three sets are kept apart: nodes, nodes with CPUs and nodes with memory. Ids are sparse, CPUs go offline, and machines
with memory on the GPU or on CXL have many nodes without a CPU, which are never a place to run on.

Source: Documentation/ABI/stable/sysfs-devices-node, Documentation/admin-guide/cputopology.rst.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unveil.host.cpulist import format_cpulist, parse_cpulist, parse_mask
from unveil.host.facts.sheet import number
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.host.facts.sheet import FactSheet

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"
_DISTANCE = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """What the other facts need to know of the machine.

    Attributes:
        online: CPUs that are online.
        cpus: online CPUs of each node, empty for a node of memory only.
        memory: bytes of each node; 0 for a node of CPUs only; a node that does not tell is left out.
        distances: row of each node in ascending order of the online ids; a node that does not tell is left out.
    """

    online: frozenset[int]
    cpus: Mapping[int, frozenset[int]] = field(default_factory=dict)
    memory: Mapping[int, int] = field(default_factory=dict)
    distances: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def memory_nodes(self) -> tuple[int, ...]:
        """Return the nodes that have memory; one that does not tell is taken to have some."""
        return tuple(node for node in sorted(self.cpus) if self.memory.get(node, 1) > 0)

    def nearest_cpu_node(self, node: int) -> int | None:
        """Return the node itself when it has CPUs, else the nearest one that has; None where it cannot be told."""
        if self.cpus.get(node):
            return node
        row = dict(zip(sorted(self.cpus), self.distances.get(node, ()), strict=False))
        reachable = [(distance, other) for other, distance in row.items() if self.cpus[other]]
        return min(reachable)[1] if reachable else None


def read_topology(sheet: FactSheet) -> Topology:
    """Read CPUs, nodes, their memory and their distances."""
    online = _read_cpus(sheet)
    nodes = _ids(sheet, f"{_NODE}/online", _NODE, "node")
    if not nodes:
        reason = f"this kernel has no /{_NODE}" if not sheet.names(_NODE) else f"/{_NODE} lists no node"
        for name in ("interconnect.node_count", "interconnect.cpu_nodes", "interconnect.memory_nodes"):
            sheet.miss(name, reason)
        return Topology(online=online)
    topology = Topology(
        online=online,
        cpus={node: _node_cpus(sheet, node, online) for node in sorted(nodes)},
        memory=_node_memory(sheet, nodes),
        distances=_node_distances(sheet, nodes),
    )
    _tell_nodes(sheet, topology)
    return topology


def _read_cpus(sheet: FactSheet) -> frozenset[int]:
    present = _ids(sheet, f"{_CPU}/present", _CPU, "cpu")
    online = _ids(sheet, f"{_CPU}/online", "", "") or _online_by_flag(sheet, present)
    for name, value in (("cpu.count", len(present)), ("cpu.online_count", len(online))):
        if value:
            sheet.tell(name, float(value))
        else:
            sheet.miss(name, f"/{_CPU} lists no CPU")
    sheet.tell("cpu.offline", format_cpulist(present - online))
    sheet.read("cpu.smt", f"{_CPU}/smt/control", str, setting=f"file:/{_CPU}/smt/control")
    sheet.read("cpu.isolated", f"{_CPU}/isolated", lambda text: format_cpulist(parse_cpulist(text)))
    return online


def _ids(sheet: FactSheet, listing: str, folder: str, prefix: str) -> frozenset[int]:
    """Return the ids in a list file or, on kernels (and in captured trees) without one, those of the directories."""
    text = sheet.text(listing)
    if text:
        try:
            return parse_cpulist(text)
        except ValueError:
            pass
    if not folder:
        return frozenset()
    names = (re.fullmatch(prefix + r"(\d{1,6})", name, re.ASCII) for name in sheet.names(folder))
    return frozenset(int(name[1]) for name in names if name)


def _online_by_flag(sheet: FactSheet, present: frozenset[int]) -> frozenset[int]:
    # CPUs without the file (often cpu0) cannot be taken offline.
    return frozenset(cpu for cpu in present if sheet.text(f"{_CPU}/cpu{cpu}/online") != "0")


def _node_cpus(sheet: FactSheet, node: int, online: frozenset[int]) -> frozenset[int]:
    folder = f"{_NODE}/node{node}"
    text = sheet.text(f"{folder}/cpulist")
    try:
        cpus = parse_cpulist(text) if text is not None else parse_cpumask(sheet.text(f"{folder}/cpumap") or "")
    except ValueError:
        cpus = frozenset()
    return cpus & online if online else cpus


def parse_cpumask(text: str) -> frozenset[int]:
    """Return the ids in a mask such as ``ff,00000003``; commas stand every 32 bits.

    Raises:
        ValueError: the text is no mask.
    """
    mask = parse_mask(text) if text else 0
    return frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def _node_memory(sheet: FactSheet, nodes: frozenset[int]) -> dict[int, int]:
    found = {}
    for node in nodes:
        text = sheet.text(f"{_NODE}/node{node}/meminfo") or ""
        if total := re.search(r"MemTotal:\s*(\d{1,18}) kB", text, re.ASCII):
            found[node] = int(total[1]) * 1024
    return found


def _node_distances(sheet: FactSheet, nodes: frozenset[int]) -> dict[int, tuple[int, ...]]:
    found = {}
    for node in nodes:
        words = (sheet.text(f"{_NODE}/node{node}/distance") or "").split()
        distances = tuple(int(word) for word in words if _DISTANCE.fullmatch(word))
        if len(distances) == len(words) == len(nodes):
            found[node] = distances
    return found


def _tell_nodes(sheet: FactSheet, topology: Topology) -> None:
    nodes = sorted(topology.cpus)
    sheet.tell("interconnect.node_count", float(len(nodes)))
    sheet.tell("interconnect.cpu_nodes", tuple(str(node) for node in nodes if topology.cpus[node]))
    sheet.tell("interconnect.memory_nodes", tuple(str(node) for node in topology.memory_nodes))
    for node in nodes:
        entity = Entity(EntityKind.NODE, str(node))
        sheet.tell("interconnect.node_cpus", format_cpulist(topology.cpus[node]), entity)
        if node in topology.memory:
            sheet.tell("interconnect.node_memory", float(topology.memory[node]), entity)
        else:
            sheet.miss("interconnect.node_memory", f"node {node} does not tell its memory", entity)
        if node in topology.distances:
            sheet.tell("interconnect.node_distances", tuple(map(str, topology.distances[node])), entity)
        else:
            sheet.miss("interconnect.node_distances", f"node {node} does not tell its distances", entity)
        nearest = topology.nearest_cpu_node(node)
        if nearest is None:
            sheet.miss("interconnect.node_nearest_cpus", f"node {node} has no CPU and tells no distance", entity)
        else:
            sheet.tell("interconnect.node_nearest_cpus", format_cpulist(topology.cpus[nearest]), entity)
        for cpu in sorted(topology.cpus[node]):
            sheet.tell("cpu.node", float(node), Entity(EntityKind.CPU, str(cpu)))


def read_identity(sheet: FactSheet) -> None:
    """Read what the machine is: kernel, model of the CPU, hypervisor, memory."""
    sheet.read("cpu.kernel", "proc/sys/kernel/osrelease", str)
    info = sheet.head("proc/cpuinfo", 4096)  # the first CPU says it; the whole file is long on a large host
    model = re.search(r"^(?:model name|cpu model|cpu|Processor|machine)\s*:\s*(\S.*)$", info, re.MULTILINE)
    if model:
        sheet.tell("cpu.model", model[1].strip()[:200])
    else:
        sheet.miss("cpu.model", "/proc/cpuinfo names no model")
    sheet.read("memory.total", "proc/meminfo", _total)
    _read_hypervisor(sheet, info)


def _total(text: str) -> float:
    total = re.search(r"MemTotal:\s*(\d{1,18}) kB", text, re.ASCII)
    return number(total[1]) * 1024 if total else number("none")


_VENDORS = (
    ("KVM", "kvm"),
    ("QEMU", "kvm"),
    ("Amazon EC2", "kvm"),
    ("Google Compute Engine", "kvm"),
    ("VMware", "vmware"),
    ("Microsoft Corporation Virtual", "hyper-v"),
)


def _read_hypervisor(sheet: FactSheet, info: str) -> None:
    flags = re.search(r"^flags\s*:(.*)$", info, re.MULTILINE)
    if flags is not None and " hypervisor" not in flags[1]:
        sheet.tell("cpu.hypervisor", "none")
        return
    kind = sheet.text("sys/hypervisor/type")  # Xen tells here
    product = f"{sheet.text('sys/class/dmi/id/sys_vendor') or ''} {sheet.text('sys/class/dmi/id/product_name') or ''}"
    clock = sheet.text("sys/devices/system/clocksource/clocksource0/available_clocksource") or ""
    named = kind or next((name for word, name in _VENDORS if word in product), None)
    if named is None and "kvm-clock" in clock:
        named = "kvm"
    if named is not None:
        sheet.tell("cpu.hypervisor", named)
    elif flags is not None:
        sheet.tell("cpu.hypervisor", "unknown")
    else:
        sheet.miss("cpu.hypervisor", "this architecture does not tell in /proc/cpuinfo")
