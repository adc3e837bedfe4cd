"""Pressure stall information of each cgroup: ``cpu.pressure``, ``memory.pressure``, ``io.pressure``; version 2 only.

A hybrid host has them in its tree of version 2, whichever version its controllers are. The kernel answers EOPNOTSUPP
where they were turned off (``cgroup.pressure``, ``psi=0``): then that one file is left alone.
"""

from __future__ import annotations

from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.pressure import parse_pressure
from unveil.host.source import SLOWER, Feed, Source, Surroundings
from unveil.records.metric import Kind, declare
from unveil.records.subsystem import Subsystem

_RESOURCES = {"cpu": Subsystem.CPU, "memory": Subsystem.MEMORY, "io": Subsystem.STORAGE}
_KINDS = {"some": "time in which at least one of its tasks waited for", "full": "time in which all of them waited for"}

METRICS = tuple(
    declare(
        f"{subsystem}.cgroup_psi_{kind}",
        Kind.COUNTER,
        "s",
        f"{meaning} {subsystem}",
        labels=("cgroup",),
        source=f"{file}.pressure",
    )
    for file, subsystem in _RESOURCES.items()
    for kind, meaning in _KINDS.items()
)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    trees = surroundings.cgroups
    unified = trees.unified
    if unified is None:
        raise SourceAbsentError("this host has no cgroups of version 2")
    followed = trees.followed(unified)
    if followed and not surroundings.root.exists(f"{unified.mount}{followed[0].path}/cpu.pressure"):
        raise SourceAbsentError("this kernel tells no pressure of cgroups", hint="boot with psi=1")
    if not followed:
        raise SourceAbsentError("no cgroup of version 2 but the root")
    return tuple(
        Feed(
            path=f"{unified.mount}{cgroup.path}/{file}.pressure",
            parser=partial(
                parse_pressure,
                subsystem=str(subsystem),
                name="cgroup_psi",
                labels=(("cgroup", cgroup.key),),
                identity=str(cgroup.inode),
            ),
            identity=str(cgroup.inode),
            kept=False,
        )
        for cgroup in followed
        for file, subsystem in _RESOURCES.items()
    )


SOURCE = Source(name="cgroup_pressure", pace=SLOWER, metrics=METRICS, feeds=_feeds, changing=True)
