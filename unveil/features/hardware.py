"""Hardware: heat, energy, idle states, errors that were corrected, links of PCIe. What a tired part shows first.

Devices know their PCI functions by facts, so that a link is judged by whoever hangs on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.features.families import across, plain, ratio
from unveil.features.feature import (
    SHARE,
    Across,
    Channels,
    Feature,
    Formula,
    Pick,
    Picked,
    Stat,
    Trouble,
    feature,
)
from unveil.records.entity import EntityKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.entity import Entity
    from unveil.records.fact import FactTable

_RATE, _LAST = (Stat.RATE,), (Stat.LAST,)
_DOWN, _EITHER = Trouble.DOWN, Trouble.EITHER
_NIC, _GPU, _DISK = EntityKind.NIC, EntityKind.GPU, EntityKind.DISK
_STATE = ("cpu", "state", "depth")


def _energy(domain: str) -> Formula:
    energy = Channels(metric="cpu.energy", stat=Stat.RATE, over=("package",), where=(("domain", domain),))
    return Formula(numerator=(energy,))


def _idle(what: str, depth: str | None = None) -> tuple[Channels, ...]:
    metric, where = f"cpu.idle_state_{what}", () if depth is None else (("depth", depth),)
    return (Channels(metric=metric, stat=Stat.RATE, over=_STATE[: 3 - len(where)], where=where),)


CPU_HARDWARE: tuple[Feature, ...] = (
    feature("cpu.package_power.rate", "power of all CPU packages", _energy("package"), unit="W", trouble=_EITHER),
    feature("cpu.core_power.rate", "power of all cores", _energy("core"), unit="W", trouble=_EITHER, detect=False),
    feature("cpu.memory_power.rate", "power of memory", _energy("dram"), unit="W", trouble=_EITHER, detect=False),
    *plain(
        "cpu", _RATE, "1/s", {"package_throttles": "times a CPU package was slowed down for heat"}, over=("package",)
    ),
    *plain(
        "cpu",
        _RATE,
        "packages",
        {"package_throttle_time": "CPU packages slowed down for heat"},
        over=("package",),
        detect=False,
    ),
    *plain(
        "cpu", _RATE, "1/s", {"core_throttles": "times a core was slowed down for heat"}, over=("cpu",), detect=False
    ),
    *plain("cpu", _RATE, "cores", {"core_throttle_time": "cores slowed down for heat"}, over=("cpu",), detect=False),
    *plain(
        "cpu",
        (Stat.MAX,),
        "C",
        {"temperature": "temperatures of all CPU packages added up"},
        over=("sensor",),
        detect=False,
        log=False,
    ),
    *plain(
        "cpu",
        (Stat.MIN,),
        "1/min",
        {"fan_speed": "speeds of all fans added up"},
        over=("sensor",),
        trouble=_DOWN,
        detect=False,
        log=False,
    ),
    *plain(
        "cpu",
        (Stat.MEAN,),
        "MHz",
        {"frequency": "frequency of single CPUs, looked at in turn"},
        trouble=_DOWN,
        detect=False,
        log=False,
    ),
    *(
        ratio(
            f"cpu.idle_{depth}_share.rate",
            f"share of rest that is {said}, on a few CPUs",
            _idle("time", depth),
            _idle("time"),
            detect=False,
            trouble=trouble,
        )
        for depth, said, trouble in (
            ("deep", "in states that take long to leave", Trouble.UP),
            ("shallow", "in states that are left at once", _EITHER),
            ("poll", "no rest but waiting in a loop", _EITHER),
        )
    ),
    *(
        ratio(
            f"cpu.idle_{what}_share.rate",
            f"share of rests in a state that was {said}, on a few CPUs",
            _idle(what),
            _idle("entries"),
            detect=False,
        )
        for what, said in (("too_deep", "too deep"), ("too_shallow", "not deep enough"), ("rejected", "refused"))
    ),
)

ERROR_RATES: tuple[Feature, ...] = (
    *plain("memory", _RATE, "1/s", {"ecc_corrected": "errors of memory corrected"}, over=("controller",)),
    *plain(
        "memory",
        _RATE,
        "1/s",
        {"ecc_uncorrected": "errors of memory not corrected"},
        over=("controller",),
        detect=False,
    ),
    *plain("interconnect", _RATE, "1/s", {"aer_corrected": "errors of PCIe corrected"}, over=("pci",)),
    feature(
        "interconnect.aer_uncorrected.rate",
        "errors of PCIe that lost a transaction or the link",
        Formula(
            numerator=tuple(
                Channels(metric=f"interconnect.{name}", stat=Stat.RATE, over=("pci",))
                for name in ("aer_nonfatal", "aer_fatal")
            )
        ),
        unit="1/s",
    ),
)


def _function(fact: str) -> Callable[[FactTable, Entity], Picked | None]:
    """Return what picks the channels of a device's PCI function, by the fact that names it."""

    def choose(facts: FactTable, device: Entity) -> Picked | None:
        pci = facts.value(fact, device)
        return Picked(frozenset({pci})) if isinstance(pci, str) else None

    return choose


def _of_function(name: str, stat: Stat, kind: EntityKind, fact: str) -> Formula:
    pick = Pick((fact,), _function(fact))
    return Formula(numerator=(Channels(metric=f"interconnect.{name}", stat=stat, over=("pci",), pick=pick),), each=kind)


def _links(prefix: str, kind: EntityKind, fact: str) -> tuple[Feature, ...]:
    """Return the features of the link of each device of a kind."""
    rows = (
        ("width", Stat.LAST, "pcie_width", "lanes", "lanes of PCIe in use", _DOWN),
        ("speed", Stat.LAST, "pcie_speed", "GT/s", "speed of a lane of PCIe", _DOWN),
        (
            "width_share",
            Stat.LAST,
            "pcie_width_share",
            SHARE,
            "lanes of PCIe in use against what both ends have",
            _DOWN,
        ),
        ("speed_share", Stat.LAST, "pcie_speed_share", SHARE, "speed of PCIe against what both ends can do", _DOWN),
        ("corrected", Stat.RATE, "aer_corrected", "1/s", "errors of PCIe corrected at the device", Trouble.UP),
    )
    return tuple(
        feature(
            f"{prefix}link_{name}.{stat}",
            meaning,
            _of_function(metric, stat, kind, fact),
            unit=unit,
            trouble=trouble,
            log=False if stat is Stat.LAST else None,
        )
        for name, stat, metric, unit, meaning, trouble in rows
    )


NIC_LINKS = _links("network.", _NIC, "network.nic_pci")
GPU_LINKS = _links("gpu.", _GPU, "gpu.pci")
DISK_LINKS = _links("storage.disk_", _DISK, "storage.pci")
LINKS = (*NIC_LINKS, *GPU_LINKS, *DISK_LINKS)

# A GPU that is idle slows its link down on purpose, and keeps its width.
LOWEST_LINKS: tuple[Feature, ...] = tuple(
    each
    for links, detect in ((NIC_LINKS, True), (GPU_LINKS, True), (DISK_LINKS, False))
    for link in links
    if link.name.endswith("link_width_share.last")
    for each in across(link, (Across.LOWEST,), detect=detect)
)
