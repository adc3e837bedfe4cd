"""The rhythm of a host's work, from windows as the slider makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unveil.features.extract import Extractor
from unveil.features.progress import PROGRESS, SENT, Progress
from unveil.records.entity import HOST
from unveil.records.fact import FactTable
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


def test_lost_ticks_do_not_matter_and_a_long_hole_begins_anew() -> None:
    for lost in (range(600, 601), range(800, 812)):
        rhythm = watched(steps(7.3, 900), lost=lost).rhythm
        assert rhythm is not None
        assert rhythm.period_s == pytest.approx(0.73, rel=0.03)
    assert watched(steps(7.3, 900), lost=range(800, 825)).rhythm is None


def test_ticks_that_come_late_do_not_blur_a_fast_step() -> None:
    dice = np.random.default_rng(5)
    progress, slider = Progress(), Slider()
    late = dice.exponential(0.02, 900)
    moments = np.arange(1, 901) * 0.1 + np.minimum(late, 0.09)
    done = np.floor(moments / 0.31) + np.minimum((moments % 0.31) / 0.08, 1.0)  # sends for 80 ms of each step
    for second in range(90):
        rows = slice(second * 10, second * 10 + 10)
        values = np.full((10, len(LAYOUT.channels)), np.nan)
        values[:, 2] = 1e6 * done[rows]
        block = SampleBlock(
            tier=Tier.FAST, layout=LAYOUT, times_ns=(moments[rows] * 1e9).astype(np.int64), values=values
        )  # fmt: skip
        for window in slider.push([block], wall_s=float(second)):
            progress.push(window)
    assert progress.rhythm is not None
    assert progress.rhythm.period_s == pytest.approx(0.31, rel=0.01)


def test_what_is_known_is_a_feature_and_absent_while_nothing_is() -> None:
    extractor = Extractor({feature.name: feature for feature in PROGRESS})
    slider, progress = Slider(), Progress()
    sent = np.cumsum(steps(7.3, 900))
    told = []
    for second in range(0, 900, 10):
        rows = slice(second, second + 10)
        values = np.full((10, len(LAYOUT.channels)), np.nan)
        values[:, 2] = sent[rows]
        times = (np.arange(900)[rows] + 1) * TICK_NS
        block = SampleBlock(tier=Tier.FAST, layout=LAYOUT, times_ns=times, values=values)
        for window in slider.push([block], wall_s=second / 10):
            known = progress.push(window)
            vector = extractor.extract(replace(window, blocks=(*window.blocks, known)), FactTable())
            told.append([vector.get(feature.name, HOST) for feature in PROGRESS])
    assert told[0] == [None, None, None]
    rate, step, confidence = told[-1]
    assert step == pytest.approx(0.73, rel=0.03)
    assert rate == pytest.approx(1 / step)
    assert 0 <= confidence <= 1


def by_the_second(metric: str, of_a_moment: np.ndarray, label: tuple[str, str]) -> Progress:
    """Return what is known of a counter that is read once a second, from what happens in each 10 ms."""
    progress, slider = Progress(), Slider()
    idle = Layout((Channel("cpu.user"),))
    layout = Layout((Channel(metric, (label,)),))
    counted = np.cumsum(of_a_moment)[99::100]
    for second, value in enumerate(counted.tolist()):
        ticks = second * 10 + np.arange(1, 11)
        fast = SampleBlock(tier=Tier.FAST, layout=idle, times_ns=ticks * TICK_NS, values=np.zeros((10, 1)))
        slow = SampleBlock(
            tier=Tier.MEDIUM, layout=layout, times_ns=ticks[-1:] * TICK_NS, values=np.array([[value]])
        )  # fmt: skip
        for window in slider.push([fast, slow], wall_s=float(second)):
            progress.push(window)
    return progress


def gpus_at_work(period_s: float, busy: float, seconds: int = 240) -> np.ndarray:
    """Return joules in each 10 ms of GPUs that take 80 W, and 600 W for a share of each step."""
    dice = np.random.default_rng(4)
    moments = np.arange(seconds * 100) * 0.01
    return np.where((moments % period_s) / period_s < busy, 6.0, 0.8) * (1 + 0.05 * dice.standard_normal(len(moments)))


def test_the_energy_of_gpus_tells_slow_steps_and_never_takes_a_fast_one_for_one() -> None:
    gpu = ("gpu", "GPU-1")
    for period_s in (4.7, 12.0):
        found = by_the_second("gpu.energy", gpus_at_work(period_s, 0.5), gpu).rhythm
        assert found is not None
        assert found.period_s == pytest.approx(period_s, rel=0.03)
        assert found.source == "the energy that the GPUs take"
    for period_s, busy in ((0.35, 0.5), (0.81, 0.1), (1.19, 0.5), (1.26, 0.1), (3.1, 0.5)):
        assert by_the_second("gpu.energy", gpus_at_work(period_s, busy), gpu).rhythm is None, period_s


def test_disks_tell_only_where_the_nics_are_quiet_and_a_heartbeat_is_no_work() -> None:
    shards = np.where(np.arange(24_000) % 900 < 100, 1e6, 0.0)
    disk = ("disk", "nvme0n1")
    found = by_the_second("storage.read_bytes", shards, disk).rhythm
    assert found is not None
    assert (found.period_s, found.source) == (pytest.approx(9.0, rel=0.03), "what the disks read")
    quiet = by_the_second("storage.read_bytes", shards / 1e3, disk)
    assert (quiet.rhythm, quiet.reason) == (None, "what the disks read: next to nothing happens")
    heartbeat = watched(steps(20.0, 900) / 1e3)
    assert (heartbeat.rhythm, heartbeat.reason) == (None, "what the NICs send: next to nothing happens")


def test_why_there_is_no_rhythm_is_told() -> None:
    assert Progress().reason == "nothing is measured that could tell"
    assert watched(steps(7.3, 200)).reason == "what the NICs send: too little was seen yet"
    noise = np.random.default_rng(2).poisson(1e6, 900).astype(float)
    assert watched(noise).reason == "what the NICs send: nothing repeats for long enough"
    assert watched(steps(7.3, 900)).reason == ""


def test_a_source_that_is_read_no_more_tells_nothing_for_long() -> None:
    progress, slider = Progress(), Slider()
    sent = np.cumsum(steps(7.3, 900))
    told = []
    for second in range(100):
        times = (second * 10 + np.arange(1, 11)) * TICK_NS
        there = second < 90
        layout = LAYOUT if there else Layout((Channel("cpu.user"),))
        values = np.zeros((10, len(layout.channels)))
        if there:
            values[:, 2] = sent[second * 10 : second * 10 + 10]
        block = SampleBlock(tier=Tier.FAST, layout=layout, times_ns=times, values=values)
        for window in slider.push([block], wall_s=float(second)):
            progress.push(window)
            told.append(progress.rhythm is not None)
    assert told[-12], "the last second that was sent"
    assert not told[-1]
