"""Device interrupts: which CPUs may get them, which do, and which of them the kernel will not let anyone move.

Source: Documentation/core-api/irq/irq-affinity.rst, Documentation/ABI/testing/sysfs-kernel-irq, kernel/irq/proc.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.cpulist import format_cpulist, parse_cpulist
from unveil.host.facts.sheet import FactSheet
from unveil.host.root import HostRoot
from unveil.records.entity import Entity, EntityKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

# A host with 2,000 interrupts has them mostly for NVMe queues, which are managed anyway. Owners come in order of need.
MAX_IRQS = 512

# Since this release smp_affinity is read-only for interrupts that nobody may move; before, every one looked writable.
_HONEST_MODES = (6, 12)
_WRITABLE = 0o222


@dataclass(frozen=True, slots=True, kw_only=True)
class Irq:
    """One device interrupt.

    Attributes:
        effective: CPUs that get it, None where unknown.
        writable: whether the kernel offers its affinity for writing.
        used: whether a driver has a handler on it.
    """

    number: int
    effective: frozenset[int] | None
    writable: bool
    used: bool


def read_irqs(
    sheet: FactSheet,
    owners: Iterable[tuple[Entity, Sequence[int]]],
    *,
    known: Mapping[int, str] | None = None,
    besides: Collection[int] = (),
) -> dict[int, Irq]:
    """Read the interrupts of devices, at most ``MAX_IRQS``; those beyond are left out of the answer.

    Args:
        owners: devices with their interrupts, those that matter most first.
        known: ``handlers`` of these interrupts.
        besides: interrupts that are read elsewhere; they are left out, and count.
    """
    found: dict[int, Irq] = {}
    for owner, numbers in owners:
        for irq in numbers:
            if len(found) + len(besides) >= MAX_IRQS:
                return found
            if irq not in found and irq not in besides:
                found[irq] = _read_irq(sheet, irq, owner, (known or {}).get(irq))
    return found


def handlers(root: HostRoot, irqs: Iterable[int]) -> dict[int, str]:
    """Return the names of handlers of those interrupts that have one; they stay while the device is there."""
    sheet = FactSheet(root)
    return {irq: action for irq in irqs if (action := _action(sheet, irq))}


def _read_irq(sheet: FactSheet, irq: int, owner: Entity, action: str | None) -> Irq:
    entity = Entity(EntityKind.IRQ, str(irq))
    path = f"proc/irq/{irq}/smp_affinity_list"
    allowed = sheet.read("cpu.irq_affinity", path, _normal, entity, setting=f"irq:{irq}/smp_affinity_list")
    effective = sheet.read("cpu.irq_effective", f"proc/irq/{irq}/effective_affinity_list", _normal, entity)
    sheet.tell("cpu.irq_device", str(owner), entity)
    if action is None:
        action = _action(sheet, irq)
    if action:
        sheet.tell("cpu.irq_action", action, entity)
    else:
        sheet.miss("cpu.irq_action", "no driver handles it" if action == "" else "the kernel does not tell", entity)
    try:
        writable = bool(sheet.root.mode(path) & _WRITABLE)
    except OSError:
        writable = False
    told = effective or allowed  # kernels without effective affinity deliver to the allowed CPUs
    cpus = parse_cpulist(told) if isinstance(told, str) and told else None
    return Irq(number=irq, effective=cpus, writable=writable, used=action != "")


def _normal(text: str) -> str:
    return format_cpulist(parse_cpulist(text))


def _action(sheet: FactSheet, irq: int) -> str | None:
    """Return the names of an interrupt's handlers, empty when it has none, None where the kernel does not tell."""
    text = sheet.text(f"sys/kernel/irq/{irq}/actions")
    if text is not None:
        return text
    try:
        return ",".join(sheet.looks.see(HostRoot.directories, f"proc/irq/{irq}"))
    except OSError:
        return None


def immovable(sheet: FactSheet, irqs: Mapping[int, Irq]) -> frozenset[int] | None:
    """Return the interrupts that the kernel holds in place; None where it cannot be told.

    Recent kernels show it in the mode of the file. On older ones every file looks writable and writing is the only
    way to know, unless debugfs tells.
    """
    held = frozenset(irq.number for irq in irqs.values() if not irq.writable)
    if held or _release(sheet) >= _HONEST_MODES:
        return held
    steady = FactSheet(sheet.root)  # an interrupt is managed as long as it is there
    told = {irq: steady.text(f"sys/kernel/debug/irq/irqs/{irq}") for irq in irqs}
    if not told or None in told.values():
        return None
    return frozenset(irq for irq, text in told.items() if "IRQD_AFFINITY_MANAGED" in (text or ""))


def _release(sheet: FactSheet) -> tuple[int, int]:
    told = sheet.value("cpu.kernel") or FactSheet(sheet.root).text("proc/sys/kernel/osrelease")
    parts = re.match(r"(\d+)\.(\d+)", str(told or ""))
    return (int(parts[1]), int(parts[2])) if parts else (0, 0)


def dealt(sheet: FactSheet, irqs: Iterable[str], cpus: Iterable[int]) -> dict[str, str]:
    """Return a CPU for each interrupt, so that those of a kind (``input.0``, ``input.1``) are on as many as there are.

    One CPU and not all: of an interrupt that may go to several the kernel leaves it where it is if that is one of them
    (arch/x86/kernel/apic/vector.c, ``assign_vector_locked``), so a wider list alone moves nothing.
    """
    ordered, turn = sorted(set(cpus)), dict[str, int]()
    places: dict[str, str] = {}
    for irq in irqs if ordered else ():
        kind = re.sub(r"\d+", "", str(sheet.value("cpu.irq_action", Entity(EntityKind.IRQ, irq))))
        turn[kind] = turn.get(kind, -1) + 1
        places[irq] = str(ordered[turn[kind] % len(ordered)])
    return places


def remote_share(irqs: Iterable[Irq], local: frozenset[int]) -> float | None:
    """Return the share of interrupts that no local CPU gets, in [0, 1]; None when none of them has a known CPU.

    An interrupt that is delivered to a local and a remote CPU counts as local: that is a choice the hardware has.
    """
    placed = [irq.effective for irq in irqs if irq.used and irq.effective]
    return sum(local.isdisjoint(cpus) for cpus in placed) / len(placed) if placed else None
