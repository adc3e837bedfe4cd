"""How the reading of GPUs stands, for ``doctor``, the screens and whoever waits for handles to be given back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from unveil.host.source import SourceHealth, SourceState
from unveil.records.sample import Tier

if TYPE_CHECKING:
    from collections.abc import Mapping


class GpuCondition(StrEnum):
    """How the reading of GPUs stands."""

    ABSENT = "absent"  # a host without NVIDIA GPUs: normal
    STARTING = "starting"  # nothing heard yet
    READING = "reading"
    STALE = "stale"  # the child runs and is late: most likely inside a driver call
    FAILED = "failed"  # the child ended; the next one is started after a pause
    RELEASED = "released"  # all handles given back on request
    RELEASING = "releasing"  # … asked for, and a child is still inside a driver call
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    """The condition and its reason.

    Attributes:
        gpus: UUIDs that are read.
        lost: UUID → what the driver said when it lost that GPU.
        starts: how many children were started so far.
        age_s: age of the oldest values, None before the first.
        channels: how many channels the GPUs have.
        period_s: time between two readings.
    """

    condition: GpuCondition
    reason: str
    gpus: tuple[str, ...]
    lost: Mapping[str, str]
    starts: int
    age_s: float | None
    channels: int
    period_s: float

    def as_source(self) -> SourceHealth:
        """Return the same as ``doctor`` tells it of every source. Reading costs the watcher nothing: a child does."""
        return SourceHealth(
            name="gpu",
            tier=Tier.MEDIUM,
            period_s=self.period_s,
            files=0,
            channels=self.channels,
            read_us=0.0,
            state=SourceState.FAILED if self.lost else _STATES[self.condition],
            reason=self.reason + "".join(f"; {uuid} is gone: {why}" for uuid, why in sorted(self.lost.items())),
        )


_STATES = {
    GpuCondition.ABSENT: SourceState.ABSENT,
    GpuCondition.STARTING: SourceState.OK,
    GpuCondition.READING: SourceState.OK,
    GpuCondition.STALE: SourceState.STALE,
    GpuCondition.FAILED: SourceState.FAILED,
    GpuCondition.RELEASED: SourceState.STALE,
    GpuCondition.RELEASING: SourceState.STALE,
    GpuCondition.CLOSED: SourceState.ABSENT,
}
