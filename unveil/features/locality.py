"""Locality: what is handled or kept far from where it belongs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.features.families import across, counters, device_irqs, ratio
from unveil.features.feature import Across, Channels, Feature, Formula, Pick, Picked, Stat, Trouble, feature
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from unveil.records.fact import FactTable

_HOME_NODE = "interconnect.cgroup_home_node"
_HIGHEST_ID = 1 << 16  # beyond any CPU of any kernel
_NIC, _NODE, _CGROUP = EntityKind.NIC, EntityKind.NODE, EntityKind.CGROUP


def _nic_irqs(facts: FactTable, nic: Entity) -> Picked | None:
    """Return a NIC's own interrupts, None where it is not known which they are."""
    irqs = facts.value("network.nic_irqs", nic)
    return Picked(frozenset(irqs)) if isinstance(irqs, tuple) and irqs else None


def _remote_nic_irqs(facts: FactTable, nic: Entity) -> Picked | None:
    """Return those of a NIC's interrupts that CPUs away from it handle, None where it is not known which are near."""
    own = _nic_irqs(facts, nic)
    places = _local_places(facts, nic) if own is not None else None
    if own is None or places is None:
        return None
    cpus, nodes = places
    return Picked(
        own.keys, lambda labels: labels["cpu"] not in cpus if "cpu" in labels else labels.get("node") not in nodes
    )


def _local_places(facts: FactTable, nic: Entity) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return the CPUs and the nodes next to a NIC, as labels name them.

    A platform that does not say which node a device is on reports all CPUs as local. On a host of several nodes that
    is no knowledge, and nothing would ever be remote.
    """
    of_nodes = {
        fact.entity.key: cpus for fact in facts.of("interconnect.node_cpus") if (cpus := _cpus(fact.value)) is not None
    }
    node = _id(facts.value("network.nic_node", nic))
    local = _cpus(facts.value("network.nic_local_cpus", nic)) or of_nodes.get(node or "")
    if not local:
        return None
    if node is None and len([cpus for cpus in of_nodes.values() if cpus]) > 1:
        return None
    nodes = {key for key, cpus in of_nodes.items() if cpus and cpus <= local}
    return local, frozenset(nodes | ({node} if node is not None else set()))


def _irqs_on_own_cpus(facts: FactTable, cgroup: Entity) -> Picked | None:
    """Return the interrupts of NICs on the CPUs that a cgroup has to itself, None where it has none.

    On a host that is counted by node, those that are set there stand for those that were handled there.
    """
    own = _cpus(facts.value("cpu.cgroup_own_cpus", cgroup))
    if not own:
        return None
    irqs = {irq for fact in facts.of("network.nic_irqs") if isinstance(fact.value, tuple) for irq in fact.value}
    there = facts.value("network.cgroup_irqs", cgroup)
    placed = frozenset(there) if isinstance(there, tuple) else frozenset()
    return Picked(frozenset(irqs), lambda labels: labels["cpu"] in own if "cpu" in labels else labels["irq"] in placed)


def _away_from_home(facts: FactTable, cgroup: Entity) -> Picked | None:
    """Return the memory of a cgroup that is off its home node, None where it has no home."""
    home = _id(facts.value(_HOME_NODE, cgroup))
    return None if home is None else Picked(frozenset({cgroup.key}), lambda labels: labels["node"] != home)


def _id(value: object) -> str | None:
    """Return the label that the number of a node has, None for what is no such number."""
    if not isinstance(value, float | int) or isinstance(value, bool) or not 0 <= value <= _HIGHEST_ID:
        return None
    return str(int(value))


def _cpus(value: object) -> frozenset[str] | None:
    """Return the labels of the CPUs in a list in the kernel's form (``0-3,8``), None for what is no such list."""
    if not isinstance(value, str):
        return None
    ids: set[int] = set()
    for part in filter(None, value.strip().split(",")):
        span = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part)
        if span is None or int(span[2] or 0) > _HIGHEST_ID:
            return None
        ids.update(range(int(span[1]), int(span[2] or span[1]) + 1))
    return frozenset(map(str, ids))


_PLACE_FACTS = ("network.nic_irqs", "network.nic_node", "network.nic_local_cpus", "interconnect.node_cpus")
_ALL_NIC_IRQS = replace(device_irqs(), pick=Pick(_PLACE_FACTS[:1], _nic_irqs))
_REMOTE_NIC_IRQS = replace(device_irqs(), pick=Pick(_PLACE_FACTS, _remote_nic_irqs))
_OWN_CPU_FACTS = ("network.nic_irqs", "cpu.cgroup_own_cpus", "network.cgroup_irqs")
_IRQS_ON_OWN_CPUS = replace(device_irqs(), pick=Pick(_OWN_CPU_FACTS, _irqs_on_own_cpus))
_NODE_ANON = "interconnect.cgroup_node_anon"
_AWAY = Channels(metric=_NODE_ANON, stat=Stat.LAST, over=("cgroup", "node"), pick=Pick((_HOME_NODE,), _away_from_home))

_IRQ_REMOTE_SHARE = ratio(
    "network.irq_remote_share.rate",
    "share of the NIC's interrupts that CPUs away from it handled",
    (_REMOTE_NIC_IRQS,),
    (_ALL_NIC_IRQS,),
    each=_NIC,
)
_CGROUP_REMOTE_SHARE = ratio(
    "interconnect.cgroup_remote_share.last",
    "share of its anonymous memory that is off its home node",
    (_AWAY,),
    (Channels(metric=_NODE_ANON, stat=Stat.LAST, over=("cgroup", "node")),),
    each=_CGROUP,
)
_NODE_OTHER_SHARE = ratio(
    "interconnect.node_numa_other_share.rate",
    "share of the node's new pages that CPUs of other nodes asked for",
    counters("interconnect", "numa_other", ("node",)),
    counters("interconnect", "numa_other numa_local", ("node",)),
    each=_NODE,
)
_NODE_MISS_SHARE = ratio(
    "interconnect.node_numa_miss_share.rate",
    "share of the node's new pages that were wanted elsewhere",
    counters("interconnect", "numa_miss", ("node",)),
    counters("interconnect", "numa_miss numa_hit", ("node",)),
    each=_NODE,
)
_NODE_FREE_SHARE = ratio(
    "memory.node_free_share.last",
    "share of the node's memory that is unused",
    (Channels(metric="memory.node_free", stat=Stat.LAST, over=("node",)),),
    (Channels(metric="memory.node_total", stat=Stat.LAST, over=("node",)),),
    each=_NODE,
    trouble=Trouble.DOWN,
)

HOST_LOCALITY: tuple[Feature, ...] = (
    ratio(
        "interconnect.numa_other_share.rate",
        "share of new pages that are on another node than the CPU that asked",
        counters("interconnect", "numa_other"),
        counters("interconnect", "numa_other numa_local"),
    ),
    ratio(
        "interconnect.numa_miss_share.rate",
        "share of new pages that are on another node than wanted",
        counters("interconnect", "numa_miss"),
        counters("interconnect", "numa_miss numa_hit"),
    ),
    ratio(
        "interconnect.numa_hint_local_share.rate",
        "share of NUMA hinting faults that found the page on their own node",
        counters("interconnect", "numa_hint_faults_local"),
        counters("interconnect", "numa_hint_faults"),
        trouble=Trouble.DOWN,
    ),
    *across(_IRQ_REMOTE_SHARE, (Across.HIGHEST,)),
    *across(_CGROUP_REMOTE_SHARE, (Across.HIGHEST,)),
    *across(_NODE_OTHER_SHARE, (Across.HIGHEST, Across.IMBALANCE)),
    *across(_NODE_FREE_SHARE, (Across.LOWEST, Across.IMBALANCE)),
)

PART_LOCALITY: tuple[Feature, ...] = (
    _IRQ_REMOTE_SHARE,
    feature(
        "network.irq.rate",
        "interrupts of the NIC",
        Formula(numerator=(_ALL_NIC_IRQS,), each=_NIC),
        unit="1/s",
        trouble=Trouble.EITHER,
    ),
    feature(
        "network.cgroup_irq.rate",
        "interrupts of NICs on the CPUs that it has to itself",
        Formula(numerator=(_IRQS_ON_OWN_CPUS,), each=_CGROUP),
        unit="1/s",
    ),
    _CGROUP_REMOTE_SHARE,
    _NODE_OTHER_SHARE,
    _NODE_MISS_SHARE,
    _NODE_FREE_SHARE,
)
