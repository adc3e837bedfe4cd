"""Progress: at which rhythm the work on this host advances, as far as what its NICs send tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unveil.features.rhythm import RhythmTracker
from unveil.records.sample import Tier

if TYPE_CHECKING:
    from unveil.features.rhythm import Rhythm
    from unveil.records.sample import Layout
    from unveil.records.window import Window

SENT = "network.tx_bytes"
TICK_S = 0.1
_GAP = 3  # ticks: a longer hole parts two rhythms, a shorter one only blurs them


class Progress:
    """Takes the windows of one host, in order, and follows the rhythm of all that its NICs send together."""

    def __init__(self) -> None:
        self._tracker = RhythmTracker(TICK_S)
        self._layout: Layout | None = None
        self._columns = np.empty(0, np.intp)
        self._until_ns = 0

    @property
    def rhythm(self) -> Rhythm | None:
        """Return the rhythm now; None when there is none, or it is not sure, or nothing is sent."""
        return self._tracker.rhythm

    def push(self, window: Window) -> None:
        """Take what is new in a window."""
        for block in window.blocks:
            if block.tier is Tier.FAST and (block.layout is self._layout or self._look_at(block.layout)):
                begin = max(int(block.times_ns.searchsorted(self._until_ns, side="right")) - 1, 0)
                times = block.times_ns[begin:]
                amounts = np.nan_to_num(np.diff(block.values[begin:, self._columns], axis=0)).sum(axis=1)
                # A counter that went back has begun anew: what it sent meanwhile is not known.
                hole = bool((np.diff(times) > _GAP * TICK_S * 1e9).any()) or bool((amounts < 0).any())
                self._tracker.push(np.array([np.nan]) if hole else amounts)
        self._until_ns = window.end_ns

    def _look_at(self, layout: Layout) -> bool:
        """Find the columns of a layout; tell whether it has any. NICs that come and go shift the level, no more."""
        found = [
            column
            for column, channel in enumerate(layout.channels)
            if channel.metric == SENT and channel.label("nic") not in (None, "lo")
        ]
        if found:
            self._layout, self._columns = layout, np.array(found, np.intp)
        return bool(found)
