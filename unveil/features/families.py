"""Families: many features from one line. Each function takes a table (metric → what it is, for a person)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.features.feature import SHARE, Across, Channels, Feature, Formula, Stat, Term, Trouble, feature
from unveil.records.entity import EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SAID = {
    Stat.RATE: "{}",
    Stat.UNEVENNESS: "unevenness of {} within the window",
    Stat.MEAN: "{}, on average",
    Stat.MIN: "{}, at least",
    Stat.MAX: "{}, at most",
    Stat.LAST: "{}",
    Stat.STD: "fluctuation of {}",
    Stat.SLOPE: "growth of {}",
}
_PLURAL = {
    EntityKind.CPU: "CPUs",
    EntityKind.NODE: "nodes",
    EntityKind.GPU: "GPUs",
    EntityKind.NIC: "NICs",
    EntityKind.DISK: "disks",
    EntityKind.CGROUP: "cgroups",
}
_ACROSS = {
    Across.LOWEST: "lowest of all {}",
    Across.AVERAGE: "average over all {}",
    Across.HIGHEST: "highest of all {}",
    Across.IMBALANCE: "highest minus median of all {}",
}


def single(
    metric: str, stat: Stat, over: tuple[str, ...] = (), *, each: EntityKind = EntityKind.HOST, whole: bool = False
) -> Formula:
    """Return the formula of one statistic of one metric."""
    return Formula(numerator=(Channels(metric=metric, stat=stat, over=over, whole=whole),), each=each)


def plain(
    subsystem: str,
    stats: Iterable[Stat],
    unit: str,
    rows: Mapping[str, str],
    *,
    name: str = "{}",
    over: tuple[str, ...] = (),
    each: EntityKind = EntityKind.HOST,
    trouble: Trouble = Trouble.UP,
    detect: bool | None = None,
    log: bool | None = None,
) -> tuple[Feature, ...]:
    """Return features that are statistics of one metric each.

    Args:
        unit: of the statistic; a slope is in that per second and has a sign, events that are bytes get
            their own unit.
        rows: metric without its subsystem → what it is.
        name: how the feature is called after the metric, e.g. ``disk_{}``.
        over: labels of its channels, see ``Channels``.
    """
    features = []
    for stat in stats:
        word = "std" if stat is Stat.UNEVENNESS else stat
        slope = stat is Stat.SLOPE
        for metric, meaning in rows.items():
            features.append(
                feature(
                    f"{subsystem}.{name.format(metric)}.{word}",
                    _SAID[stat].format(meaning),
                    single(f"{subsystem}.{metric}", stat, over, each=each),
                    unit=f"{unit}/s" if slope else "bytes/s" if unit == "1/s" and metric.endswith("_bytes") else unit,
                    trouble=trouble,
                    detect=detect,
                    log=log,
                    signed=slope,
                )
            )
    return tuple(features)


def across(
    part: Feature, ways: Iterable[Across], *, detect: bool = True, trouble: Trouble | None = None
) -> tuple[Feature, ...]:
    """Return host-level features that take a feature of an entity across all entities of its kind.

    ``gpu.util.mean`` becomes ``gpu.util_lowest.mean``; a leading name of the kind is dropped first.
    """
    subsystem, middle, stat = part.name.split(".")
    return tuple(
        feature(
            f"{subsystem}.{middle}_{way}.{stat}",
            f"{part.meaning}: {_ACROSS[way].format(_PLURAL[part.formula.each])}",
            replace(part.formula, across=way),
            unit=part.unit,
            per=EntityKind.HOST,
            trouble=trouble or (Trouble.UP if way is Across.IMBALANCE else part.trouble),
            detect=detect,
            log=part.log,
        )
        for way in ways
    )


def ratio(
    name: str,
    meaning: str,
    above: tuple[Term, ...],
    below: tuple[Term, ...],
    *,
    each: EntityKind = EntityKind.HOST,
    unit: str = SHARE,
    trouble: Trouble = Trouble.UP,
    scale: float = 1.0,
    detect: bool | None = None,
    log: bool | None = None,
) -> Feature:
    """Return a feature that is a ratio of two sums of channels or facts."""
    formula = Formula(numerator=above, denominator=below, scale=scale, each=each)
    return feature(name, meaning, formula, unit=unit, trouble=trouble, detect=detect, log=log)


def counters(subsystem: str, names: str, over: tuple[str, ...] = (), *, whole: bool = False) -> tuple[Channels, ...]:
    """Return the rates of counters, named one after the other."""
    return tuple(
        Channels(metric=f"{subsystem}.{name}", stat=Stat.RATE, over=over, whole=whole) for name in names.split()
    )


def device_irqs() -> Channels:
    """Return the rate of all interrupts of devices; their channels tell by CPU or by node who handled them."""
    return Channels(metric="cpu.irq", stat=Stat.RATE, over=("irq",), loose=True)


def gauges(subsystem: str, names: str, stat: Stat, over: tuple[str, ...] = ()) -> tuple[Channels, ...]:
    """Return a statistic of gauges, named one after the other."""
    return tuple(Channels(metric=f"{subsystem}.{name}", stat=stat, over=over) for name in names.split())
