"""A recording of this machine: what is kept, what is not, and that it ends when it is told to."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.engine.recorder import record
from unveil.errors import BadInputError
from unveil.host.replay import Replay
from unveil.records.fact import FactTable

if TYPE_CHECKING:
    from unveil.records.metric import Channel


def test_a_recording_holds_every_second_with_its_facts_and_who_made_it(recording: Path) -> None:
    replay = Replay(recording)
    ticks = list(replay)
    assert len(ticks) == 6
    assert replay.complete
    assert (replay.metadata["host"], replay.metadata["note"]) == ("some host", "six seconds")
    assert replay.metadata["written_by"].startswith("unveil ")
    assert ticks[0].facts is not None
    assert ticks[0].facts.value("cpu.online_count") == os.cpu_count()
    times = [time_ns for tick in ticks for block in tick.blocks for time_ns in block.times_ns[:1]]
    assert times
    assert [tick.wall_s for tick in ticks] == sorted(tick.wall_s for tick in ticks)


@pytest.mark.slow
def test_only_what_was_asked_for_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    counted: list[int] = []

    def keep(channel: Channel) -> bool:
        return channel.metric.startswith("memory.")

    def only_total(table: FactTable) -> FactTable:
        return FactTable(tuple(fact for fact in table.facts if fact.name == "memory.total"))

    record(path, host_root=Path("/"), gpu=False, seconds=2, channels=keep, facts=only_total, on_second=counted.append)
    ticks = list(Replay(path))
    metrics = {channel.metric for tick in ticks for block in tick.blocks for channel in block.layout.channels}
    assert metrics
    assert all(metric.startswith("memory.") for metric in metrics)
    assert ticks[0].facts is not None
    assert {fact.name for fact in ticks[0].facts.facts} == {"memory.total"}
    assert counted == [1, 2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_signal_ends_it_in_good_order_and_its_handlers_are_put_back(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    taken = record(
        tmp_path / "x.parquet", host_root=Path("/"), gpu=False, seconds=None,
        on_second=lambda _: os.kill(os.getpid(), number),  # sooner, it would end these tests
    )  # fmt: skip
    assert taken >= 1
    assert taken == len(list(Replay(tmp_path / "x.parquet")))
    assert signal.getsignal(number) is before


def test_a_file_that_is_there_is_not_overwritten_and_nothing_stays_open(recording: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    whole = recording.read_bytes()
    with pytest.raises(BadInputError, match="there already"):
        record(recording, host_root=Path("/"), gpu=False, seconds=1)
    assert recording.read_bytes() == whole
    assert signal.getsignal(signal.SIGTERM) is before
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


@pytest.mark.slow
def test_a_recording_can_be_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    assert record(path, host_root=Path("/"), gpu=False, seconds=1) == 1
    assert record(path, host_root=Path("/"), gpu=False, seconds=1, resume=True) == 1
    assert len(list(Replay(path))) == 2
