"""Facts of a GPU, made of what the driver said and of where sysfs places its PCI device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from unveil.host.facts.sheet import number, plain
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.host.gpu_frames import IdentityFrame
    from unveil.host.root import HostRoot
    from unveil.records.fact import FactValue

_STEADY = tuple(
    f"gpu.{name}"
    for name in (
        "name",
        "pci",
        "power_default",
        "power_min",
        "power_max",
        "sm_clock_max",
        "bar1_total",
        "applications_clocks_default",
        "nvlink_peers",
    )
)
# Not to be believed while the driver is silent, with the setting that some of them are.
_CHANGING = {
    "gpu.power_limit": "power_limit",
    "gpu.persistence": "persistence_mode",
    "gpu.applications_clock": "applications_clocks",
    "gpu.applications_clock_share": None,
    "gpu.pids": None,
    "gpu.compute_mode": None,
    "gpu.mig": None,
    "gpu.repair_pending": None,
    "gpu.repair_failed": None,
}
_NAMES = (*_STEADY, *_CHANGING)


def watts_text(watts: float) -> str:
    """Return a limit as the text of its setting: ``350``, ``350.5``, exact to the driver's milliwatt."""
    return f"{watts:.3f}".rstrip("0").rstrip(".")


def gpu_facts(
    root: HostRoot, identity: IdentityFrame, *, silent: str | None = None, power_limit: float = math.nan
) -> tuple[Fact, ...]:
    """Return the facts of one GPU; each that cannot be told is absent with its reason.

    Args:
        root: where sysfs is.
        identity: what the driver said last.
        silent: why the driver says nothing now, None while it answers.
        power_limit: the limit in the newest sample (W), fresher than *identity*; NaN when there is none.
    """
    entity = Entity(EntityKind.GPU, identity.gpu)
    facts = []
    for name in _NAMES:
        raw = identity.facts.get(name)
        value: FactValue | None = tuple(raw) if isinstance(raw, list) else raw
        reason = None if value is not None else identity.reasons.get(name, "the driver does not tell")
        if name == "gpu.power_limit" and not math.isnan(power_limit):
            value, reason = power_limit, None
        if silent is not None and name in _CHANGING:
            value, reason = None, silent
        setting = _CHANGING.get(name)
        address = f"nvml:{identity.gpu}/{setting}" if setting else None
        facts.append(Fact(name=name, entity=entity, value=value, reason=reason, setting=address))
    node, reason = _node(root, identity.facts.get("gpu.pci"))
    facts.append(Fact(name="gpu.node", entity=entity, value=node, reason=reason))
    return tuple(facts)


def power_limit_texts(facts: Iterable[Fact]) -> dict[str, str]:
    """Return the raw text of each power limit that is known (address → ``350\\n``)."""
    return {
        fact.setting: watts_text(fact.value) + "\n"
        for fact in facts
        if fact.name == "gpu.power_limit" and fact.setting is not None and isinstance(fact.value, float)
    }


def _node(root: HostRoot, pci: object) -> tuple[float | None, str | None]:
    """Return the NUMA node of a PCI device, or the reason why there is none (-1: the platform does not say)."""
    if not isinstance(pci, str):
        return None, "the driver does not tell the PCI address"
    try:
        node = number(plain(root.read(f"sys/bus/pci/devices/{pci}/numa_node")))
    except (OSError, ValueError) as error:
        return None, f"sysfs does not place {pci}: {error}"
    return (None, "the platform does not say") if node < 0 else (node, None)
