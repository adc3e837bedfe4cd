"""View: from where a recording is looked at: from the host itself, or from below a guest that the work runs in.

A recording of work in cgroups and network namespaces of the host holds what a hypervisor never sees of a guest. The
views leave that out, so that detection can be measured as it would be there. What the kernel counts for the host as a
whole stays in all of them, though a guest's kernel would count part of it (page faults, its own waiting) for itself:
no recording of a host can tell these apart.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from unveil.records.entity import EntityKind
from unveil.records.fact import FactTable
from unveil.records.sample import Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from unveil.host.replay import Tick
    from unveil.records.metric import Channel
    from unveil.records.sample import SampleBlock


class View(StrEnum):
    """What of the work is seen."""

    ALL = "all"  # everything that was recorded
    HOST = "host"  # nothing that is counted for a cgroup or a network namespace
    GUEST = "guest"  # the work's cgroup, as that of a virtual machine, and nothing from inside of it

    @property
    def told(self) -> str:
        """Return it as part of a name; empty for everything, which needs no word."""
        return "" if self is View.ALL else f"{self} view"


INSIDE = ("network.cgroup_", "memory.cgroup_page_faults", "memory.cgroup_major_faults")
"""Beginnings of what is counted for a cgroup and comes from inside: its sockets, and the faults of its processes."""


def sees(view: View, channel: Channel) -> bool:
    """Return whether a channel is part of a view."""
    if view is View.ALL or channel.label(EntityKind.CGROUP) is None:
        return True
    return view is View.GUEST and not channel.metric.startswith(INSIDE)


def looked_at(ticks: Iterable[Tick], view: View) -> Iterator[Tick]:
    """Yield ticks without what a view does not see; blocks of one layout share one layout again."""
    if view is View.ALL:
        yield from ticks
        return
    kept: dict[Layout, tuple[list[int], Layout]] = {}
    for tick in ticks:
        blocks = tuple(_reduced(block, view, kept) for block in tick.blocks)
        yield replace(tick, blocks=blocks, facts=None if tick.facts is None else _facts(tick.facts, view))


def _reduced(block: SampleBlock, view: View, kept: dict[Layout, tuple[list[int], Layout]]) -> SampleBlock:
    known = kept.get(block.layout)
    if known is None:
        channels = block.layout.channels
        columns = [column for column, channel in enumerate(channels) if sees(view, channel)]
        known = kept[block.layout] = columns, Layout(tuple(channels[column] for column in columns))
    return replace(block, layout=known[1], values=block.values[:, known[0]])


def _facts(table: FactTable, view: View) -> FactTable:
    """Return the facts without those of cgroups, which a host tells of a virtual machine's, too."""
    if view is View.GUEST:
        return table
    return FactTable(
        facts=tuple(fact for fact in table.facts if fact.entity.kind is not EntityKind.CGROUP),
        settings={at: text for at, text in table.settings.items() if not at.startswith("cgroup:")},
    )
