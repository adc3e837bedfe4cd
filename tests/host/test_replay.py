"""A replay gives bit for bit the windows of the run that was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.errors import UnreadableError
from unveil.host.recording import RecordingWriter
from unveil.host.replay import Replay
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.windows.slider import Slider

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.records.window import Window


def live_run() -> list[tuple[tuple[SampleBlock, ...], float]]:
    """Return twelve seconds with a late tick, a hole, a NIC that comes and a GPU that goes."""
    random = np.random.default_rng(1)
    narrow = Layout((Channel("cpu.user"), Channel("network.rx_bytes", (("nic", "eth0"),))))
    wide = Layout((*narrow.channels, Channel("network.rx_bytes", (("nic", "veth0"),))))
    gpu = Layout((Channel("gpu.util", (("gpu", "GPU-1"),)),))
    memory = Layout((Channel("memory.free"),))
    seconds = []
    for number in range(12):
        layout = wide if number >= 5 else narrow
        times = number * 1_000_000_000 + np.arange(10) * 100_000_000 + random.integers(0, 4_000_000, 10)
        if number == 7:
            times = times[:4]
        values = np.cumsum(random.random((len(times), len(layout.channels))), axis=0) + number
        blocks = [
            SampleBlock(tier=Tier.FAST, layout=layout, times_ns=times.astype(np.int64), values=values),
            SampleBlock(
                tier=Tier.MEDIUM, layout=memory, times_ns=times[:1].astype(np.int64), values=np.full((1, 1), 2.0**35)
            ),
        ]
        if number < 6:
            blocks.append(
                SampleBlock(
                    tier=Tier.MEDIUM, layout=gpu, times_ns=times[1:2].astype(np.int64), values=np.full((1, 1), np.nan)
                )
            )
        seconds.append((tuple(blocks), 1.7e9 + number + 0.123))
    return seconds


def windows_of(ticks: list[tuple[tuple[SampleBlock, ...], float]]) -> list[Window]:
    slider = Slider()
    return [window for blocks, wall_s in ticks for window in slider.push(blocks, wall_s=wall_s)]


def test_a_replay_gives_the_windows_of_the_live_run(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    run = live_run()
    writer = RecordingWriter(path, part_s=5)
    for blocks, wall_s in run:
        writer.write(blocks, wall_s=wall_s)
    writer.close()
    live = windows_of(run)
    again = windows_of([(tick.blocks, tick.wall_s) for tick in Replay(path)])
    assert len(live) == len(again) > 5
    for wanted, got in zip(live, again, strict=True):
        assert (got.index, got.start_ns, got.end_ns, got.wall_s, got.ticks_missed) == (
            wanted.index, wanted.start_ns, wanted.end_ns, wanted.wall_s, wanted.ticks_missed,
        )  # fmt: skip
        assert len(got.blocks) == len(wanted.blocks)
        for mine, theirs in zip(got.blocks, wanted.blocks, strict=True):
            assert mine.tier is theirs.tier
            assert mine.layout.channels == theirs.layout.channels
            assert mine.times_ns.tobytes() == theirs.times_ns.tobytes()
            assert mine.values.tobytes() == theirs.values.tobytes()


def test_a_replay_can_be_run_twice_and_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    writer = RecordingWriter(path, {"command": "unveil record"})
    for blocks, wall_s in live_run():
        writer.write(blocks, wall_s=wall_s)
    writer.close()
    replay = Replay(path)
    assert replay.complete
    assert replay.metadata == {"command": "unveil record"}
    assert [tick.wall_s for tick in replay] == [tick.wall_s for tick in replay]


def test_a_replay_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError):
        Replay(tmp_path / "none.parquet")
