"""Probes: what is read by system calls and not from files, each at its own slow pace, beside the sampler.

A probe gives values by channel. It is opened when it is first due, measures what it costs, is read less often while
that is over its budget, and comes back when it is not. One that fails is closed, said, and tried again later.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import numpy as np

from unveil.errors import SourceAbsentError
from unveil.host.facts.sheet import why
from unveil.host.source import SourceHealth, SourceState
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unveil.records.metric import Channel

BUDGET_SHARE = 0.0005
"""Of a core, that one probe may take."""
LONGEST_S = 15.0  # a window keeps two samples of the last half minute
_SECOND = 1_000_000_000
_RETRY_NS = 300 * _SECOND
_SMOOTHING = 0.3
_NEVER = 1 << 62


class Probe(Protocol):
    """One thing that is read by system calls.

    Attributes:
        name: short, for a person.
        period_s: how often it shall be read.
        reason: what is wrong with a part of it; empty when all is well.
    """

    name: str
    period_s: float
    reason: str

    def open(self) -> None:
        """Get ready.

        Raises:
            SourceAbsentError: this host has no such thing, which is normal.
            OSError: it is there and does not work.
        """

    def read(self) -> Mapping[Channel, float]:
        """Return what is there now; absent is NaN, or left out. OSError when it stopped working."""
        ...

    def close(self) -> None:
        """Give everything back."""


class ActiveProbe:
    """A probe at work: when it is due, what it costs, how it is doing."""

    def __init__(self, probe: Probe, *, absent: str = "") -> None:
        self._probe = probe
        self._period_s = probe.period_s
        self._open = False
        self._state = SourceState.ABSENT if absent else SourceState.OK
        self._reason = absent
        self._cost_ns = 0.0
        self._due_ns = _NEVER if absent else 0
        self._layout = Layout(channels=())

    def poll(self, now_ns: int) -> SampleBlock | None:
        """Read the probe when it is due; None when it is not, or gives nothing."""
        if now_ns < self._due_ns:
            return None
        began = time.thread_time_ns()
        try:
            if not self._open:
                self._probe.open()
                self._open = True
                began = time.thread_time_ns()  # opening is no reading
            values = self._probe.read()
        except SourceAbsentError as error:
            self._give_up(now_ns, SourceState.ABSENT, error.what)
            return None
        except OSError as error:
            self._give_up(now_ns, SourceState.FAILED, why(error, str(error.filename or self._probe.name).lstrip("/")))
            return None
        self._state, self._reason = SourceState.OK, self._probe.reason
        channels = tuple(sorted(values))
        if channels != self._layout.channels:
            self._layout = Layout(channels=channels)
        self._pay(time.thread_time_ns() - began)
        self._due_ns = now_ns + int(self._period_s * _SECOND)
        if not channels:
            return None
        return SampleBlock(
            tier=Tier.SLOW,
            layout=self._layout,
            times_ns=np.array([now_ns], dtype=np.int64),
            values=np.array([[values[channel] for channel in channels]], dtype=np.float64),
        )

    def health(self) -> SourceHealth:
        """Return how the probe is doing."""
        slowed = self._period_s > self._probe.period_s and self._state is SourceState.OK
        said = f"read every {self._period_s:g} s only: reading takes {self._cost_ns / 1e6:.1f} ms" if slowed else ""
        return SourceHealth(
            name=self._probe.name,
            tier=Tier.SLOW,
            period_s=self._period_s,
            files=0,
            channels=len(self._layout.channels) if self._state is SourceState.OK else 0,
            read_us=self._cost_ns / 1e3,
            state=self._state,
            reason="; ".join(filter(None, (said, self._reason))),
        )

    def close(self) -> None:
        """Close the probe."""
        if self._open:
            self._probe.close()
            self._open = False

    def _give_up(self, now_ns: int, state: SourceState, reason: str) -> None:
        self.close()
        self._state, self._reason = state, reason
        self._due_ns = now_ns + _RETRY_NS

    def _pay(self, cost_ns: int) -> None:
        """Keep what a reading cost, and move to a slower or a faster pace for it."""
        first = self._cost_ns == 0
        self._cost_ns = cost_ns if first else self._cost_ns + _SMOOTHING * (cost_ns - self._cost_ns)
        needed_s = self._cost_ns / BUDGET_SHARE / _SECOND
        if needed_s > self._period_s:
            self._period_s = min(LONGEST_S, 2 * self._period_s)
        elif needed_s < self._period_s / 4:
            self._period_s = max(self._probe.period_s, self._period_s / 2)


class Probes:
    """All probes of this machine; of another root they are absent: the calls answer for the kernel that we run on."""

    def __init__(self, probes: Iterable[Probe], *, live: bool) -> None:
        absent = "" if live else "only the host itself can be asked, not files of it"
        self._probes = [ActiveProbe(probe, absent=absent) for probe in probes]

    def poll(self, now_ns: int) -> tuple[SampleBlock, ...]:
        """Read what is due.

        Args:
            now_ns: CLOCK_MONOTONIC.
        """
        return tuple(block for probe in self._probes if (block := probe.poll(now_ns)) is not None)

    def health(self) -> tuple[SourceHealth, ...]:
        """Return how each is doing."""
        return tuple(probe.health() for probe in self._probes)

    def close(self) -> None:
        """Close all."""
        for probe in self._probes:
            probe.close()
