"""AMD GPUs: what the driver tells in ``/sys/class/drm/card*/device``, under the metrics of all GPUs.

Their key is the PCI address, as these GPUs have no UUID that all tools agree on. They are read with the slow tier, the
NVIDIA ones by their own process with the medium one, so that a host with both keeps them apart. A GPU that sleeps is
left alone: to read its sensors would wake it.

Source: Documentation/gpu/amdgpu/driver-misc.rst and thermal.rst.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.parsers.amd_gpu import cut_clock, parse_clock
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOW, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.root import HostRoot

_DRM = "sys/class/drm"
_CARD = re.compile(r"card[0-9]+", re.ASCII)
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_AMD = b"0x1002"
_WIDTH = "current_link_width"
_NO_WIDTHS = (0, 63, 255)  # how a link says that it does not know

# Metric → unit, what it is, and the files that tell it with their scales, the best one first.
_METRICS: dict[str, tuple[str, str, tuple[tuple[str, float], ...]]] = {
    "util": ("share", "share of time in which the GPU worked", (("gpu_busy_percent", 0.01),)),
    "memory_util": ("share", "share of time in which its memory worked", (("mem_busy_percent", 0.01),)),
    "memory_used": ("bytes", "memory in use", (("mem_info_vram_used", 1.0),)),
    "memory_total": ("bytes", "memory in all", (("mem_info_vram_total", 1.0),)),
    "power": ("W", "power", (("hwmon/power1_average", 1e-6), ("hwmon/power1_input", 1e-6))),
    "power_limit": ("W", "power limit in force", (("hwmon/power1_cap", 1e-6),)),
    "power_default": ("W", "power limit the vendor set", (("hwmon/power1_cap_default", 1e-6),)),
    "temperature": ("C", "temperature", (("hwmon/temp1_input", 1e-3),)),
    "sm_clock": ("MHz", "clock of its cores", (("hwmon/freq1_input", 1e-6), ("pp_dpm_sclk", 1.0))),
    "memory_clock": ("MHz", "clock of its memory", (("hwmon/freq2_input", 1e-6), ("pp_dpm_mclk", 1.0))),
    "pcie_width": ("lanes", "lanes of PCIe in use", ((_WIDTH, 1.0),)),
}

METRICS = tuple(
    declare(f"gpu.{name}", Kind.GAUGE, unit, meaning, labels=("gpu",), source=f"/{_DRM}/card*/device/{files[0][0]}")
    for name, (unit, meaning, files) in _METRICS.items()
)


def amd_gpus(root: HostRoot) -> dict[str, str]:
    """Return the folder of each AMD GPU by its PCI address."""
    found: dict[str, str] = {}
    for card in root.names(_DRM):
        folder = f"{_DRM}/{card}/device"
        try:
            if not _CARD.fullmatch(card) or root.read(f"{folder}/vendor").strip() != _AMD:
                continue
            address = root.resolve(folder).rpartition("/")[2]
        except OSError:
            continue
        if _PCI.fullmatch(address):
            found[address] = folder
    return found


def _files(root: HostRoot, folder: str) -> dict[str, str]:
    """Return the paths of the files of a GPU and of its sensors by their names, those with ``hwmon/`` in front."""
    paths = {name: f"{folder}/{name}" for name in root.list(folder)}
    if "hwmon" in paths:
        for monitor in root.list(f"{folder}/hwmon")[:1]:
            sensors = f"{folder}/hwmon/{monitor}"
            paths |= {f"hwmon/{name}": f"{sensors}/{name}" for name in root.list(sensors)}
    return paths


def _of_gpu(root: HostRoot, gpu: str, folder: str) -> Iterator[Feed]:
    there = _files(root, folder)
    for name, (_, _, files) in _METRICS.items():
        file, scale = next(((file, scale) for file, scale in files if file in there), ("", 0.0))
        if file.startswith("pp_dpm"):
            clock = partial(parse_clock, metric=f"gpu.{name}", gpu=gpu)
            yield Feed(path=there[file], parser=clock, cut=cut_clock, kept=False, identity=gpu)
        elif file:
            unknown = _NO_WIDTHS if file == _WIDTH else ()
            labels = (("gpu", gpu),)
            number = partial(parse_number, metric=f"gpu.{name}", labels=labels, scale=scale, unknown=unknown)
            yield Feed(path=there[file], parser=number, kept=False, identity=gpu)  # a card's number may be another's


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    gpus = amd_gpus(root)
    if not gpus:
        raise SourceAbsentError("this host has no AMD GPU")
    feeds: list[Feed] = []
    for gpu, folder in gpus.items():
        try:
            if not root.exists(f"{folder}/power/runtime_status") or not root.read(
                f"{folder}/power/runtime_status"
            ).startswith(b"suspend"):
                feeds += _of_gpu(root, gpu, folder)
        except OSError:
            continue
    if not feeds:
        raise SourceAbsentError("every AMD GPU sleeps")
    return tuple(feeds)


SOURCE = Source(name="amd_gpu", pace=SLOW, metrics=METRICS, feeds=_feeds)
