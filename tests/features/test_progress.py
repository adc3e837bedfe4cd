"""The rhythm of a host's work, from windows as the slider makes them."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.features.progress import SENT, Progress
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.windows.slider import Slider

LAYOUT = Layout(
    (
        Channel("cpu.user"),
        Channel(SENT, (("nic", "lo"),)),
        Channel(SENT, (("nic", "eth0"),)),
        Channel(SENT, (("nic", "eth1"),)),
    )
)
TICK_NS = 100_000_000


def watched(sent: np.ndarray, *, loud_lo: bool = True, lost: range = range(0)) -> Progress:
    """Return what is known after *sent* bytes left by eth0 in each tick."""
    progress, slider = Progress(), Slider()
    ticks = len(sent)
    noise = np.arange(ticks) * 1e3
    lo = np.cumsum(np.tile([1e9, 0, 0, 0], ticks // 4 + 1)[:ticks]) if loud_lo else noise
    values = np.stack([noise, lo, np.cumsum(sent), np.full(ticks, np.nan)], axis=1)
    times = np.arange(1, ticks + 1) * TICK_NS
    for second in range(0, ticks, 10):
        kept = [at for at in range(second, min(second + 10, ticks)) if at not in lost]
        block = SampleBlock(tier=Tier.FAST, layout=LAYOUT, times_ns=times[kept], values=values[kept])
        for window in slider.push([block] if kept else [], wall_s=second / 10):
            progress.push(window)
    return progress


def steps(period_ticks: float, ticks: int) -> np.ndarray:
    dice = np.random.default_rng(1)
    phase = (np.arange(ticks) % period_ticks) / period_ticks
    return np.where(phase < 0.3, 1e6, 0.0) + dice.poisson(1e4, ticks)


def test_the_step_of_a_job_is_told_and_loopback_is_not_listened_to() -> None:
    rhythm = watched(steps(7.3, 900)).rhythm
    assert rhythm is not None
    assert rhythm.period_s == pytest.approx(0.73, rel=0.03)


def test_a_host_that_sends_nothing_regular_has_none() -> None:
    assert watched(np.random.default_rng(2).poisson(1e4, 900).astype(float)).rhythm is None
    assert watched(np.zeros(900)).rhythm is None


def test_one_lost_tick_does_not_matter_and_a_hole_begins_anew() -> None:
    assert watched(steps(7.3, 900), lost=range(600, 601)).rhythm is not None
    assert watched(steps(7.3, 900), lost=range(800, 806)).rhythm is None
