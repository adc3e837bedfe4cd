"""What the host sees of its guests: how long each virtual CPU ran and waited, and what carrying their packets took.

A virtual CPU that could run and waits for a CPU of the host is what its guest calls stolen time: KVM tells the guest
the very number that is read here (``run_delay``, the second one of ``schedstat``). Nothing inside of a guest is looked
at. On a host without virtual machines nothing is read.

Source: Documentation/scheduler/sched-stats.rst; record_steal_time in arch/x86/kvm/x86.c.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.facts.cgroup_names import identify
from unveil.host.parsers.text import Reading
from unveil.host.source import SLOWER, Feed, Source, Surroundings
from unveil.records.metric import Channel, Kind, declare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.facts.machines import Thread
    from unveil.host.parsers.text import Text

_USER_HZ = os.sysconf("SC_CLK_TCK")
MOST_THREADS = 256
"""Threads that are read, of all virtual machines together; with more, some virtual CPUs of each stand for all."""

_METRICS = {
    "run": ("s", 1e-9, "time that {} ran"),
    "wait": ("s", 1e-9, "time that {} could have run and waited for a CPU"),
    "slices": ("1", 1.0, "times {} was given a CPU"),
}
_ROLES = {"vcpu": "a virtual CPU", "vhost": "a thread that carries a guest's packets"}

METRICS = (
    *(
        declare(
            f"cpu.{role}_{name}",
            Kind.COUNTER,
            unit,
            meaning.format(who),
            source="/proc/PID/task/TID/schedstat",
            labels=("cgroup", role),
        )
        for role, who in _ROLES.items()
        for name, (unit, _, meaning) in _METRICS.items()
    ),
    declare(
        "cpu.guest",
        Kind.COUNTER,
        "s",
        "time in which CPUs ran code of guests; it is in user and nice already, and 0 where they are emulated",
        source="/proc/stat",
    ),
)
_GUEST = (9, 11)  # guest and guest_nice, after the name and the eight states


def parse_schedstat(text: Text, role: str, labels: tuple[tuple[str, str], ...], identity: str) -> Iterator[Reading]:
    """Yield what a thread's ``schedstat`` tells; nothing where it is not the three numbers of one line."""
    lines = list(text.lines())
    if len(lines) != 1 or len(lines[0].fields) != len(_METRICS):
        return
    for index, (name, (_, scale, _)) in enumerate(_METRICS.items()):
        if (number := lines[0].number(index)) is not None:
            yield Reading(Channel(f"cpu.{role}_{name}", labels), (number,), scale, identity)


def cut_total(raw: bytes) -> bytes:
    """Return the first line of ``/proc/stat``: all CPUs together."""
    return raw[: raw.find(b"\n") + 1]


def parse_guest(text: Text, user_hz: int) -> Iterator[Reading]:
    """Yield the time of guests, in seconds, from the line of all CPUs; nothing where the kernel does not tell it."""
    for line in text.lines():
        if line.fields[0] == b"cpu" and (numbers := line.numbers(*_GUEST)) is not None:
            yield Reading(Channel("cpu.guest"), numbers, 1 / user_hz)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    trees = surroundings.cgroups
    folders: dict[str, list[str]] = {}
    for hierarchy in dict.fromkeys(filter(None, (trees.memory, trees.cpu, trees.unified))):
        for cgroup in trees.followed(hierarchy):
            if identify(cgroup.key).kind == "vm":
                folders.setdefault(cgroup.key, []).append(f"{hierarchy.mount}{cgroup.path}")
    if not folders:
        raise SourceAbsentError("no cgroup of a virtual machine")
    surroundings.machines.forget(but=[place for places in folders.values() for place in places])
    found = {key: machine for key, places in folders.items() if (machine := surroundings.machines.of(places))}
    if not found:
        raise SourceAbsentError(
            "no thread in a virtual machine's cgroup is named as a virtual CPU, as QEMU's are with debug-threads=on"
        )
    vhosts = [_feed("vhost", key, thread) for key, machine in found.items() for thread in machine.vhosts]
    rounds = zip_longest(*([(key, thread) for thread in machine.vcpus] for key, machine in found.items()))
    vcpus = [_feed("vcpu", *each) for one_of_each in rounds for each in one_of_each if each is not None]
    guests = Feed(path="proc/stat", parser=partial(parse_guest, user_hz=_USER_HZ), cut=cut_total, kept=False)
    return (guests, *vcpus[: MOST_THREADS - min(len(vhosts), MOST_THREADS // 4)], *vhosts[: MOST_THREADS // 4])


def _feed(role: str, cgroup: str, thread: Thread) -> Feed:
    identity = f"{thread.started} {thread.path}"
    labels = (("cgroup", cgroup), (role, thread.number))
    parser = partial(parse_schedstat, role=role, labels=labels, identity=identity)
    return Feed(path=f"{thread.path}/schedstat", parser=parser, identity=identity, once=True)


SOURCE = Source(name="vm_threads", pace=SLOWER, metrics=METRICS, feeds=_feeds, changing=True)
