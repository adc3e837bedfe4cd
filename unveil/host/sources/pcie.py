"""Links of the devices that work depends on, and of the ports above them: ``/sys/bus/pci/devices``.

GPUs, NICs, NVMe disks and accelerators, and every bridge between them and the host: a link that trained to half its
width, or a port that corrects errors all the time, slows everything below. What a link *can* do is the lesser of what
its two ends can; that is looked up when the device is found.

Reading a link's state reads the device's configuration space, which would wake a device that sleeps: such are left out.
The AER counters are the kernel's own, and lose nothing, unlike its log (trap 44). A GPU that is idle runs its link
slowly on purpose (trap 43): a slow link is a finding only where there is traffic.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.pcie import lanes, parse_errors, parse_link, whole_speed
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.records.metric import Kind, Metric, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.root import HostRoot

MOST_FUNCTIONS = 96

_DEVICES = "sys/bus/pci/devices"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
# Display and 3D controllers, network (InfiniBand included), NVMe, processing accelerators.
_CLASSES = re.compile(rb"0x(03|02|0108|12)[0-9a-f]+", re.ASCII)
_LINKS = {"width": ("lanes", lanes), "speed": ("GT/s", whole_speed)}
_ERRORS = {
    "aer_dev_correctable": ("aer_corrected", "errors of PCIe that were corrected by sending again"),
    "aer_dev_nonfatal": ("aer_nonfatal", "errors of PCIe that lost a transaction"),
    "aer_dev_fatal": ("aer_fatal", "errors of PCIe that lost the link"),
}


def _metric(name: str, unit: str, kind: Kind, file: str, meaning: str) -> Metric:
    return declare(f"interconnect.{name}", kind, unit, meaning, labels=("pci",), source=f"/{_DEVICES}/*/{file}")


METRICS = (
    *(
        each
        for name, (unit, _) in _LINKS.items()
        for file in (f"current_link_{name}",)
        for each in (
            _metric(f"pcie_{name}", unit, Kind.GAUGE, file, f"{name} of the link above a PCI function, whole {unit}"),
            _metric(f"pcie_{name}_share", "share", Kind.GAUGE, file, f"its {name} against what both ends of it can do"),
        )
    ),
    *(_metric(name, "1", Kind.COUNTER, file, meaning) for file, (name, meaning) in _ERRORS.items()),
)


def _functions(root: HostRoot) -> dict[str, str]:
    """Return the functions that count, and the ports above them, by address: the folder of each."""
    found: dict[str, str] = {}
    for address in root.names(_DEVICES):
        try:
            if not _ADDRESS.fullmatch(address) or not _CLASSES.match(root.read(f"{_DEVICES}/{address}/class")):
                continue
            if root.exists(f"{_DEVICES}/{address}/physfn"):  # a virtual function has no link of its own
                continue
            folder = root.resolve(f"{_DEVICES}/{address}")
        except OSError:
            continue
        parts = folder.split("/")
        for end in range(1, len(parts) + 1):
            if _ADDRESS.fullmatch(parts[end - 1]):
                found.setdefault(parts[end - 1], "/".join(parts[:end]))
    return dict(list(found.items())[:MOST_FUNCTIONS])


def _most(root: HostRoot, folder: str, name: str) -> int | None:
    """Return what a link can do: the lesser of what the function and the port above it can."""
    read = _LINKS[name][1]
    ends = []
    for end in (folder, folder.rpartition("/")[0]):
        try:
            told = read(root.read(f"{end}/max_link_{name}").decode("ascii", "replace"))
        except OSError:
            continue
        if told is not None:
            ends.append(told)
    return min(ends, default=None)


def _sleeps(root: HostRoot, folder: str) -> bool:
    try:
        return root.read(f"{folder}/power/runtime_status").startswith(b"suspend")
    except OSError:
        return False


def _of_function(root: HostRoot, pci: str, folder: str) -> Iterator[Feed]:
    there = frozenset(root.list(folder))
    if not _sleeps(root, folder):
        for name in _LINKS:
            if f"current_link_{name}" in there:
                parser = partial(parse_link, name=name, pci=pci, most=_most(root, folder, name))
                yield Feed(path=f"{folder}/current_link_{name}", parser=parser, kept=False)
    for file, (metric, _) in _ERRORS.items():
        if file in there:
            parser = partial(parse_errors, metric=f"interconnect.{metric}", pci=pci)
            yield Feed(path=f"{folder}/{file}", parser=parser, kept=False)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    feeds: list[Feed] = []
    for pci, folder in _functions(root).items():
        try:
            feeds += _of_function(root, pci, folder)
        except OSError:  # unplugged meanwhile
            continue
    if not feeds:
        raise SourceAbsentError("no PCI function here tells of its link, as is usual in a virtual machine")
    return tuple(feeds)


SOURCE = Source(name="pcie", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
