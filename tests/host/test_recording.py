"""Recordings: every bit comes back, crashes cost one part, and foreign files are an error of one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.errors import BadInputError, UnreadableError
from unveil.host.recording import RecordingWriter, read_recording
from unveil.records.entity import Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from unveil.host.replay import Tick

NAN = float("nan")
FAST = Layout((Channel("cpu.user"), Channel("cpu.user", (("cpu", "0"),)), Channel("cpu.psi_some")))
MEDIUM = Layout((Channel("memory.free"), Channel("gpu.util", (("gpu", "GPU-1"),))))
FACTS = FactTable(
    (
        Fact(name="memory.thp_enabled", value="never", setting="file:/sys/kernel/mm/transparent_hugepage/enabled"),
        Fact(name="network.nic_irqs", entity=Entity(EntityKind.NIC, "eth0"), value=("24", "25")),
        Fact(name="network.nic_node", entity=Entity(EntityKind.NIC, "eth0"), value=None, reason="the platform says -1"),
        Fact(name="cpu.cgroup_name", entity=Entity(EntityKind.CGROUP, "/pod\udc80"), value="tenant \udc80 {{ 7 }}"),
        Fact(name="network.nic_physical", entity=Entity(EntityKind.NIC, "eth0"), value=True),
        Fact(name="cpu.count", value=8.0),
    ),
    {"sysctl:vm.swappiness": "60\n"},
)


def block(layout: Layout, begin: int, rows: list[list[float]], tier: Tier = Tier.FAST) -> SampleBlock:
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(layout.channels))
    times = begin * 1_000_000_000 + np.arange(len(rows), dtype=np.int64) * 100_000_003
    return SampleBlock(tier=tier, layout=layout, times_ns=times, values=values)


def second(number: int) -> tuple[SampleBlock, ...]:
    fast = [[number * 10.0 + tick, (number * 10 + tick) / 100, (number * 10 + tick) / 1e6] for tick in range(10)]
    return block(FAST, number, fast), block(MEDIUM, number, [[2.0**40 + number, NAN]], Tier.MEDIUM)


def write(path: Path, seconds: range, **keywords) -> RecordingWriter:
    writer = RecordingWriter(path, {"host": "h1"}, **keywords)
    for number in seconds:
        writer.write(second(number), wall_s=1e9 + number / 3)
    return writer


def same(ticks: list[Tick], expected: list[tuple[SampleBlock, ...]]) -> None:
    assert len(ticks) == len(expected)
    for tick, blocks in zip(ticks, expected, strict=True):
        assert len(tick.blocks) == len(blocks)
        for got, wanted in zip(tick.blocks, blocks, strict=True):
            assert got.tier is wanted.tier
            assert got.layout.channels == wanted.layout.channels
            assert got.times_ns.dtype == np.int64
            assert got.times_ns.tolist() == wanted.times_ns.tolist()
            assert got.values.dtype == np.float64
            assert got.values.shape == wanted.values.shape
            assert got.values.tobytes() == wanted.values.tobytes()


def test_what_was_written_comes_back_second_by_second(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, range(5)).close()
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]
    recording = read_recording(path)
    assert recording.complete
    assert recording.metadata == {"host": "h1"}
    ticks = list(recording.ticks())
    same(ticks, [second(number) for number in range(5)])
    assert [tick.wall_s for tick in ticks] == [1e9 + number / 3 for number in range(5)]
    assert ticks[0].blocks[0].layout is ticks[4].blocks[0].layout, "layouts are compared by identity"
    assert all(tick.facts is None for tick in ticks)


WEIRD = st.sampled_from(
    [0.0, -0.0, NAN, np.inf, -np.inf, 5e-324, 2.0**53, -(2.0**53), 2.0**53 + 2, 2.0**63, 1e308, 0.1]
)
ODD_NAN = np.array([0x7FF8_0000_0000_0001, -1], dtype=np.int64).view(np.float64)
FLOATS = st.one_of(WEIRD, st.integers(-(2**60), 2**60).map(float), st.floats(), st.sampled_from(list(ODD_NAN)))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), parts=st.integers(1, 3))
def test_every_bit_of_every_value_survives(
    data: st.DataObject, parts: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("bits") / "r.parquet"
    width = data.draw(st.integers(0, 4))
    layouts = [Layout(tuple(Channel("cpu.user", (("cpu", str(i + shift)),)) for i in range(width))) for shift in (0, 1)]
    seconds = []
    for number in range(data.draw(st.integers(0, 5))):
        count = data.draw(st.integers(0, 2))
        blocks = []
        for _ in range(count):
            layout = data.draw(st.sampled_from(layouts))
            height = data.draw(st.integers(0, 3))
            values = data.draw(st.lists(FLOATS, min_size=height * width, max_size=height * width))
            tier = data.draw(st.sampled_from(list(Tier)))
            made = block(layout, number, [[0.0] * width] * height, tier)
            matrix = np.array(values, dtype=np.float64).reshape(height, width)
            blocks.append(SampleBlock(tier=tier, layout=layout, times_ns=made.times_ns, values=matrix))
        seconds.append(tuple(blocks))
    writer = RecordingWriter(path, part_s=parts)
    for number, blocks in enumerate(seconds):
        writer.write(blocks, wall_s=float(number))
    writer.close()
    same(list(read_recording(path).ticks()), seconds)


def test_a_channel_that_comes_or_goes_is_null_where_it_was_not(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    wider = Layout((*FAST.channels, Channel("network.rx_bytes", (("nic", "veth1"),)), Channel("memory.psi_some")))
    seconds = [
        (block(FAST, 0, [[1.0, 2.0, NAN]]),),
        (block(wider, 1, [[3.0, 4.0, 5.5, 6.0, 0.5]]),),
        (block(FAST, 2, [[7.0, 8.0, 9.0]]),),
    ]
    writer = RecordingWriter(path, part_s=1)
    for number, blocks in enumerate(seconds):
        writer.write(blocks, wall_s=float(number))
    writer.close()
    same(list(read_recording(path).ticks()), seconds)
    table = pq.read_table(path)
    samples = table.filter(table.column("tier").is_valid())
    assert samples.column("network.rx_bytes{nic=veth1}").to_pylist() == [None, 6, None]
    assert samples.column("memory.psi_some").to_pylist() == [None, 0.5, None]
    assert samples.column("cpu.user").to_pylist() == [1, 3, 7]


def test_the_file_is_an_ordinary_table(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(3)).close()
    table = pq.read_table(path)
    assert table.column_names == [
        *("second", "wall_s", "tier", "block", "layout", "time_ns", "event"),
        *("cpu.user", "cpu.user{cpu=0}", "cpu.psi_some", "memory.free", "gpu.util{gpu=GPU-1}"),
    ]
    fast = table.filter([tier == "fast" for tier in table.column("tier").to_pylist()])
    assert fast.column("cpu.user").to_pylist() == list(range(30))
    assert fast.column("memory.free").null_count == 30
    assert str(table.schema.field("cpu.user").type) == "int64"
    assert str(table.schema.field("cpu.psi_some").type) == "double"


def test_facts_come_back_before_the_second_from_which_they_were_valid(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    writer = RecordingWriter(path)
    writer.write_facts(FACTS)
    writer.write(second(0), wall_s=0.0)
    writer.write_facts(FactTable(FACTS.facts, dict(FACTS.settings)))  # says the same: not recorded again
    writer.write(second(1), wall_s=1.0)
    writer.write_facts(FactTable(FACTS.facts[:1]))
    writer.write(second(2), wall_s=2.0)
    writer.close()
    ticks = list(read_recording(path).ticks())
    assert ticks[0].facts is not None
    assert ticks[0].facts.facts == FACTS.facts
    assert ticks[0].facts.settings == FACTS.settings
    assert ticks[1].facts is None
    assert ticks[2].facts is not None
    assert ticks[2].facts.facts == FACTS.facts[:1]
    assert [wall_s for wall_s, _ in read_recording(path).facts()] == [0.0, 2.0]


def test_hostile_labels_get_a_column_each(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    hostile = Layout(
        (
            Channel("m.x", (("cgroup", "/a,b=c"),)),
            Channel("m.x", (("cgroup", "/a"), ("b", "c"))),
            Channel("m.x", (("cgroup", "/\udcff\0{{ x }}"),)),
            Channel("tier"),
        )
    )
    blocks = (block(hostile, 0, [[1.0, 2.0, 3.0, 4.0]]),)
    writer = RecordingWriter(path)
    writer.write(blocks, wall_s=0.0)
    writer.close()
    same(list(read_recording(path).ticks()), [blocks])


def test_an_allow_list_makes_small_files_with_the_same_ticks(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(3), channels=lambda channel: channel.metric == "cpu.user").close()
    ticks = list(read_recording(path).ticks())
    assert [channel.metric for channel in ticks[0].blocks[0].layout.channels] == ["cpu.user", "cpu.user"]
    assert ticks[2].blocks[0].values[:, 0].tolist() == [20.0 + tick for tick in range(10)]
    assert ticks[2].blocks[1].layout.channels == ()
    assert ticks[2].blocks[1].times_ns.tolist() == second(2)[1].times_ns.tolist()


def test_a_crash_costs_the_part_that_was_not_yet_written(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    code = (
        "import sys, os; sys.path.insert(0, sys.argv[2]); import test_recording as t; from pathlib import Path\n"
        "writer = t.write(Path(sys.argv[1]), range(7), part_s=3); os._exit(9)"
    )
    here = str(Path(__file__).parent)
    assert subprocess.run([sys.executable, "-c", code, str(path), here], check=False).returncode == 9
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.parquet.part-0001", "r.parquet.part-0002"]
    recording = read_recording(path)
    assert not recording.complete
    same(list(recording.ticks()), [second(number) for number in range(6)])


@pytest.mark.slow
def test_a_process_that_is_killed_at_any_moment_loses_one_part_and_can_be_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[2]); import test_recording as t; from pathlib import Path\n"
        "writer = t.RecordingWriter(Path(sys.argv[1]), {}, part_s=5, resume=True); number = int(sys.argv[3])\n"
        "while True:\n"
        "    writer.write(t.second(number), wall_s=1e9 + number); print(number, flush=True); number += 1\n"
        "    time.sleep(0.01)\n"
    )
    here, random = str(Path(__file__).parent), Random(3)
    runs: list[range] = []
    for begin in (0, 10_000, 20_000):
        arguments = [sys.executable, "-c", code, str(path), here, str(begin)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(random.randrange(1, 40))]
            process.kill()
            said += [line for line in process.stdout if line.endswith("\n")]
        runs.append(range(begin, int(said[-1]) + 1))
    write(path, range(0), resume=True).close()
    recording = read_recording(path)
    assert recording.complete
    kept = [round(tick.wall_s - 1e9) for tick in recording.ticks()]
    same(list(recording.ticks()), [second(number) for number in kept])
    for run in runs:
        mine = [number for number in kept if run.start <= number < run.start + 10_000]
        assert mine == [*range(run.start, run.start + len(mine))], "nothing in between is missing"
        assert len(mine) >= len(run) - 5


def test_seconds_that_take_long_are_put_on_disk_in_time_too(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r.parquet", part_s=30)
    for number in range(4):
        writer.write(second(number), wall_s=1e9 + 12 * number)
    assert [file.name for file in tmp_path.iterdir()] == ["r.parquet.part-0001"]
    writer.close()


def test_a_crashed_recording_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    writer = write(path, range(4), part_s=2)
    del writer
    (tmp_path / "r.parquet.part-0003.writing").write_bytes(b"half")
    with pytest.raises(BadInputError, match="already"):
        RecordingWriter(path)
    write(path, range(4, 7), resume=True, part_s=2).close()
    assert [file.name for file in tmp_path.iterdir()] == ["r.parquet"]
    same(list(read_recording(path).ticks()), [second(number) for number in range(7)])


def test_a_finished_recording_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(2)).close()
    write(path, range(2, 4), resume=True).close()
    recording = read_recording(path)
    assert recording.complete
    same(list(recording.ticks()), [second(number) for number in range(4)])
    assert recording.metadata == {"host": "h1"}


@pytest.mark.parametrize("content", [b"not a recording at all" * 9, None])
def test_what_is_no_recording_is_not_gone_on_with_and_stays_as_it_is(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(2)).close()
    path.write_bytes(content or path.read_bytes()[:-100])
    write(tmp_path / "other.parquet", range(2), part_s=2)
    (tmp_path / "other.parquet.part-0001").replace(tmp_path / "r.parquet.part-0001")
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(UnreadableError, match=r"r\.parquet is no recording"):
        RecordingWriter(path, resume=True)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    path.unlink()
    write(path, range(2, 3), resume=True).close()
    same(list(read_recording(path).ticks()), [second(number) for number in range(3)])


def test_parts_beside_a_finished_recording_are_old(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(4), part_s=2)
    part = tmp_path / "r.parquet.part-0001"
    kept = part.read_bytes()
    write(path, range(4, 5), resume=True).close()
    part.write_bytes(kept)  # a crash between the rename and the removal
    same(list(read_recording(path).ticks()), [second(number) for number in range(5)])
    write(path, range(5, 6), resume=True).close()
    same(list(read_recording(path).ticks()), [second(number) for number in range(6)])


def test_a_recording_of_nothing_is_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    writer = RecordingWriter(path)
    writer.close()
    writer.close()
    assert list(read_recording(path).ticks()) == []


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"not a recording at all" * 9])
def test_a_foreign_file_is_unreadable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.parquet"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=r"r\.parquet") as caught:
        read_recording(path)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.what


def test_what_is_not_there_or_is_a_folder_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no recording"):
        read_recording(tmp_path / "nothing.parquet")
    with pytest.raises(UnreadableError):
        read_recording(tmp_path)


def test_a_parquet_file_of_someone_else_is_unreadable(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(UnreadableError, match="no recording"):
        read_recording(path)


def test_damage_anywhere_is_said_and_never_a_traceback_or_another_value(tmp_path: Path, share_refused) -> None:
    path = tmp_path / "r.parquet"
    write(path, range(3)).close()
    assert share_refused(path, path, 97) > 0.5


def test_a_folder_that_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no/such"):
        RecordingWriter(tmp_path / "no/such/r.parquet")


def test_a_disk_that_is_full_is_said_and_nothing_half_written_is_seen(tmp_path: Path, monkeypatch) -> None:
    from unveil.errors import UnveilError

    path = tmp_path / "r.parquet"
    writer = write(path, range(2))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UnveilError, match="No space left"):
        writer.flush()
    monkeypatch.undo()
    with pytest.raises(UnreadableError):
        read_recording(path)


def test_three_minutes_of_a_busy_host_are_a_few_hundred_kilobytes(tmp_path: Path) -> None:
    """180 s of 500 channels at 10 Hz: 200 busy counters, 100 slow ones in seconds, 100 gauges, 100 that stand still."""
    random = np.random.default_rng(7)
    steps = np.concatenate([random.poisson(40, (1800, 200)), random.poisson(0.3, (1800, 100))], axis=1)
    counters = np.cumsum(steps, axis=0) + random.integers(0, 10**9, 300)
    gauges = 2**34 + 4096 * np.cumsum(random.integers(-3, 4, (1800, 100)), axis=0)
    values = np.concatenate([counters[:, :200], counters[:, 200:] / 100, gauges, np.full((1800, 100), 7.0)], axis=1)
    layout = Layout(tuple(Channel("memory.made_up", (("cpu", str(index)),)) for index in range(500)))
    path = tmp_path / "r.parquet"
    writer = RecordingWriter(path)
    for number in range(180):
        writer.write((block(layout, number, values[number * 10 : number * 10 + 10].tolist()),), wall_s=float(number))
    writer.close()
    assert path.stat().st_size < 700_000, "raw it is 7.2 MB"


def test_the_replay_and_the_recording_do_not_import_pyarrow_before_they_are_used() -> None:
    code = "import sys, unveil.host.recording, unveil.host.replay; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
