"""In which idle states CPUs rest: ``/sys/devices/system/cpu/cpu*/cpuidle``, of a few CPUs spread over the host.

The counters are the kernel's own; reading them asks no hardware and wakes nobody. Which states there are, and how long
it takes to leave them, is a matter of the driver: ``depth`` tells *poll*, *shallow* and *deep* apart, deep being what
takes 20 us or more to leave, which a round trip on the network feels.

Source: Documentation/admin-guide/pm/cpuidle.rst.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.facts.sheet import number, plain
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.host.sources.cpu_sysfs import CPUS, online_cpus, spread
from unveil.records.metric import Kind, declare

if TYPE_CHECKING:
    from unveil.host.root import HostRoot

MOST_CPUS = 4
DEEP_US = 20

_FILES = {
    "time": ("idle_state_time", "s", 1e-6, "time a CPU rested in an idle state"),
    "usage": ("idle_state_entries", "1", 1.0, "times a CPU entered an idle state"),
    "above": ("idle_state_too_deep", "1", 1.0, "times the state was too deep for how short the rest was"),
    "below": ("idle_state_too_shallow", "1", 1.0, "times a deeper state would have done"),
    "rejected": ("idle_state_rejected", "1", 1.0, "times the state was refused"),
}

METRICS = tuple(
    declare(
        f"cpu.{name}",
        Kind.COUNTER,
        unit,
        f"{meaning}; of a few CPUs",
        labels=("cpu", "state", "depth"),
        source=f"/{CPUS}/cpu*/cpuidle/state*/{file}",
    )
    for file, (name, unit, _, meaning) in _FILES.items()
)


def _depth(root: HostRoot, folder: str) -> str:
    """Return how deep a state is: poll, shallow or deep."""
    try:
        name = root.read(f"{folder}/name").strip()
        latency = number(plain(root.read(f"{folder}/latency")))
    except (OSError, ValueError):
        return "shallow"
    if name == b"POLL":
        return "poll"
    return "deep" if latency >= DEEP_US else "shallow"


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    feeds = []
    for cpu in spread(online_cpus(root), MOST_CPUS):
        folder = f"{CPUS}/cpu{cpu}/cpuidle"
        for state in root.names(folder):
            if state[:5] != "state" or not state[5:].isdecimal():
                continue
            labels = (("cpu", str(cpu)), ("state", state[5:]), ("depth", _depth(root, f"{folder}/{state}")))
            there = frozenset(root.names(f"{folder}/{state}"))
            for file, (name, _, scale, _) in _FILES.items():
                if file in there:
                    parser = partial(parse_number, metric=f"cpu.{name}", labels=labels, scale=scale)
                    feeds.append(Feed(path=f"{folder}/{state}/{file}", parser=parser, kept=False))
    if not feeds:
        raise SourceAbsentError("no driver manages the idle states of CPUs, as is usual in a virtual machine")
    return tuple(feeds)


SOURCE = Source(name="cpuidle", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
