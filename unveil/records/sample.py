"""SampleBlock: consecutive samples of one tier, the shape in which samples travel.

A *sample* is all channels of a tier at one tick. Samples are read at 10 Hz and parsed once a second in one batch
(that is what makes them cheap), so they travel as a block: one matrix, one row a tick. Absent is NaN, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from unveil.records.metric import Channel


class Tier(StrEnum):
    """How often a source is read. Values are names, not periods: the sampler owns the periods."""

    FAST = "fast"  # every tick, 100 ms
    MEDIUM = "medium"  # 0.5 to 1 s
    SLOW = "slow"  # 5 to 60 s


@dataclass(frozen=True, eq=False)
class Layout:
    """Which channel stands in which column. Layouts are compared by identity: a new one means columns moved."""

    channels: tuple[Channel, ...]

    @cached_property
    def column(self) -> dict[Channel, int]:
        """Return the column of each channel."""
        return {channel: index for index, channel in enumerate(self.channels)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SampleBlock:
    """Consecutive samples of one tier.

    Attributes:
        tier: the tier that was read.
        layout: the columns.
        times_ns: shape (n,), CLOCK_MONOTONIC of each tick in nanoseconds, strictly increasing.
        values: shape (n, channels), float64, NaN where absent. Counters are raw, not differenced.
    """

    tier: Tier
    layout: Layout
    times_ns: NDArray[np.int64]
    values: NDArray[np.float64]
