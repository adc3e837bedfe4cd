"""How often CPUs were too hot: ``/sys/devices/system/cpu/cpu*/thermal_throttle``, on Intel's.

One CPU stands for its package, and a few, spread over the host, for their cores. The counters are the kernel's own,
kept by the interrupt that the CPU raises: reading them asks no hardware.

Source: drivers/thermal/intel/therm_throt.c.
"""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.host.sources.cpu_sysfs import CPUS, first_of_packages, online_cpus, spread
from unveil.records.metric import Kind, declare

MOST_CPUS = 16

_FOLDER = "thermal_throttle"
_S_PER_MS = 1e-3
# File → metric, unit, scale, label, what it is.
_FILES = {
    "package_throttle_count": ("package_throttles", "1", 1.0, "package", "times a package was slowed down for heat"),
    "package_throttle_total_time_ms": (
        "package_throttle_time",
        "s",
        _S_PER_MS,
        "package",
        "time a package was slowed down for heat",
    ),
    "core_throttle_count": ("core_throttles", "1", 1.0, "cpu", "times a core was slowed down for heat"),
    "core_throttle_total_time_ms": (
        "core_throttle_time",
        "s",
        _S_PER_MS,
        "cpu",
        "time a core was slowed down for heat",
    ),
}

METRICS = tuple(
    declare(f"cpu.{name}", Kind.COUNTER, unit, meaning, labels=(label,), source=f"/{CPUS}/cpu*/{_FOLDER}/{file}")
    for file, (name, unit, _, label, meaning) in _FILES.items()
)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    cpus = tuple(cpu for cpu in online_cpus(root) if root.exists(f"{CPUS}/cpu{cpu}/{_FOLDER}"))
    chosen = {
        "package": first_of_packages(root, cpus),
        "cpu": {str(cpu): cpu for cpu in spread(cpus, MOST_CPUS)},
    }
    feeds = []
    for file, (name, _, scale, label, _) in _FILES.items():
        for key, cpu in chosen[label].items():
            path = f"{CPUS}/cpu{cpu}/{_FOLDER}/{file}"
            if root.exists(path):
                parser = partial(parse_number, metric=f"cpu.{name}", labels=((label, key),), scale=scale)
                feeds.append(Feed(path=path, parser=parser, kept=False))
    if not feeds:
        raise SourceAbsentError("these CPUs do not count being slowed down for heat")
    return tuple(feeds)


SOURCE = Source(name="cpu_throttle", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
