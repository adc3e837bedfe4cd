"""Window: three seconds of samples that are judged together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.records.attribution import Attribution
    from unveil.records.sample import SampleBlock
    from unveil.records.verdict import Verdict


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Window:
    """Consecutive samples of every tier.

    Attributes:
        index: number of the window since the watcher (or the recording) began, without gaps.
        start_ns, end_ns: CLOCK_MONOTONIC; the window holds samples with start_ns <= time <= end_ns, so that a rate
            over the window is the difference between its last and its first sample.
        wall_s: wall clock at end_ns, seconds since the epoch. A label, never used for a rate.
        blocks: one block per tier and source (sources of a tier that share no metric stay apart, e.g. the GPU child
            beside the sampler), already cut to the window and brought to the newest layout of that source.
            A slow tier whose period is longer than the window keeps its two newest samples, and says so by times_ns.
        ticks_missed: fast ticks that were due in the window and did not happen.
    """

    index: int
    start_ns: int
    end_ns: int
    wall_s: float
    blocks: tuple[SampleBlock, ...]
    ticks_missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A fingerprint that answered *match* or *unknown* in a window, on one entity (as text)."""

    fingerprint: str
    entity: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSummary:
    """What is kept of a window: small enough to journal one a second and to draw a thousand.

    Attributes:
        watch: number of the watch (one life of a watcher, or one replay) that the window belongs to.
        attribution: the strongest shares only; the subsystem shares are complete.
        knowledge: generation of the knowledge base that it was matched with.
    """

    watch: int
    index: int
    wall_s: float
    ticks_missed: int
    verdict: Verdict
    attribution: Attribution
    sightings: tuple[Sighting, ...] = ()
    knowledge: int = 0
