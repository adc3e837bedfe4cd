"""Energy of CPU packages and their memory: ``/sys/class/powercap/intel-rapl:*``, on Intel's and AMD's CPUs.

The counters wrap, at 262 kJ or so: a quarter of an hour at 300 W. A wrap looks like a counter that began anew, and the
rate over it is absent; in ten seconds, far less than half the range, there is at most one. Since Linux 5.10 only root
may read them (CVE-2020-8694): then they are absent with that reason.

Source: Documentation/power/powercap/powercap.rst.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from unveil.host.root import HostRoot

_FOLDER = "sys/class/powercap"
_ZONE = re.compile(r"(intel-rapl:[0-9a-f]+)(:[0-9a-f]+)?", re.ASCII)
_PACKAGE = re.compile(r"package-([0-9]+)(?:-die-([0-9]+))?", re.ASCII)
_DOMAINS = frozenset({"core", "uncore", "dram"})
_J_PER_UJ = 1e-6

METRICS = (
    declare(
        "cpu.energy",
        Kind.COUNTER,
        "J",
        "energy of a package as a whole, or of its cores (core), graphics (uncore) or memory (dram)",
        labels=("package", "domain"),
        source=f"/{_FOLDER}/intel-rapl:*/energy_uj",
    ),
)


def _name(root: HostRoot, zone: str) -> str:
    try:
        return root.read(f"{_FOLDER}/{zone}/name").decode("ascii", "replace").strip()
    except OSError:
        return ""


def _labels(root: HostRoot, zone: str, parent: str) -> tuple[tuple[str, str], ...] | None:
    """Return the labels of a zone, None for what is counted elsewhere already (the whole platform)."""
    package = _PACKAGE.fullmatch(_name(root, parent))
    if package is None:
        return None
    number = package[1] if package[2] is None else f"{package[1]}.{package[2]}"
    domain = "package" if zone == parent else _name(root, zone)
    return (("package", number), ("domain", domain)) if domain in _DOMAINS | {"package"} else None


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    feeds = []
    for zone in root.names(_FOLDER):
        parts = _ZONE.fullmatch(zone)
        labels = _labels(root, zone, parts[1]) if parts is not None else None
        if labels is not None:
            parser = partial(parse_number, metric="cpu.energy", labels=labels, scale=_J_PER_UJ)
            identity = " ".join(value for _, value in labels)  # zones are numbered anew when the driver is loaded again
            feeds.append(Feed(path=f"{_FOLDER}/{zone}/energy_uj", parser=parser, kept=False, identity=identity))
    if not feeds:
        raise SourceAbsentError("the CPUs do not tell their energy, as is usual in a virtual machine")
    try:
        root.head(feeds[0].path, 32)
    except PermissionError as error:
        raise SourceAbsentError("only root may read the energy of CPUs, which tells secrets apart") from error
    except OSError:  # of one zone; the others may do
        pass
    return tuple(feeds)


SOURCE = Source(name="rapl", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
