"""Source: what one file of ``sources/`` declares: metrics, a tier, and which files to read and how to parse them.

A source is data. The sampler decides when it is read, keeps its files open, measures what it costs and reports on it
as ``SourceHealth``. A newcomer adds a file with a ``SOURCE`` and a line in ``catalogue.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from unveil.host.facts.machines import Machines
from unveil.host.namespaces import NetworkNamespaces
from unveil.records.sample import Tier

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.host.cgroups import CgroupTrees
    from unveil.host.parsers.shape import Parser
    from unveil.host.root import HostRoot
    from unveil.records.metric import Metric


@dataclass(frozen=True, slots=True)
class Pace:
    """How often sources are read. Those of one pace are read and parsed together and make one row."""

    tier: Tier
    period_s: float


FAST = Pace(Tier.FAST, 0.1)
MEDIUM = Pace(Tier.MEDIUM, 1.0)
SLOW = Pace(Tier.SLOW, 2.0)
SLOWER = Pace(Tier.SLOW, 5.0)
SLOWEST = Pace(Tier.SLOW, 10.0)
PACES = (FAST, MEDIUM, SLOW, SLOWER, SLOWEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What sources look around in to find their files; one for each sampler."""

    root: HostRoot
    cgroups: CgroupTrees
    namespaces: NetworkNamespaces = field(init=False)
    machines: Machines = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "namespaces", NetworkNamespaces(self.root, self.cgroups))
        object.__setattr__(self, "machines", Machines(self.root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One file of a source.

    Attributes:
        path: below the host's root.
        parser: called when the file is new and whenever its text looks different, seldom; it may therefore look up
            what the text does not tell (which devices are whole disks).
        whole: the kernel renders the file in one piece. Others (``seq_file`` with a record a line) are read until
            nothing comes, as they answer in pieces of a page.
        cut: takes out what would only be parsed for nothing, or writes out what is no decimal number; called for every
            text, so it must be cheap.
        names: names in a text that somebody chose, of which two may differ in no number (``eth1`` and ``eth01``);
            called once a second for the newest text.
        identity: tells this file from an earlier one of the same path (inode of the cgroup).
        kept: stays open. Small files that are read once in ten seconds are opened each time instead, so that a host
            with hundreds of them does not run out of descriptors.
        once: never opened again when it is gone: a process's file, whose number may be another one's by then.
        turns: paths that are read in turn, one each time, instead of *path*; for files that are not kept.
        own_way: reads the text instead, where *path* only stands for what is read; for files that are not kept. None
            where there is nothing to read now.
        beside: bytes of kernel text that it reads beside what it returns, so that many are spread over several ticks.
    """

    path: str
    parser: Parser
    whole: bool = True
    cut: Callable[[bytes], bytes] | None = None
    names: Callable[[bytes], tuple[bytes, ...]] | None = None
    identity: str = ""
    kept: bool = True
    once: bool = False
    turns: tuple[str, ...] = ()
    own_way: Callable[[], bytes | None] | None = None
    beside: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source of metrics.

    Attributes:
        name: short, for a person.
        pace: how often it shall be read; one that turns out too dear is read less often.
        metrics: what it gives.
        feeds: returns the files that are there now. Raises ``SourceAbsentError`` with the reason when this host has
            none; an ``OSError`` is a failure.
        changing: its files come and go (cgroups), so that they are looked for again and again.
        core_share: most of one core that reading it may take; beyond, it is read less often.
    """

    name: str
    pace: Pace
    metrics: tuple[Metric, ...]
    feeds: Callable[[Surroundings], tuple[Feed, ...]]
    changing: bool = False
    core_share: float = 0.01


class SourceState(StrEnum):
    """How a source is doing."""

    OK = "ok"  # gives channels; a reason tells what part of it does not
    ABSENT = "absent"  # this host has no such thing, which is normal
    FAILED = "failed"  # it is there and cannot be read
    STALE = "stale"  # the last value stands, and grows old


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHealth:
    """What `doctor` tells about a source.

    Attributes:
        tier: how often it is read now, and the period of that.
        files: how many can be read.
        channels: how many it gives now.
        read_us: CPU time of reading all its files once, median of the last reads, microseconds.
        parse_us: its share of the CPU time of parsing, per read.
        reason: why it is absent, failed or slowed down; what is wrong with a part of it. Empty when all is well.
    """

    name: str
    tier: Tier
    period_s: float
    files: int
    channels: int
    read_us: float
    parse_us: float = 0.0
    state: SourceState
    reason: str = ""
