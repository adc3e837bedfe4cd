"""Temperatures of CPU packages and speeds of fans: ``/sys/class/hwmon``.

Trap 7: some sensors hang their reader for seconds, or for good: ACPI's power meter, one-wire buses. Others send a
command to a disk for each reading, which wakes it. A list of what is left out would never be complete, so there is one
of what is read: packages by the drivers of the CPUs, fans by those of board chips (not Dell's, which stop all CPUs). Of
Intel's only the package is read: its cores answer by an interrupt to each of them.

Source: Documentation/hwmon/sysfs-interface.rst, coretemp.rst, k10temp.rst.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, Metric, declare

if TYPE_CHECKING:
    from unveil.host.root import HostRoot

MOST_SENSORS = 32

_FOLDER = "sys/class/hwmon"
_CPU_CHIPS = frozenset({"coretemp", "k10temp", "zenpower"})
_PACKAGE_SENSOR = "temp1_input"  # "Package id 0" of coretemp, Tctl of the others
_DIE_SENSOR = "temp2_input"  # Tdie of k10temp, where it differs from Tctl
_FAN_CHIPS = re.compile(r"nct[0-9]+|it8[0-9]+|f7[0-9]+\w*|w83\w+", re.ASCII)
_FAN = re.compile(r"fan[0-9]{1,2}_input", re.ASCII)
_C_PER_MILLI = 1e-3


def _metric(name: str, unit: str, files: str, meaning: str) -> Metric:
    return declare(f"cpu.{name}", Kind.GAUGE, unit, meaning, labels=("sensor",), source=f"/{_FOLDER}/hwmon*/{files}")


METRICS = (
    _metric("temperature", "C", _PACKAGE_SENSOR, "temperature of a CPU package"),
    _metric("fan_speed", "1/min", "fan*_input", "speed of a fan"),
)


def _chip(root: HostRoot, folder: str) -> str:
    try:
        return root.read(f"{folder}/name").decode("ascii", "replace").strip()
    except OSError:
        return ""


def _package_sensor(root: HostRoot, folder: str) -> str:
    """Return the file of a package's temperature: the die's where it is told, as Tctl may be 27 degrees above it."""
    try:
        return _DIE_SENSOR if root.read(f"{folder}/temp2_label").strip() == b"Tdie" else _PACKAGE_SENSOR
    except OSError:
        return _PACKAGE_SENSOR


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    feeds: list[Feed] = []
    for monitor in root.names(_FOLDER):
        folder = f"{_FOLDER}/{monitor}"
        chip = _chip(root, folder)
        if chip in _CPU_CHIPS:
            files = {_package_sensor(root, folder): ("cpu.temperature", _C_PER_MILLI)}
        elif _FAN_CHIPS.fullmatch(chip):
            files = {name: ("cpu.fan_speed", 1.0) for name in root.names(folder) if _FAN.fullmatch(name)}
        else:
            continue
        for name, (metric, scale) in files.items():
            labels = (("sensor", f"{chip} {monitor} {name.removesuffix('_input')}"),)
            parser = partial(parse_number, metric=metric, labels=labels, scale=scale)
            feeds.append(Feed(path=f"{folder}/{name}", parser=parser, identity=chip, kept=False))
    if not feeds:
        raise SourceAbsentError("no sensor that is known to be harmless, as is usual in a virtual machine")
    return tuple(feeds[:MOST_SENSORS])


SOURCE = Source(name="hwmon", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
