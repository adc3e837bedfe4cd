"""CPUs that a workload has to itself by its cpuset, and the interrupts of NICs that come there all the same.

Nothing says "exclusive" in most places where it is meant: a kubelet's static policy, a pinned virtual machine and a job
of a batch system all just write ``cpuset.cpus``. So a workload's CPUs are its own when it may not run on all, and no
other workload is held to any of them; a pool that several containers share is nobody's. Slices are not looked at: they
are partitions of the host, not workloads.

Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst, core-api/irq/irq-affinity.rst.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.cpulist import format_cpulist, parse_cpulist
from unveil.host.facts.irqs import dealt
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from unveil.host.facts.sheet import FactSheet
    from unveil.records.fact import FactValue

_ON_OWN_CPUS = ("network.cgroup_irqs", "network.cgroup_irq_places", "network.cgroup_irq_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visitor:
    """An interrupt of a NIC, the CPUs that get it, and those next to the NIC."""

    irq: str
    cpus: frozenset[int]
    local: frozenset[int]


def own_cpus(pinned: Mapping[str, frozenset[int]], online: frozenset[int]) -> dict[str, frozenset[int]]:
    """Return the cgroups that have CPUs to themselves, with these.

    Args:
        pinned: key of each workload's cgroup → CPUs it may run on.
    """
    held = {key: cpus for key, cpus in pinned.items() if cpus and cpus < online}
    outer = {key: cpus for key, cpus in held.items() if not any(above in held for above in _above(key))}
    claims = Counter(cpu for cpus in outer.values() for cpu in cpus)
    return {key: cpus for key, cpus in outer.items() if all(claims[cpu] == 1 for cpu in cpus)}


def _above(key: str) -> Iterable[str]:
    parts = key.split("/")
    return ("/".join(parts[:length]) for length in range(2, len(parts)))


def tell_own_cpus(sheet: FactSheet, cgroups: Iterable[str], nics: Iterable[Entity], online: frozenset[int]) -> None:
    """Tell of each cgroup which CPUs are its own, and which interrupts there could go elsewhere.

    Args:
        cgroups: keys of those that were read; of what others there are nothing is known.
    """
    entities = {key: Entity(EntityKind.CGROUP, key) for key in cgroups}
    workloads = {key: each for key, each in entities.items() if sheet.value("cpu.cgroup_kind", each) != "slice"}
    pinned = {key: _cpus(sheet.value("cpu.cgroup_cpus", each)) for key, each in workloads.items()}
    own = own_cpus(pinned, online)
    taken = frozenset[int]().union(*own.values())
    visitors = [each for nic in nics for each in _visitors(sheet, nic)] if own else []
    for key, entity in entities.items():
        if key not in own:
            reason = _none_of_its_own(workloads, pinned, key, online)
            for name in ("cpu.cgroup_own_cpus", *_ON_OWN_CPUS):
                sheet.miss(name, reason, entity)
            continue
        sheet.tell("cpu.cgroup_own_cpus", format_cpulist(own[key]), entity)
        _tell_visitors(sheet, entity, [each for each in visitors if each.cpus <= own[key]], taken)


def _none_of_its_own(
    workloads: Collection[str], pinned: Mapping[str, frozenset[int]], key: str, online: frozenset[int]
) -> str:
    if key not in workloads:
        return "it is a slice, a part of the host"
    if not pinned[key]:
        return "it is not told which CPUs it may run on"
    return "it may run on all CPUs" if pinned[key] >= online else "other cgroups are held to the same CPUs"


def _cpus(value: FactValue | None) -> frozenset[int]:
    return parse_cpulist(value) if isinstance(value, str) else frozenset()


def _visitors(sheet: FactSheet, nic: Entity) -> Iterable[_Visitor]:
    local = _cpus(sheet.value("network.nic_local_cpus", nic))
    movable = sheet.value("network.nic_irqs_movable", nic)
    for irq in movable if isinstance(movable, tuple) else ():
        entity = Entity(EntityKind.IRQ, irq)
        cpus = _cpus(sheet.value("cpu.irq_effective", entity) or sheet.value("cpu.irq_affinity", entity))
        if cpus:
            yield _Visitor(irq=irq, cpus=cpus, local=local)


def _tell_visitors(sheet: FactSheet, entity: Entity, visitors: Iterable[_Visitor], taken: frozenset[int]) -> None:
    """Tell which interrupts could go to a CPU next to their NIC that no workload has to itself, and to which one."""
    by_local: dict[frozenset[int], list[str]] = {}
    for visitor in visitors:
        if free := visitor.local - taken:
            by_local.setdefault(free, []).append(visitor.irq)
    places = {irq: place for free, irqs in by_local.items() for irq, place in dealt(sheet, irqs, free).items()}
    ordered = sorted(places, key=int)
    sheet.tell("network.cgroup_irqs", tuple(ordered), entity)
    sheet.tell("network.cgroup_irq_places", tuple(places[irq] for irq in ordered), entity)
    sheet.tell("network.cgroup_irq_count", float(len(ordered)), entity)
